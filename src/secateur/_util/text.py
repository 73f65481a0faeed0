"""Names from models and files as text that is safe to show: in messages, on a terminal, in pictures.

A name may hold anything: escape sequences that take over a terminal, marks that turn the direction of what follows,
ten thousand letters.
"""

from collections.abc import Sequence

_HARMLESS = "\u200c\u200d\u00a0"  # joiners, which some scripts need, and the space that does not break
_QUOTED, _SHOWN = 60, 200  # letters of a name in a message, and on a page


def printable(text: str, keep: str = "") -> str:
    """Return a text with every character that is not to be seen, but those in `keep`, written as Python writes it."""
    if text.isprintable():
        return text
    shown = keep + _HARMLESS
    return "".join(c if c.isprintable() or c in shown else c.encode("unicode_escape").decode() for c in text)


def shortened(name: str, letters: int) -> str:
    """Return a name of at most so many letters."""
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


def fit_to_show(name: str) -> str:
    """Return a name as pages and pictures show it: printable, and its beginning if it is very long."""
    return shortened(printable(name), _SHOWN)


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, at most ten of them, and of each its beginning."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(repr(shortened(name, _QUOTED)) for name in names[:10]) + more
