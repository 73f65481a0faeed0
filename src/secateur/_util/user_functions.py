"""Decorate the functions that users call: near names for unknown keywords, and NumPy's default handling of errors.

`warn` attributes a warning to the line of the user that called one of them.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from secateur._util.registry import nearest

F = TypeVar("F", bound=Callable[..., Any])

_PACKAGE = str(Path(__file__).parents[1])
_HINTS = {("select", "tolerance"): "Pass it to evaluate.", ("prune_path", "limit"): "Pass it to prune or path.select."}


def user_function(function: F) -> F:
    """Return the function with advice on unknown keywords, independent of the user's `np.seterr`.

    Underflow and infinities are results like others here; with `np.seterr(all="raise")` they would be errors.
    """
    parameters = inspect.signature(function).parameters
    takes_others = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not takes_others and not kwargs.keys() <= parameters.keys():
            check_names(kwargs, function)
        with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
            return function(*args, **kwargs)

    return cast(F, call)


def check_names(given: Mapping[str, Any], function: Callable[..., Any], more: Iterable[str] = ()) -> None:
    """Raise TypeError if a keyword is unknown to a function, as Python does, and suggest the nearest name."""
    known = [name for name in (*inspect.signature(function).parameters, *more) if name not in ("self", "limits")]
    for name in given:
        if name in known:
            continue
        hint = _HINTS.get((function.__name__, "limit" if name.startswith("max_") else name))
        close = nearest(name, known)
        advice = hint or (f"Did you mean {close[0]!r}?" if close else f"It takes {', '.join(known)}.")
        raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}. {advice}")


def warn(message: str, category: type[Warning]) -> None:
    """Warn as if the line outside secateur did that called it."""
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)
