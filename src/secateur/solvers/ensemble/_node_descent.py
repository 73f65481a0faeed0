"""Descents over the nodes of trees, wherever the rows are: what they have in common."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import Additive, State
from secateur.solvers.ensemble.descent_path import DescentSettings, FallingDescent, layer_prices

Floats = NDArray[np.float64]
_VALUES = {
    "keep": kernels.KEEP,
    "refit": kernels.REFIT,
    "scale": kernels.SCALE,
    "scale_sparse": kernels.SCALE_SPARSE,
}


class NodeDescent(FallingDescent[State]):
    """Descents whose state says of every node what it is and what it adds; subclasses know of the rows.

    Attributes
    ----------
    values : int
        What a kept leaf adds, as in `secateur.kernels.ensemble.block_update`.
    ridge : float
        On the scale of the loss.
    """

    values: int
    ridge: float

    def prepare(self, ensemble: Additive, problem: Problem, settings: DescentSettings, weight_per_row: float) -> None:
        """Store all but the state and the scale."""
        self.ensemble, self.settings = ensemble, settings
        self.as_leaf, self.as_split = layer_prices(problem.forest) if settings.by_depth else problem.prices
        self.values = _VALUES[settings.values]
        self.ridge = 0.0 if settings.values == "keep" else settings.ridge * weight_per_row
        self.rng = np.random.default_rng(settings.seed)
        self.open = np.ones(ensemble.forest.n_trees, bool)

    def objective(self, penalty: float) -> float:
        """Return what is being minimised."""
        state = self.state
        half = 0.5 if self.ensemble.logits else 1.0
        price = self.as_leaf[state.status == 2].sum() + self.as_split[state.status == 1].sum()
        extra = 0.0
        if self.values == kernels.REFIT:
            extra = half * self.ridge * float((state.contribution[state.status == 2] ** 2).sum())
        elif self.values == kernels.SCALE:
            extra = half * self.ridge * float((state.factor**2).sum())
        elif self.values == kernels.SCALE_SPARSE:
            extra = half * self.ridge * int(np.count_nonzero(state.status[self.ensemble.forest.root]))
        return self.loss() + penalty * price + extra

    def spread(self, state: State) -> State:
        """Return the state as it is."""
        return state

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are there."""
        return self.state.status[self.ensemble.forest.root] != 0

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left, or none."""
        forest, state = self.ensemble.forest, self.state
        while self.size(state) > budget:
            node, rate, value = self.weakest()
            found = np.flatnonzero(node >= 0)
            if not len(found):
                left = np.flatnonzero(state.status[forest.root])
                if not len(left):
                    return  # no model is as small
                self.drop(int(left[-1]))
                continue
            some = max(1, (self.size(state) - budget) // 8)
            for tree in found[np.argsort(rate[found], kind="stable")[:some]]:
                if self.size(state) <= budget:
                    break
                self.collapse(int(tree), int(node[tree]), value[tree])

    @abstractmethod
    def loss(self) -> float:
        """Return the loss, without penalty."""

    @abstractmethod
    def weakest(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return for each tree the split to collapse, -1 if there is none, what that costs per price, the new value."""

    @abstractmethod
    def collapse(self, tree: int, node: int, value: Floats) -> None:
        """Make a split a leaf with a value; a root goes altogether."""
