"""Weakest-link (cost-complexity) pruning, Breiman, Friedman, Olshen and Stone 1984, chapter 3: the whole path."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest.masks import cut_at
from secateur.path import Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import Solver
from secateur.solvers.single_tree._symmetric import chains_of


@final
@dataclass(frozen=True, repr=False)
class WeakestLink(Solver):
    """The cost-complexity path of a tree, or of all trees of a forest at a common penalty.

    For every penalty a it minimises, over all prunings of every tree,

        Σ_leaves risk(leaf) + a · cost(pruning),

    and of equally good prunings takes the smallest. The risk is the mean loss of the tree's own predictions; for trees
    that predict only a share of the target (boosting) the mean squared change of the tree's output. With the
    cost `leaves` and a tree's own training rows the penalties are scikit-learn's `ccp_alphas` for the criteria
    squared_error (loss `squared_error`), gini (`brier`) and entropy (`log_loss`, penalties in nats, not bits).

    Of symmetric trees, whose levels stay or go as a whole, it takes the levels for splits.

    On rows the tree was not grown on some splits do harm; those are cut at negative penalties, the worst first.

    Exact; the prunings are nested, so the path is one critical penalty per split. O(nodes log nodes). The loss of
    the *ensemble* is not what is minimised: trees do not know of each other.
    """

    name = "weakest_link"

    @property
    def needs_rows(self) -> bool:
        """No: sums at the nodes will do."""
        return False

    @property
    def supports_symmetric(self) -> bool:
        """Yes."""
        return True

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason for costs that are no sums over nodes; every forest will do."""
        return problem.why_no_node_prices

    def path(self, problem: Problem) -> Path:
        """Return every pruning that is optimal at some penalty, after the unpruned forest."""
        forest = problem.forest
        if forest.symmetric:
            critical = _critical_of_levels(problem)
        else:
            critical = kernels.weakest_link(forest.parent, forest.right, problem.risk, *problem.prices)
        masks, penalty = cut_at(forest, critical)
        unpruned = min(0.0, penalty.min(initial=0.0))  # at its first critical penalty the forest is still optimal
        return trace_path(problem, masks, np.concatenate([[unpruned], penalty]), repr(self))


def _critical_of_levels(problem: Problem) -> NDArray[np.float64]:
    """Return the penalty at which the level of each node goes, (n_nodes,)."""
    chains = chains_of(problem.forest)
    of_levels = (chains.totals(of_node) for of_node in (problem.risk, *problem.prices))
    return kernels.weakest_link(chains.parent, chains.right, *of_levels)[chains.place]
