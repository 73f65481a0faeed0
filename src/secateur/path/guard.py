"""Guard limits on the loss against luck: the cheapest of many points was measured better than it is.

A limit holds for a point if it holds for the measured loss plus a multiple of the standard error of its difference from
the unpruned model. The first multiple, the normal quantile of 80 %, keeps the limit in most problems. Few rows rarely
contain those on which a pruning is far worse, and then the standard error is too small as well: with the second
multiple, the limit may be exceeded by at most a tenth of the unpruned loss. The benchmark `limits_kept` measures both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FAR = 0.1
"""How far beyond a limit is far, as a fraction of the unpruned loss."""
_POWER = 0.84
"""Added standard errors with which the number of rows needed would do in 80 % of the draws."""


@dataclass(frozen=True)
class Guard:
    """Add a margin to measured losses.

    Attributes
    ----------
    likely : float
        Number of standard errors that are added.
    far : float
        Number of standard errors with which the limit is exceeded by at most a tenth of the unpruned loss; not more
        than `likely` for no such condition.
    """

    likely: float = 0.0
    far: float = 0.0

    def upper(self, loss: Any, error: Any, scale: float) -> Any:
        """Return the losses to compare with a limit, given the standard errors and the absolute unpruned loss."""
        return np.maximum(loss + self.likely * error, loss + self.far * error - _FAR * scale)

    def rows_needed(
        self, loss: NDArray[np.float64], error: NDArray[np.float64], scale: float, bound: float, n_rows: int
    ) -> int | None:
        """Return how many rows would do for one of the points, if their losses are true; None if all are too large.

        The standard error falls with the square root of the number of rows, and the measured loss varies, too.
        """
        margin = bound - loss
        good = margin > 0
        if not good.any():
            return None
        likely, far = ((self.likely + _POWER) / margin[good]), ((self.far + _POWER) / (margin[good] + _FAR * scale))
        return int(np.ceil(n_rows * float(((np.maximum(likely, far) * error[good]) ** 2).min())))


NO_GUARD = Guard()


def guard_for(clones: int | None, given: float | None = None) -> Guard:
    """Return the default guard, or a given number of standard errors."""
    if given is not None:
        return Guard(given, given)
    # The loss of a clone only approximates the loss of the model.
    return Guard(1.0 if clones else 0.84, 3.0)
