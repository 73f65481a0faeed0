"""Generate the lists of solvers, losses, costs and libraries in the documentation: python docs/site/tables.py.

The script rewrites the blocks between `<!-- generated: NAME -->` and `<!-- end -->` of the pages in `PAGES`. Losses and
costs come from the first lines of their docstrings, solvers from the table at the top of their pages in docs/methods/,
libraries from the table in docs/libraries.md. As a hook of MkDocs, this module adds the pages of the solvers to the
navigation and fills the API pages.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from posixpath import relpath
from typing import Any, NamedTuple

from secateur.costs import COSTS
from secateur.losses import LOSSES
from secateur.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "methods" / "index.md")
GROUPS = {
    "single_tree": "Trees",
    "node_weights": "Trees",
    "ensemble": "Ensembles",
    "whole_trees": "Ensembles",
    "feature_cost": "Feature cost",
}
"""The heading under which the solvers of each folder of `secateur.solvers` are listed."""

_SUMMARY = re.compile(
    r"\A# .+\n\n\| also known as \| finds \| guarantee \|\n\|---\|---\|---\|\n\| (.+) \| (.+) \| (.+) \|\n"
)
_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", flags=re.S)
_API_ENTRIES = re.compile(r"^<!-- all (solvers|losses|costs) -->$", flags=re.M)


class Summary(NamedTuple):
    """The table at the top of a solver's page."""

    known_as: str
    finds: str
    guarantee: str


def main() -> None:
    """Rewrite the generated blocks of all pages."""
    for page in PAGES:
        text = page.read_text()
        if updated(text) != text:
            page.write_text(updated(text))
            logging.info("updated %s", page.relative_to(ROOT))


def updated(text: str) -> str:
    """Return the text of a page with its generated blocks made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{_BLOCKS[block[2]]()}\n{block[3]}", text)


def on_config(config: Any) -> Any:
    """Add the pages of the solvers to the navigation, below the page that lists them."""
    groups = [{title: [{kind.__name__: page(kind)} for kind in kinds]} for title, kinds in grouped().items()]
    config.nav = [{"Methods": ["methods/index.md", *groups]} if "Methods" in entry else entry for entry in config.nav]
    return config


def on_page_markdown(markdown: str, page: Any = None, **_: Any) -> str:
    """Replace `<!-- all solvers -->` and the like on an API page by one entry per class, and link a solver's pages."""
    folder, _, name = page.file.src_uri.removesuffix(".md").partition("/") if page else ("", "", "")
    if folder == "methods" and name in SOLVERS:
        markdown += f"\n{see_also(name, folder, 'method')}\n"
    return _API_ENTRIES.sub(lambda found: "\n".join(api_entries(found[1])), markdown)


def see_also(solver: str, folder: str, leave_out: str) -> str:
    """Return links to the reference, the method and the example of a solver, from a page in a folder of docs/."""
    kind = SOLVERS[solver].__name__
    pages = {
        "reference": (f"[`{kind}` in the API]", f"api/solvers.md#secateur.solvers.{kind}"),
        "method": (f"[the method {kind}]", f"methods/{solver}.md"),
        "example": ("[its example]", f"gallery/index.md#plot_{solver}"),
    }
    if not (ROOT / "examples" / f"plot_{solver}.py").exists():
        del pages["example"]
    links = [f"{text}({relpath(target, folder)})" for name, (text, target) in pages.items() if name != leave_out]
    return f"**See also:** {', '.join(links)}."


def api_entries(module: str) -> Iterable[str]:
    """Yield the mkdocstrings directive of every class in the table of a module."""
    tables: Mapping[str, Mapping[str, type]] = {"solvers": SOLVERS, "losses": LOSSES, "costs": COSTS}
    for kind in tables[module].values():
        members = "false" if module == "solvers" else _own_methods(kind)
        after = f"\n{see_also(kind.name, 'api', 'reference')}\n" if module == "solvers" else ""
        yield f"::: secateur.{module}.{kind.__name__}\n    options:\n      members: {members}\n{after}"


def grouped() -> dict[str, list[type]]:
    """Return the solvers by the heading they are listed under, in the order of their table."""
    groups: dict[str, list[type]] = {title: [] for title in GROUPS.values()}
    for kind in SOLVERS.values():
        groups[GROUPS[kind.__module__.split(".")[2]]].append(kind)
    return groups


def page(solver: Any) -> str:
    """Return the page of a solver, relative to docs/."""
    return f"methods/{solver.name}.md"


def summary(solver: Any) -> Summary:
    """Return the table at the top of a solver's page."""
    file = ROOT / "docs" / page(solver)
    found = _SUMMARY.match(file.read_text())
    if found is None:
        raise ValueError(f"{file} must start with a title and the table: also known as, finds, guarantee.")
    return Summary(*found.groups())


def _solvers() -> str:
    """Return the table of solvers for the README."""
    rows = [
        [f"[{kind.__name__}](docs/{page(kind)})", summary(kind).known_as, summary(kind).guarantee]
        for kinds in grouped().values()
        for kind in kinds
    ]
    return _table(["solver", "also known as", "guarantee"], rows)


def _methods() -> str:
    """Return the table of solvers by group, for the index of methods."""
    rows: list[list[str]] = []
    for title, kinds in grouped().items():
        rows.append([f"**{title}**", "", "", ""])
        rows += [[f"[{kind.__name__}]({Path(page(kind)).name})", *summary(kind)] for kind in kinds]
    return _table(["solver", "also known as", "finds", "guarantee"], rows)


def _losses() -> str:
    """Return the table of losses."""
    rows = [[f"`{name}`", kind.__name__, kind.task, _first_line(kind)] for name, kind in LOSSES.items()]
    return _table(["name", "class", "for", "loss of a row"], rows)


def _costs() -> str:
    """Return the table of costs."""
    rows = [[f"`{name}`", kind.__name__, _first_line(kind)] for name, kind in COSTS.items()]
    return _table(["name", "class", "cost of a model"], rows)


def _libraries() -> str:
    """Return the table of libraries at the top of docs/libraries.md."""
    found = re.search(r"^\| library \|(?:.*\n)+?(?=\n)", (ROOT / "docs" / "libraries.md").read_text(), flags=re.M)
    if found is None:
        raise ValueError("docs/libraries.md must have a table whose first column is `library`.")
    return found[0]


_BLOCKS: dict[str, Callable[[], str]] = {
    "solvers": _solvers,
    "methods": _methods,
    "losses": _losses,
    "costs": _costs,
    "libraries": _libraries,
}


def _table(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    lines.insert(1, "|---" * len(header) + "|")
    return "\n".join(lines) + "\n"


def _first_line(kind: type) -> str:
    """Return the first line of a docstring without its full stop, safe inside a table."""
    return (kind.__doc__ or "").splitlines()[0].rstrip(".").replace("|", r"\|")


def _own_methods(kind: type) -> str:
    """Return the public methods that a class adds to its base class, as a YAML list; "false" if there are none."""
    base = kind.__mro__[1]
    names = [name for name, value in vars(kind).items() if callable(value) and not hasattr(base, name)]
    public = [name for name in names if not name.startswith("_")]
    return f"[{', '.join(public)}]" if public else "false"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
