"""Rewrite links that lead out of docs/ in the repository to the pages of the site.

Pages are written to be read in the repository: a link to a benchmark table is `../benchmarks/results/budgets.md`. On
the site that table is the page `benchmarks/budgets.md`; `page_of` maps files to pages.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]*)(#[^)\s]*)?\)")
_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/index.md",
    "benchmarks/results": "benchmarks/index.md",
    "examples": "gallery/index.md",
}


def page_of(path: str) -> str | None:
    """Return the page of the site that shows a file of the repository, or None."""
    if path in _PAGES:
        return _PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("benchmarks/results/"):
        return "benchmarks/" + posixpath.basename(path)
    if path.startswith("examples/"):
        name = posixpath.basename(path).removesuffix(".py")
        return f"gallery/index.md#{name}" if name.startswith("plot_") else f"gallery/examples.md#{name}"
    return None


def rehome(markdown: str, source: str, page: str) -> str:
    """Return the text of the file `source` of the repository with its links rewritten for `page` of the site."""

    def rewritten(link: re.Match[str]) -> str:
        found = page_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1])))
        if found is None:
            return link[0]
        path, _, anchor = found.partition("#")
        target = posixpath.relpath(path, posixpath.dirname(page) or ".")
        return f"]({target}{link[2] or (anchor and '#' + anchor)})"

    return _LINK.sub(rewritten, markdown)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite the links of a page in docs/; other hooks rewrite those of the pages they generate."""
    if page.file.generated_by:
        return markdown
    return rehome(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)
