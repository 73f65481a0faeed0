"""Look up objects by name, with an optional number after a colon, as in "quantile:0.9"."""

from collections.abc import Callable, Mapping
from typing import TypeVar

Thing = TypeVar("Thing")


def named(text: str, table: Mapping[str, Callable[..., Thing]], what: str) -> Thing:
    """Construct the object with a name in `table`, with the number as its argument if there is one.

    Raises
    ------
    ValueError
        If the name is unknown or does not take a number.
    """
    name, _, number = text.partition(":")
    try:
        return table[name](*([float(number)] if number else []))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{what}={text!r} is unknown; known are {', '.join(table)}, some with a number behind a colon. "
            "Use one of these."
        ) from error
