"""The documentation matches source, names, links and output, and its site builds without a warning."""

import contextlib
import importlib.util
import io
import os
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import secateur as sc
from secateur.libraries import LIBRARIES
from secateur.libraries.adapter import Adapter

ROOT = Path(__file__).parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SHOWN = [
    (page, source, code)
    for page in PAGES
    for source, code in re.findall(r'```python title="(.*?)"\n(.*?)```', page.read_text(), flags=re.S)
]
RUN = [
    page
    for page in [
        *(DOCS / name for name in ("index.md", "promises.md", "deploy.md", "cost_sensitive.md")),
        *sorted((DOCS / "cookbook").glob("*.md")),
    ]
    if "```python\n" in page.read_text()
]
TABLES = {"solvers": sc.solvers.SOLVERS, "losses": sc.losses.LOSSES, "costs": sc.costs.COSTS}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def generator():
    """The script that generates tables, navigation and API pages."""
    spec = importlib.util.spec_from_file_location("tables", DOCS / "site" / "tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("page", "source", "code"), SHOWN, ids=[f"{name_of(p)}:{s}" for p, s, _ in SHOWN])
def test_source_shown_in_the_docs_is_the_source(page, source, code):
    assert code in (ROOT / source).read_text()


def test_links_between_pages_have_targets():
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_modules_and_tests_named_on_the_page_about_papers_exist():
    paths = re.findall(r"`([\w/]+\.py)`", (DOCS / "papers.md").read_text())
    assert len(set(paths)) > 30
    roots = (ROOT / "src" / "secateur", ROOT / "tests")
    assert [path for path in paths if not any((root / path).is_file() for root in roots)] == []


def test_the_layers_in_the_docs_are_the_ones_checked():
    import tomllib

    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    shown = re.search(r"```\n(cli\n.*?)```", (DOCS / "architecture.md").read_text(), flags=re.S).group(1)
    assert shown.split("\n")[:-1] == [layer.replace("secateur.", "") for layer in contract["layers"]]


def test_the_functions_on_the_way_of_a_row_exist():
    walk = (DOCS / "architecture.md").read_text().partition("## The way of one row\n")[2].partition("\n## ")[0]
    names = set(re.findall(r"`((?:libraries|forest|solvers|data|problem|losses|costs|kernels|path)\.[\w.]+)`", walk))
    assert len(names) > 10
    for name in names:
        pkgutil.resolve_name(f"secateur.{name}")


def test_generated_tables_are_up_to_date(generator):
    for page in generator.PAGES:
        text = page.read_text()
        assert "<!-- generated: " in text
        assert generator.updated(text) == text, f"run make tables: {name_of(page)} is out of date"


@pytest.mark.parametrize(
    ("page", "kinds"),
    [
        ("README.md", sc.solvers.SOLVERS.values()),
        ("docs/methods/index.md", [kind for table in TABLES.values() for kind in table.values()]),
    ],
)
def test_everything_in_a_table_has_its_row(page, kinds):
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("|")]
    for kind in kinds:
        cells = (f"| [{kind.__name__}](", f"| `{kind.name}` | {kind.__name__} |")
        assert sum(row.startswith(cells) for row in rows) == 1, kind


def test_every_library_has_its_row():
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("|")]
    for package in LIBRARIES:
        assert sum(f"(`{package}`) |" in row for row in rows) == 1, package


def test_everything_an_adapter_offers_is_in_the_page_about_libraries():
    text = (DOCS / "add_a_library.md").read_text()
    names = [name for name in {**vars(Adapter), **Adapter.__annotations__} if not name.startswith("_")]
    assert [name for name in names if not re.search(rf"`{name}\b|def {name}\(", text)] == []


def test_every_solver_is_in_the_navigation_once(generator):
    class Config:
        nav = ({"Methods": "methods/index.md"}, {"Other": "other.md"})

    methods, other = generator.on_config(Config()).nav
    index, *groups = methods["Methods"]
    entries = [entry for group in groups for pages in group.values() for entry in pages]
    assert index == "methods/index.md"
    assert other == {"Other": "other.md"}
    assert {name: page for entry in entries for name, page in entry.items()} == {
        kind.__name__: f"methods/{name}.md" for name, kind in sc.solvers.SOLVERS.items()
    }
    assert len(entries) == len(sc.solvers.SOLVERS)


