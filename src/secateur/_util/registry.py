"""Look up objects by name, with an optional number after a colon, as in "quantile:0.9"."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from secateur.errors import InvalidInputError

T = TypeVar("T")


def named(text: str, table: Mapping[str, Callable[..., T]], what: str, *, also: Iterable[str] = ()) -> T:
    """Construct the object with a name in `table`, with the number as its argument if there is one.

    `also` are further names to suggest if the name is unknown.

    Raises
    ------
    InvalidInputError
        If the name is unknown, does not take a number, or takes another one.
    """
    name, _, number = text.partition(":")
    try:
        return table[name](*([float(number)] if number else []))
    except InvalidInputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what}={text!r} is unknown. The known names are {', '.join(table)}; some take a number after a colon. "
            f"{advice_on(name, [*table, *also])}"
        ) from error


def advice_on(name: str, known: Iterable[str]) -> str:
    """Return a sentence that suggests the known names that are near an unknown one."""
    similar = [other for other in get_close_matches(name, list(known), 3) if other != name]
    return f"Did you mean {' or '.join(similar)}?" if similar else "Use one of these."
