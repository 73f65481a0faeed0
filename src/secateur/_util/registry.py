"""Things that have names, some with a number behind a colon, as in "quantile:0.9"."""

from collections.abc import Callable, Mapping
from typing import TypeVar

Thing = TypeVar("Thing")


def named(text: str, table: Mapping[str, Callable[..., Thing]], what: str) -> Thing:
    """Return what the entry of a table makes, from the number if there is one.

    Raises
    ------
    ValueError
        If the name is unknown, or has no place for a number.
    """
    name, _, number = text.partition(":")
    try:
        return table[name](*([float(number)] if number else []))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{what}={text!r} is unknown; known are {', '.join(table)}, some with a number behind a colon. "
            "Use one of these."
        ) from error
