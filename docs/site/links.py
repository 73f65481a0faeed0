"""Links that lead out of docs/ on a code host, mended for the site.

Pages are written to be read in the repository: a link to a benchmark table is `../benchmarks/results/budgets.md`. On
the site that table is the page `benchmarks/budgets.md`; `place` knows where everything is.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]*)(#[^)\s]*)?\)")
_PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks/index.md",
    "benchmarks/results": "benchmarks/index.md",
    "examples": "gallery/index.md",
}


def place(path: str) -> str | None:
    """Return where on the site a file of the repository is; None if nowhere."""
    if path in _PLACES:
        return _PLACES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("benchmarks/results/"):
        return "benchmarks/" + posixpath.basename(path)
    if path.startswith("examples/"):
        name = posixpath.basename(path).removesuffix(".py")
        return f"gallery/index.md#{name}" if name.startswith("plot_") else f"gallery/examples.md#{name}"
    return None


def rehome(markdown: str, source: str, page: str) -> str:
    """Return the text of the file `source` of the repository with the links it needs as `page` of the site."""

    def mended(link: re.Match[str]) -> str:
        found = place(posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1])))
        if found is None:
            return link[0]
        path, _, anchor = found.partition("#")
        target = posixpath.relpath(path, posixpath.dirname(page) or ".")
        return f"]({target}{link[2] or (anchor and '#' + anchor)})"

    return _LINK.sub(mended, markdown)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Mend a page that is written in docs/; those made by other hooks are mended by them."""
    if page.file.generated_by:
        return markdown
    return rehome(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)
