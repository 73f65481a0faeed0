"""Define the base class of block descents over nodes: objective, budget trimming and leaf value modes.

Subclasses supply the loss and the row sums.
"""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import Additive, State
from secateur.solvers.ensemble.descent_path import DescentSettings, PathDescent, layer_prices

Floats = NDArray[np.float64]
_VALUES = {
    "keep": kernels.KEEP,
    "refit": kernels.REFIT,
    "scale": kernels.SCALE,
    "scale_sparse": kernels.SCALE_SPARSE,
}


class NodeDescent(PathDescent[State]):
    """Block descent whose state holds the status and the contribution of every node.

    Subclasses implement what depends on the rows: `loss`, `weakest` and `collapse`, and the `sweep` of the base class.

    Attributes
    ----------
    values : int
        How the contribution of a kept leaf is determined: one of the constants of
        `secateur.kernels.ensemble.block_update`.
    ridge : float
        Ridge penalty on the scale of the loss.
    """

    values: int
    ridge: float

    def prepare(self, ensemble: Additive, problem: Problem, settings: DescentSettings, weight_per_row: float) -> None:
        """Set every attribute but `state` and `scale`.

        `weight_per_row` converts `settings.ridge` from rows to the scale of the loss.
        """
        self.ensemble, self.settings = ensemble, settings
        self.as_leaf, self.as_split = layer_prices(problem.forest) if settings.by_depth else problem.prices
        self.values = _VALUES[settings.values]
        self.ridge = 0.0 if settings.values == "keep" else settings.ridge * weight_per_row
        self.rng = np.random.default_rng(settings.seed)
        self.open = np.ones(ensemble.forest.n_trees, bool)

    def objective(self, penalty: float) -> float:
        """Return the objective: loss plus penalty times price plus ridge term."""
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
        """Return the state unchanged: it already covers all nodes."""
        return state

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are not dropped, (n_trees,)."""
        return self.state.status[self.ensemble.forest.root] != 0

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left.

        Each round collapses at most one split per tree, those with the smallest increase in loss per price first. When
        no split is left to collapse, whole trees are dropped from the end.
        """
        forest, state = self.ensemble.forest, self.state
        while self.size(state) > budget:
            node, rate, value = self.weakest()
            found = np.flatnonzero(node >= 0)
            if not len(found):
                left = np.flatnonzero(state.status[forest.root])
                if not len(left):
                    return  # even the model without trees exceeds the budget
                self.drop(int(left[-1]))
                continue
            # Collapse an eighth of the excess per round, then recompute the rates.
            n_collapses = max(1, (self.size(state) - budget) // 8)
            for tree in found[np.argsort(rate[found], kind="stable")[:n_collapses]]:
                if self.size(state) <= budget:
                    break
                self.collapse(int(tree), int(node[tree]), value[tree])

    @abstractmethod
    def loss(self) -> float:
        """Return the loss, without penalty."""

    @abstractmethod
    def weakest(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return the cheapest split of each tree to collapse.

        Returns
        -------
        node : (n_trees,)
            The split, -1 if the tree has none.
        rate : (n_trees,)
            Increase in loss per price saved.
        value : (n_trees, width)
            The contribution of the new leaf.
        """

    @abstractmethod
    def collapse(self, tree: int, node: int, value: Floats) -> None:
        """Turn a split into a leaf with the given contribution; collapsing a root drops the tree."""
