"""Sanitise names from models and files for messages, terminals and figures.

A name may contain terminal escape sequences or bidirectional control characters, and may be arbitrarily long.
"""

from collections.abc import Sequence

# Zero-width joiners, which some scripts need, and the no-break space.
_HARMLESS = "\u200c\u200d\u00a0"
# Maximum number of characters of a name in a message, and in a report or figure.
_MAX_QUOTED, _MAX_SHOWN = 60, 200


def printable(text: str, keep: str = "") -> str:
    """Return text in which non-printable characters, except those in `keep`, are Python escape sequences."""
    if text.isprintable():
        return text
    shown = keep + _HARMLESS
    return "".join(c if c.isprintable() or c in shown else c.encode("unicode_escape").decode() for c in text)


def shortened(name: str, max_length: int) -> str:
    """Truncate a name to at most `max_length` characters."""
    return name if len(name) <= max_length else f"{name[: max_length - 1]}…"


def fit_to_show(name: str) -> str:
    """Return a name as shown in reports and figures: printable, and truncated if it is very long."""
    return shortened(printable(name), _MAX_SHOWN)


def quoted(names: Sequence[str]) -> str:
    """Return at most ten names in quotes, each truncated."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(repr(shortened(name, _MAX_QUOTED)) for name in names[:10]) + more
