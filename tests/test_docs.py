"""The documentation shows real source, real names and real links."""

import re
from pathlib import Path

import pytest

import secateur as sc

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SHOWN = [
    (page, source, code)
    for page in PAGES
    for source, code in re.findall(r'```python title="(.*?)"\n(.*?)```', page.read_text(), flags=re.S)
]


@pytest.mark.parametrize(("page", "source", "code"), SHOWN, ids=[f"{p.name}:{s}" for p, s, _ in SHOWN])
def test_source_shown_in_the_docs_is_the_source(page, source, code):
    assert code in (ROOT / source).read_text()


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_layers_in_the_docs_are_the_ones_checked():
    import tomllib

    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    shown = re.search(r"```\n(cli\n.*?)```", (ROOT / "docs/architecture.md").read_text(), flags=re.S).group(1)
    assert shown.split("\n")[:-1] == [layer.replace("secateur.", "") for layer in contract["layers"]]


@pytest.mark.parametrize(
    ("table", "page"),
    [
        (sc.solvers.SOLVERS, "docs/methods.md"),
        (sc.losses.LOSSES, "docs/methods.md"),
        (sc.costs.COSTS, "docs/methods.md"),
        (sc.solvers.SOLVERS, "README.md"),
    ],
)
def test_everything_in_a_table_is_documented(table, page):
    text = (ROOT / page).read_text()
    for name, kind in table.items():
        assert f"`{name}`" in text or kind.__name__ in text, name


def test_every_link_function_and_column_is_in_the_format_page():
    from secateur.links import LINKS

    text = (ROOT / "docs/format.md").read_text()
    assert all(f"`{name}`" in text for name in LINKS)


def test_public_names_exist():
    for name in sc.__all__:
        assert getattr(sc, name) is not None
    assert set(sc.__all__) <= set(dir(sc))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = sc.nothing
