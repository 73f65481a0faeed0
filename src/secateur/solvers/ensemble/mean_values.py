"""Refit the leaf values of a pruned forest that averages its trees, within the range of its predictions."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secateur.costs import NodeCost
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import additive, fill_splits
from secateur.solvers.ensemble.mean_of_trees import MeanDescent
from secateur.solvers.ensemble.penalty_descent import DescentSettings

Floats = NDArray[np.float64]
_RIDGE, _SWEEPS = 25.0, 5


def refit_settings(values: str, ridge: float) -> DescentSettings:
    """Return settings of a descent whose updates are called one by one, without a path of penalties."""
    return DescentSettings(
        layered=False,
        values=values,
        by_depth=False,
        ridge=ridge,
        penalties=(1.0,),
        smallest=1.0,
        warm_up=(),
        max_sweeps=_SWEEPS,
        local_search=0,
        max_nodes=None,
        max_trees=None,
        seed=0,
    )


class MeanValues:
    """Refit the values of any pruning of a forest that averages its trees.

    Parameters
    ----------
    problem : Problem
        Its forest has a natural range.
    """

    def __init__(self, problem: Problem) -> None:
        problem = replace(problem.local(), cost=NodeCost())
        self._descent = MeanDescent(additive(problem), problem, refit_settings("refit", _RIDGE))

    def refit(self, keep: NDArray[np.bool_]) -> Floats:
        """Return values of the kept nodes that minimise the squared error of the pruned forest, (n_kept, n_outputs)."""
        descent = self._descent
        descent.start_from(keep)
        descent.descend(0.0, frozen=True)
        # Trees that are cut to their root keep its value.
        filled = fill_splits(descent.ensemble, descent.state.status, descent.state.value)
        return descent.node_values(filled[keep])
