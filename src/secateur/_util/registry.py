"""Look up objects by name, with an optional number after a colon, as in "quantile:0.9"."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

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
    similar = [other for other in nearest(name, known) if other != name]
    return f"Did you mean {' or '.join(similar)}?" if similar else "Use one of these."


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three known names that are near an unknown one; names of classes count as in `WeakestLink`."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_").replace(" ", "_")
    return get_close_matches(plain, list(known), 3)


def object_of(choice: Any, table: Mapping[str, type], kind: type, what: str) -> Any:
    """Return the object given as such or by its name in `table`; None stays None.

    Raises
    ------
    InvalidInputError
        If the name is unknown, or something else was given: a class, or an object of another kind.
    """
    if choice is None or isinstance(choice, kind):
        return choice
    if isinstance(choice, str):
        if choice in table:
            return table[choice]()
        raise InvalidInputError(
            f"{what}={choice!r} is unknown; known are {', '.join(table)}. {advice_on(choice, table)}"
        )
    if isinstance(choice, type) and issubclass(choice, kind):
        raise InvalidInputError(
            f"{what}={choice.__name__} is a class, but an object or a name is needed. Pass {what}={choice.__name__}() "
            f"or {what}={choice.name!r}."  # type: ignore[attr-defined]
        )
    raise InvalidInputError(
        f"{what}={choice!r:.60} is of type {type(choice).__name__}, but a {kind.__name__} or one of the names "
        f"{', '.join(table)} is needed. Pass one of these."
    )
