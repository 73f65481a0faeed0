"""The documentation shows real source, names, links and output, and its site builds without a warning."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import secateur as sc

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SHOWN = [
    (page, source, code)
    for page in PAGES
    for source, code in re.findall(r'```python title="(.*?)"\n(.*?)```', page.read_text(), flags=re.S)
]
RUN = [
    page for page in [DOCS / "index.md", *sorted((DOCS / "cookbook").glob("*.md"))] if "```python\n" in page.read_text()
]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(("page", "source", "code"), SHOWN, ids=[f"{name_of(p)}:{s}" for p, s, _ in SHOWN])
def test_source_shown_in_the_docs_is_the_source(page, source, code):
    assert code in (ROOT / source).read_text()


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_the_layers_in_the_docs_are_the_ones_checked():
    import tomllib

    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    shown = re.search(r"```\n(cli\n.*?)```", (DOCS / "architecture.md").read_text(), flags=re.S).group(1)
    assert shown.split("\n")[:-1] == [layer.replace("secateur.", "") for layer in contract["layers"]]


@pytest.mark.parametrize(
    ("table", "page"),
    [
        (sc.solvers.SOLVERS, "docs/methods/index.md"),
        (sc.losses.LOSSES, "docs/methods/index.md"),
        (sc.costs.COSTS, "docs/methods/index.md"),
        (sc.solvers.SOLVERS, "README.md"),
    ],
)
def test_everything_in_a_table_is_documented(table, page):
    text = (ROOT / page).read_text()
    for name, kind in table.items():
        assert f"`{name}`" in text or kind.__name__ in text, name


def test_every_link_function_and_column_is_in_the_format_page():
    from secateur.forest.links import LINKS

    text = (DOCS / "format.md").read_text()
    assert all(f"`{name}`" in text for name in LINKS)


def test_public_names_exist():
    for name in sc.__all__:
        assert getattr(sc, name) is not None
    assert set(sc.__all__) <= set(dir(sc))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sc.nothing


def test_public_names_are_in_the_api_pages():
    shown = set(re.findall(r"^::: (\S+)$", "".join(p.read_text() for p in (DOCS / "api").glob("*.md")), flags=re.M))
    modules = {"costs", "losses", "serving", "solvers", "training"}
    wanted = {f"secateur.{name}" for name in set(sc.__all__) - modules}
    for module, table in (("solvers", sc.solvers.SOLVERS), ("losses", sc.losses.LOSSES), ("costs", sc.costs.COSTS)):
        wanted |= {f"secateur.{module}.{kind.__name__}" for kind in table.values()}
    wanted |= {f"secateur.serving.{name}" for name in sc.serving.__all__}
    wanted |= {f"secateur.training.{name}" for name in sc.training.__all__}
    assert wanted <= shown, wanted - shown


@pytest.mark.parametrize("solver", sc.solvers.SOLVERS)
def test_every_solver_has_a_page_with_formula_picture_and_failures(solver):
    text = (DOCS / "methods" / f"{solver}.md").read_text()
    assert text.startswith(f"# {sc.solvers.SOLVERS[solver].__name__}")
    assert re.search(r"```text\n.+?```", text, flags=re.S), "no formula"
    assert f"(pictures/{solver}.png)" in text
    assert re.search(r"^## When it fails\n\n\w", text, flags=re.M)
    assert 1000 < (DOCS / "methods" / "pictures" / f"{solver}.png").stat().st_size < 50_000
    assert f"({solver}.md)" in (DOCS / "methods" / "index.md").read_text()


@pytest.fixture(scope="module")
def models():
    """What the code on the pages of methods may use."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_val, y_train, y_val = train_test_split(X[:, :6], y, test_size=0.5, random_state=0)
    return {
        "sc": sc,
        "tree": DecisionTreeClassifier(random_state=0).fit(X_train, y_train),
        "forest": RandomForestClassifier(20, random_state=0).fit(X_train, y_train),
        "prices": [1.0] * 6,
        "X_train": X_train,
        "y_train": y_train,
        "X_val": X_val,
        "y_val": y_val,
    }


@pytest.mark.parametrize("solver", sc.solvers.SOLVERS)
def test_the_call_on_the_page_of_a_solver_runs(solver, models):
    if solver == "linear_program":
        pytest.importorskip("highspy")
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "methods" / f"{solver}.md").read_text(), flags=re.S)
    names = dict(models)
    exec(compile(code, f"{solver}.md", "exec"), names)
    made = [names[name] for name in ("path", "small") if name in names]
    assert made
    for one in made:
        forest = one[-1].forest if isinstance(one, sc.Path) else sc.as_forest(one)
        assert forest.n_nodes < sc.as_forest(models["forest"]).n_nodes


@pytest.mark.parametrize("page", RUN, ids=map(name_of, RUN))
def test_pages_print_what_they_show(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```(python|text)\n(.*?)```", page.read_text(), flags=re.S)
    if "onnxruntime" in page.read_text():
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "page"}, ""
    for language, text in blocks:
        if language == "text":
            assert printed == text
            printed = ""
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(text, page.name, "exec"), names)
        printed += output.getvalue()
    assert printed == "", "the page does not show what its last code prints"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it, and what the build said."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason="the site needs: pip install 'secateur[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's word about its own future
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    return folder, built


@pytest.mark.xdist_group("site")
def test_the_site_builds_without_a_warning(site):
    _, built = site
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr


@pytest.mark.xdist_group("site")
def test_the_site_has_every_page(site):
    folder, _ = site
    expected = {p.relative_to(DOCS).with_suffix(".html").as_posix() for p in DOCS.rglob("*.md")}
    expected |= {f"benchmarks/{p.stem}.html" for p in (ROOT / "benchmarks" / "results").glob("*.md")}
    expected |= {"benchmarks/index.html", "gallery/index.html", "gallery/examples.html", "changelog.html"}
    built = {p.relative_to(folder).as_posix() for p in folder.rglob("*.html")}
    assert expected <= built, expected - built
    gallery = (folder / "gallery" / "index.html").read_text()
    for script in (ROOT / "examples").glob("plot_*.py"):
        section = gallery.partition(f'<h2 id="{script.stem}">')[2].partition("<h2")[0]
        assert "<img" in section, f"run docs/site/pictures.py {script.stem.removeprefix('plot_')}"


@pytest.mark.xdist_group("site")
def test_the_site_loads_nothing_from_the_network(site):
    folder, _ = site
    for page in folder.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r'(?:src|href)\s*=\s*"?(?:https?:)?//', tag), (page.name, tag)
    for sheet in folder.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text()), sheet.name
