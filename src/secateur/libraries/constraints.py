"""Convert monotonic constraints, in the forms that libraries accept, to one sign per feature."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import InvalidInputError


def monotone_signs(constraints: Any, n_features: int, names: Sequence[str] | None = None) -> NDArray[np.int8] | None:
    """Return 1, -1 or 0 for each feature, (n_features,); None if no feature is constrained.

    Parameters
    ----------
    constraints : sequence of numbers, text such as "(1,0,-1)", mapping from names to numbers, or None
        Only the signs of the numbers count. Features after the last number are not constrained.
    n_features : int
    names : sequence of str, optional
        The names by which a mapping refers to features.

    Raises
    ------
    InvalidInputError
        If the constraints do not fit the features, as after a change of parameters of a trained model.
    """
    if isinstance(constraints, str):
        constraints = re.findall(r"[-+]?\d+", constraints)
    signs = np.zeros(n_features, np.int8)
    try:
        if isinstance(constraints, Mapping):
            index = {name: i for i, name in enumerate(names or ())}
            for name, number in constraints.items():
                signs[index[name]] = np.sign(int(number))
        elif constraints is not None:
            given = [np.sign(int(number)) for number in constraints]
            # Raises ValueError if there are too many.
            signs[:] = given + [0] * (n_features - len(given))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"The model has the monotonic constraints {constraints!r:.80}, which do not fit its {n_features} features. "
            "secateur needs the constraints of training. Restore them with set_params, or train the model again."
        ) from error
    return signs if signs.any() else None
