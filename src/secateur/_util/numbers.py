"""Check arguments that are numbers, and read sizes of files such as "5MB"."""

import math
import re
from contextlib import suppress
from numbers import Real
from typing import Any

from secateur.errors import InvalidInputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SIZE = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([kmg]i?|)(b|)\s*", re.IGNORECASE)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, of Python or NumPy, and not NaN; truth values are none."""
    return isinstance(value, Real) and type(value).__name__ not in ("bool", "bool_") and not math.isnan(value)


def check_number(name: str, value: Any, example: Any) -> None:
    """Raise InvalidInputError if an argument is not a number; if it is a number as text, the message has the number."""
    if not is_number(value):
        with suppress(ValueError, TypeError):
            example = float(value) if isinstance(value, str) else example
        raise InvalidInputError(
            f"{name}={value!r:.60} is {_kind(value)}, but a number is needed. Pass {name}={example:g}."
        )


def bytes_of(name: str, text: str) -> int:
    """Return a size as a number of bytes: "5MB" is 5,000,000 and "5MiB" is 5 · 2²⁰.

    Raises
    ------
    InvalidInputError
        If the text is no size.
    """
    found = _SIZE.fullmatch(text)
    size = 0 if found is None else math.floor(float(found[1]) * _UNITS[found[2].lower()])
    if size < 1:
        raise InvalidInputError(
            f"{name}={text!r:.60} is not a size. Pass a number of bytes, or a text such as '500kB', '5MB' or '1.5MiB'."
        )
    return size


def _kind(value: Any) -> str:
    if isinstance(value, float):
        return "not a number"
    return "text" if isinstance(value, str) else f"of type {type(value).__name__}"