def test_a_page_without_its_summary_is_an_error(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    (tmp_path / "docs" / "methods").mkdir(parents=True)
    (tmp_path / "docs" / "methods" / "weakest_link.md").write_text("# WeakestLink\n\nNo table.\n")
    with pytest.raises(ValueError, match="also known as, finds, guarantee"):
        generator.summary(sc.solvers.WeakestLink)


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


def test_public_names_are_in_the_api_pages(generator):
    pages = "".join(generator.on_page_markdown(page.read_text()) for page in (DOCS / "api").glob("*.md"))
    shown = set(re.findall(r"^::: (\S+)$", pages, flags=re.M))
    modules = {"costs", "losses", "serving", "solvers", "training"}
    wanted = {f"secateur.{name}" for name in set(sc.__all__) - modules}
    for module, table in TABLES.items():
        wanted |= {f"secateur.{module}.{kind.__name__}" for kind in table.values()}
    wanted |= {f"secateur.serving.{name}" for name in sc.serving.__all__}
    wanted |= {f"secateur.training.{name}" for name in sc.training.__all__}
    assert wanted <= shown, wanted - shown


@pytest.mark.parametrize("solver", sc.solvers.SOLVERS)
def test_every_solver_has_a_page_with_formula_and_failures(solver):
    text = (DOCS / "methods" / f"{solver}.md").read_text()
    assert text.startswith(f"# {sc.solvers.SOLVERS[solver].__name__}")
    assert re.search(r"```text\n.+?```", text, flags=re.S), "no formula"
    assert re.search(r"^## When it fails\n\n(\w|\[)", text, flags=re.M)


@pytest.mark.parametrize("solver", [name for name in sc.solvers.SOLVERS if (EXAMPLES / f"plot_{name}.py").exists()])
def test_the_picture_of_a_solver_is_made_and_shown(solver):
    assert f"(pictures/{solver}.png)" in (DOCS / "methods" / f"{solver}.md").read_text()
    assert 1000 < (DOCS / "methods" / "pictures" / f"{solver}.png").stat().st_size < 50_000


@pytest.fixture(scope="module")
def models():
    """The names that the code on the pages of methods may use."""
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


# Six seconds of processor time, for twenty prunings, some of them whole paths of exact solvers.
def test_the_calls_of_how_to_choose_run(models):
    names = {**models, "model": models["forest"], "X": models["X_train"], "y": models["y_train"]}
    calls = re.findall(r"`(?:\w+ = )?(sc\.[^`…]+\))`", (DOCS / "choose.md").read_text())
    assert len(calls) > 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some limits leave nothing to prune of so small a forest
        for call in calls:
            if not call.startswith("sc.report"):
                assert eval(call, names) is not None, call


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
    """The site as `make docs` builds it, and the finished process."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package, reason="the site needs: pip install 'secateur[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # silences a notice of the theme
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
    expected |= {
        "benchmarks/index.html",
        "gallery/index.html",
        "gallery/examples.html",
        "changelog.html",
        "security.html",
    }
    built = {p.relative_to(folder).as_posix() for p in folder.rglob("*.html")}
    assert expected <= built, expected - built
    gallery = (folder / "gallery" / "index.html").read_text()
    thumbnails = gallery.partition('<div class="thumbnails">')[2].partition("</div>")[0]
    for script in (EXAMPLES).glob("plot_*.py"):
        assert re.search(rf'<a href="#{script.stem}"><img ', thumbnails), script
        section = gallery.partition(f'<h2 id="{script.stem}">')[2].partition("<h2")[0]
        assert "<img" in section, f"run docs/site/pictures.py {script.stem.removeprefix('plot_')}"


@pytest.mark.xdist_group("site")
def test_reference_method_and_example_of_a_solver_name_each_other(site):
    folder, _ = site
    pages = {name: (folder / f"{name}.html").read_text() for name in ("api/solvers", "gallery/index")}
    for solver, kind in sc.solvers.SOLVERS.items():
        example = (EXAMPLES / f"plot_{solver}.py").exists()
        method = (folder / "methods" / f"{solver}.html").read_text()
        assert f"api/solvers.html#secateur.solvers.{kind.__name__}" in method
        assert f"methods/{solver}.html" in pages["api/solvers"]
        for page in [method, pages["api/solvers"]] if example else []:
            assert f"gallery/index.html#plot_{solver}" in page
        assert not example or f"methods/{solver}.html" in pages["gallery/index"]


@pytest.mark.xdist_group("site")
def test_the_site_loads_nothing_from_the_network(site):
    folder, _ = site
    for page in folder.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r'(?:src|href)\s*=\s*"?(?:https?:)?//', tag), (page.name, tag)
    for sheet in folder.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text()), sheet.name
