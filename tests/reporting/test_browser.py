"""The page in a real browser: it loads nothing, follows the slider, is reached by keyboard, and runs no name as code.

It needs Chromium (Debian: apt-get install chromium; elsewhere set CHROMIUM to its path) and Playwright.
"""

import os
import shutil
from itertools import pairwise

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier
from tests.hardening.hostile import NAMES

import secateur as sc
from secateur._util.text import printable
from secateur.cli._output import write_report
from secateur.reporting import describe

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install -e '.[dev]'")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium"),
]

QUIET = ("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync")
SANDBOX = () if os.getuid() else ("--no-sandbox",)  # Chromium refuses to run as root with one


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*QUIET, *SANDBOX, "--disable-component-update"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Return a function that writes a report, opens it from its file, and records its messages and requests."""
    opened = []

    def show(path, *rows, width=1100, height=900, scheme="light", **options):
        file = sc.report(path, tmp_path / f"report{len(opened)}.html", *rows, **options)
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        page.messages, page.requests = [], []
        page.on("console", lambda message: page.messages.append(message.text))
        page.on("pageerror", lambda error: page.messages.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(file.as_uri())
        opened.append(context)
        return page

    yield show
    for context in opened:
        context.close()


def move_to(page, point):
    page.locator("#slider").fill(str(point))


def cell(page, label, column):
    """Return a cell of the table, by how its row is called: before, after, left."""
    row = page.locator("#rows tr", has=page.locator("td:first-child", has_text=label)).first
    return row.locator("td").nth(1 + ["before", "after", "left"].index(column)).inner_text()


def as_number(text):
    return float(text.replace(",", "").replace("≈", "").split("±")[0])


@pytest.mark.parametrize("which", ["single", "ensemble", "priced"])
def test_it_logs_nothing_and_requests_nothing(which, request, open_page):
    made = request.getfixturevalue(which)
    page = open_page(made.path, *made.choose, cost=getattr(made, "cost", None))
    for point in range(len(made.path)):
        move_to(page, point)
    page.locator("#theme").click()
    page.locator("#x-axis").select_option("n_leaves")
    assert page.messages == []
    assert len(page.requests) == 1
    assert page.requests[0].startswith("file://")


def test_monotonic_constraints_are_listed_with_the_method(open_page):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DecisionTreeClassifier(max_depth=3, monotonic_cst=[1, 0, -1]).fit(X, X[:, 0] > 0)
    shown = open_page(sc.prune_path(model, X, X[:, 0] > 0)).locator("#how-list").inner_text()
    lines = [line for line in shown.splitlines() if line]
    assert lines[lines.index("non-decreasing in") + 1] == "0"
    assert lines[lines.index("non-increasing in") + 1] == "2"


@pytest.mark.parametrize("which", ["single", "ensemble", "priced"])
def test_the_slider_moves_table_curve_and_trees_to_the_numbers_of_the_point(which, request, open_page):
    path = request.getfixturevalue(which).path
    page, description = open_page(path), describe(path)
    columns = {"nodes": "n_nodes", "leaves": "n_leaves", "trees": "n_trees", "depth": "depth", "features": "n_features"}
    marks = []
    for point in range(0, len(path), max(len(path) // 8, 1)):
        move_to(page, point)
        for label, column in columns.items():
            assert as_number(cell(page, label, "after")) == path.table[column][point]
            assert as_number(cell(page, label, "before")) == path.table[column][0]
        loss = as_number(cell(page, "loss on validation rows", "after"))
        assert loss == pytest.approx(path.table["loss"][point], rel=1e-3)
        if which == "priced":
            assert as_number(cell(page, "feature cost", "after")) == pytest.approx(path.table["cost"][point], rel=1e-3)
        marker = page.locator("#marker")
        assert marker.get_attribute("data-point") == str(point)
        marks.append(
            (float(marker.get_attribute("cx")), path.table["cost"][point], float(marker.get_attribute("cy")), loss)
        )
        assert f"{path.table['n_nodes'][point]:,} nodes" in page.locator("#readout").inner_text()
        assert_tree_is_that_of(page, description, path, point)
        assert f"path[{point}].to_model()" in page.locator("#code-list").inner_text()
    for (x, cost, y, loss), (x2, cost2, y2, loss2) in pairwise(marks):
        assert (x2 > x) == (cost2 > cost)  # costs grow to the right
        assert (y2 < y) == (loss2 > loss) or loss2 == pytest.approx(loss, rel=2e-3)  # losses grow upwards


def test_the_table_shows_the_latencies_of_the_timed_points(ensemble, open_page):
    page = open_page(ensemble.path, *ensemble.choose)
    measured = page.evaluate("JSON.parse(document.getElementById('facts').textContent).measured")
    unpruned, n_rows = measured["latency"]["models"][0], len(ensemble.choose[0])
    for point, model in zip(measured["timed"], measured["latency"]["models"], strict=True):
        move_to(page, point)
        for key, label in (("one_row", "µs to predict one row"), ("batch", f"µs per row in a batch of {n_rows}")):
            assert as_number(cell(page, label, "before")) == pytest.approx(unpruned[key]["median"], rel=0.01)
            assert as_number(cell(page, label, "after")) == pytest.approx(model[key]["median"], rel=0.01)
            left, ratio = cell(page, label, "left"), model[key]["ratio"] or {"ratio": 1.0, "within_noise": False}
            assert (left == "unclear") == ratio["within_noise"]
            assert left == "unclear" or float(left.rstrip(" %")) == pytest.approx(100 * ratio["ratio"], rel=0.06)


def assert_tree_is_that_of(page, description, path, point):
    """Compare the nodes drawn, kept and ghosted, with the mask of the point; the tree is small enough to be whole."""
    shown = description["trees"][int(page.locator("#tree-select").input_value())]
    start = path.forest.tree_start[shown["tree"]]
    keep = path.masks.keep(point)
    drawn = page.locator("#tree [data-node]")
    nodes = [int(node) for node in drawn.evaluate_all("all => all.map(g => g.dataset.node)")]
    kept = drawn.evaluate_all("all => all.map(g => g.dataset.kept === 'true')")
    assert len(nodes) >= min(len(shown["left"]), 11)
    if shown["sizes"][0] == len(shown["left"]):  # nodes are then numbered as in the forest
        assert kept == [bool(keep[start + node]) for node in nodes]


def test_clicking_the_curve_goes_to_the_point(ensemble, open_page):
    page = open_page(ensemble.path, point=0)
    move_to(page, 6)
    page.locator("#chart").scroll_into_view_if_needed()
    box = page.locator("#marker").bounding_box()
    move_to(page, 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "point 6" in page.locator("#tip").inner_text()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#slider").input_value() == "6"


def test_everything_is_reached_by_keyboard(ensemble, open_page):
    page = open_page(ensemble.path, point=3)
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('role')"))
        if reached[-1] == "slider":
            page.keyboard.press("ArrowRight")
            assert page.locator("#readout").inner_text().startswith("point 4 ")
            page.keyboard.press("Home")
            assert page.locator("#readout").inner_text().startswith("point 0 ")
            page.keyboard.press("End")
            assert page.locator("#readout").inner_text().startswith(f"point {len(ensemble.path) - 1} ")
            move_to(page, 3)
    wanted = {"theme", "slider", "previous", "next", "x-axis", "log", "tree-select", "ghosts", "tree", "button"}
    assert wanted <= set(reached)


def test_a_split_folds_and_unfolds_by_key(ensemble, open_page):
    page = open_page(ensemble.path, point=0)
    before = page.locator("#tree [data-node]").count()
    page.locator('#tree [data-node="0"]').focus()
    page.keyboard.press("Enter")
    assert page.locator("#tree [data-node]").count() == 1
    assert page.evaluate("document.activeElement.dataset.node") == "0"
    page.keyboard.press("Enter")
    assert page.locator("#tree [data-node]").count() == before


def test_ghosts_can_be_hidden(single, open_page):
    page = open_page(single.path, point=1)
    assert page.locator('#tree [data-kept="false"]').count() > 0
    page.locator("#ghosts").uncheck()
    assert page.locator('#tree [data-kept="false"]').count() == 0
    assert page.locator('#tree [data-kept="true"]').count() == single.path.table["n_nodes"][1]


def test_names_that_are_code_are_not_run(single, open_page):
    X, y = single.prune
    attack = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>"
    X = X.rename(columns={name: f"{attack}{k}" for k, name in enumerate(X.columns)})
    y = y.astype("U200")
    y[y == "setosa"] = f"</script>{attack}"
    path = sc.prune_path(DecisionTreeClassifier(random_state=0).fit(X, y), X, y).evaluate(X, y)
    page = open_page(path, X, y, baselines={attack: path})
    for point in range(len(path)):
        move_to(page, point)
    page.locator("#chart").hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.messages == []
    assert attack in page.locator("#bars").inner_text()
    assert attack in page.locator("#legend").inner_text()


@pytest.mark.parametrize("kind", NAMES)
def test_no_name_runs_code_breaks_the_page_or_reverses_its_text(kind, single, open_page):
    X, y = single.prune
    X = X.rename(columns={name: f"{NAMES[kind]}{k}" for k, name in enumerate(X.columns)})
    y = np.where(y == "setosa", NAMES[kind], "other")
    path = sc.prune_path(DecisionTreeClassifier(random_state=0).fit(X, y), X, y).evaluate(X, y)
    page = open_page(path, X, y, baselines={NAMES[kind]: path})
    for point in range(len(path)):
        move_to(page, point)
    page.locator("#chart").hover()
    for bar in page.locator("#bars .name").all():
        bar.hover()
    assert page.evaluate("window.hacked") is None
    assert page.messages == []
    assert len(page.requests) == 1
    assert page.locator("img, body script ~ script").count() <= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100
    shown = page.evaluate("document.body.innerText")
    assert not set("\x1b\x00\x08\u202e\u2066\u200f") & set(shown)
    assert printable(NAMES[kind])[:100] in page.locator("#bars").inner_text().replace("\xa0", " ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_small_and_large_screens_in_light_and_dark_mode(priced, open_page, width, scheme):
    page = open_page(priced.path, *priced.choose, cost=priced.cost, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in paper.removeprefix("rgb(").removesuffix(")").split(",")) / 3
    assert (brightness < 80) == (scheme == "dark")
    heights = page.locator("button, select, #slider").evaluate_all("all => all.map(e => e.offsetHeight)")
    assert min(height for height in heights if height) >= 30  # fingers


def test_printed_pages_have_no_controls(single, open_page):
    page = open_page(single.path, scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#slider").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#rows").is_visible()


def test_a_path_that_was_not_evaluated_says_so(single, open_page):
    path = sc.prune_path(single.model, *single.prune)
    page = open_page(path)
    assert "has not been evaluated" in page.locator("#curve-note").inner_text()
    assert page.messages == []


def test_a_model_of_a_single_root_is_shown(open_page):
    X, y = [[0.0], [1.0]], [0, 1]
    path = sc.prune_path(DecisionTreeClassifier(max_depth=1).fit([[0.0], [0.0]], y), X, y)
    page = open_page(path)
    assert page.messages == []
    assert cell(page, "nodes", "after") == "1"


def test_the_copy_button_copies_code_that_runs(single, open_page, tmp_path):
    code = {"python": "numbers = [\n    {point},\n    2,\n]\ntotal = sum(numbers)"}
    file = tmp_path / "copied.html"
    write_report(single.path, file, False, code)
    page = open_page(single.path)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(file.as_uri())
    move_to(page, 1)
    page.locator("#code-list button").first.click()
    page.wait_for_function("document.querySelector('#code-list button').textContent !== 'copy'")
    assert page.locator("#code-list button").first.inner_text() == "copied"
    names = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    assert names["total"] == 3
