"""Check the arguments of `prune`, `prune_path` and the estimators before any work is done.

Limits are checked in `secateur.path.limits`; rows, targets and weights where they are read.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from secateur._util.numbers import is_number
from secateur._util.registry import advice_on, object_of
from secateur.costs import as_cost
from secateur.data.row_provider import RowProvider, Rows
from secateur.errors import InvalidInputError
from secateur.losses import as_loss
from secateur.path.confidence import check_confidence
from secateur.path.scoring import scoring_of
from secateur.selection.validation import Validation
from secateur.solvers import SOLVERS, Solver

_VALIDATIONS = ("auto", "oob", "refit", "cv")


class _Argument(NamedTuple):
    """Describe the valid values of an argument: a test, the values in words, and one of them as it is written."""

    is_valid: Callable[[Any], bool]
    needed: str
    example: str


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_seed(value: Any) -> bool:
    known = (np.random.Generator, np.random.RandomState, np.random.SeedSequence, np.random.BitGenerator)
    return value is None or isinstance(value, known) or (_is_whole(value) and value >= 0)


_ARGUMENTS = {
    "saved_as": _Argument(
        lambda v: v is None or (isinstance(v, str) and v.startswith(".")), "the suffix of a file", "'.onnx'"
    ),
    "regrow": _Argument(lambda v: isinstance(v, bool | np.bool_), "True or False", "True"),
    "prefit": _Argument(lambda v: isinstance(v, bool | np.bool_), "True or False", "True"),
    "keep_path": _Argument(lambda v: isinstance(v, bool | np.bool_), "True or False", "True"),
    "random_state": _Argument(_is_seed, "a whole number from 0 on or a NumPy Generator", "0"),
    "n_jobs": _Argument(
        lambda v: v is None or (_is_whole(v) and v != 0), "a number of threads, or -1 for all cores", "2"
    ),
    "progress": _Argument(
        lambda v: v is None or isinstance(v, bool) or callable(v), "True, False or a function", "False"
    ),
}
_OBJECTS: dict[str, Callable[[Any], Any]] = {
    "solver": lambda solver: solver if solver == "auto" else object_of(solver, SOLVERS, Solver, "solver"),
    "cost": as_cost,
    "loss": lambda loss: None if loss is None else as_loss(loss),
    "scoring": scoring_of,
    "confidence": lambda confidence: None if confidence is None else check_confidence(confidence),
}


def check_arguments(**given: Any) -> None:
    """Raise InvalidInputError if one of these arguments is not valid; the message says what to pass."""
    for name, value in given.items():
        if name in _OBJECTS:
            _OBJECTS[name](value)
        elif not _ARGUMENTS[name].is_valid(value):
            _, needed, example = _ARGUMENTS[name]
            raise InvalidInputError(f"{name}={value!r:.60}, but {needed} is needed. Pass {name}={example}.")


def checked_validation(validation: Any, rows: RowProvider, *, supervised: bool) -> Validation:
    """Return `validation` with a mask as an array; raise InvalidInputError if it is none of the known kinds.

    Values of fractions and masks are checked where the rows are split.
    """
    if isinstance(validation, str) and validation not in _VALIDATIONS:
        advice = f"Pass validation={validation}." if _is_fraction(validation) else advice_on(validation, _VALIDATIONS)
        raise InvalidInputError(
            f"validation={validation!r} is unknown; known are a fraction such as 0.25, a mask, (X_val, y_val), None "
            f"and {', '.join(map(repr, _VALIDATIONS))}. {advice}"
        )
    if isinstance(validation, tuple):
        _check_tuple(validation, rows, supervised)
    if isinstance(validation, list) and 2 <= len(validation) <= 4:
        raise InvalidInputError("validation is a list, but a tuple is needed. Pass validation=(X_val, y_val).")
    valid = validation is None or isinstance(validation, str | tuple)
    valid = valid or (isinstance(validation, np.ndarray) and validation.ndim == 1)
    if valid or (is_number(validation) and 0 < validation < 1):
        found: Validation = validation
        return found
    if np.ndim(validation) == 1 and np.asarray(validation).dtype == bool:
        return np.asarray(validation)
    if hasattr(validation, "shape") or hasattr(validation, "columns"):
        raise InvalidInputError(
            f"validation is a {type(validation).__name__} of rows without targets, but the loss needs both. Pass "
            "validation=(X_val, y_val)."
        )
    raise InvalidInputError(
        f"validation={validation!r:.60} is not valid. Pass a fraction between 0 and 1, a mask, (X_val, y_val), 'oob', "
        "'refit', 'cv', 'auto' or None."
    )


def _check_tuple(validation: tuple[Any, ...], rows: RowProvider, supervised: bool) -> None:
    # Rows of a cluster have their targets in a column.
    least = 2 if isinstance(rows, Rows) and supervised else 1
    if not least <= len(validation) <= 4 or (least == 2 and validation[1] is None):
        found = f"{len(validation)} parts" if len(validation) != 2 else "no y"
        raise InvalidInputError(
            f"validation is a tuple with {found}, but rows and targets are needed. Pass validation=(X_val, y_val), or "
            "(X_val, y_val, sample_weight)."
        )


def _is_fraction(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False
