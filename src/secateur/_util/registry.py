"""Look up objects by name, with an optional number after a colon, as in "quantile:0.9"."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from secateur.errors import InvalidInputError

T = TypeVar("T")


def named(text: str, table: Mapping[str, Callable[..., T]], what: str) -> T:
    """Construct the object with a name in `table`, with the number as its argument if there is one.

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
            "Use one of these."
        ) from error
