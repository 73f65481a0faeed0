"""Write self-contained HTML for notebooks: a title, tables, a footer. Colours are those of the notebook."""

from collections.abc import Iterable, Sequence
from html import escape

_LINE = "#8f8f8f"
_TABLE = "border-collapse:collapse;font-size:90%;color:inherit;background:none"
_CELL = "text-align:right;padding:1px 8px;border:none;white-space:nowrap"


def page(title: str, body: str, footer: str) -> str:
    """Return HTML with a title, a body that is already HTML, and a footer line."""
    return (
        f'<div style="color:inherit"><div><b>{escape(title)}</b></div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">{body}</div>'
        f'<div style="font-size:85%;opacity:.75">{escape(footer)}</div></div>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; without a head, of the rows alone."""
    names = "".join(f'<th style="{_CELL};font-weight:600">{escape(name)}</th>' for name in head)
    cells = ["".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) for row in rows]
    body = "".join(f'<tr style="background:none">{row}</tr>' for row in cells)
    top = f'<thead><tr style="border-bottom:1px solid {_LINE};background:none">{names}</tr></thead>' if head else ""
    # A narrow screen scrolls the table, not the page.
    return (
        f'<div style="overflow-x:auto;max-width:100%"><table style="{_TABLE}">{top}<tbody>{body}</tbody></table></div>'
    )
