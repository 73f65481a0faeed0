"""Compute the whole cost-complexity path by weakest-link pruning."""

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
    """Cost-complexity pruning of a tree, or of all trees of a forest at a common penalty.

    For every penalty a it minimises, over all prunings of every tree,

        Σ_leaves risk(leaf) + a · cost(pruning),

    and takes the smallest of several optimal prunings. The risk is the mean loss of the tree's own predictions. For
    boosting, where a tree predicts a contribution to the target, it is the mean squared change of the tree's output.
    With the cost `leaves` and the training rows of a tree, the penalties equal scikit-learn's `ccp_alphas` for the
    criteria squared_error (loss `squared_error`), gini (`brier`) and entropy (`log_loss`, penalties in nats, not bits).

    Symmetric trees are pruned by whole levels. On rows the tree was not trained on, some splits increase the loss;
    they are cut at negative penalties, the most harmful first.

    Exact. The optimal prunings are nested, so one critical penalty per split describes the path. O(nodes log nodes).
    Each tree is pruned independently, so the loss of the *ensemble* is not minimised.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone (1984). Classification and Regression Trees, chapter 3.
    Wadsworth.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> sc.prune_path(tree, X, y, solver="weakest_link", cost="leaves").table["n_leaves"].tolist()
    [12, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """

    name = "weakest_link"
    needs_rows = False
    supports_symmetric = True

    def unsupported(self, problem: Problem) -> str | None:
        """Return a reason if the cost is not a sum over nodes; every forest is supported."""
        return problem.why_no_node_prices

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest, followed by every pruning that is optimal at some penalty."""
        forest = problem.forest
        if forest.symmetric:
            critical = _critical_of_levels(problem)
        else:
            critical = kernels.weakest_link(forest.parent, forest.right, problem.risk, *problem.prices)
        masks, penalty = cut_at(forest, critical)
        # The unpruned forest is still optimal at the first critical penalty, which may be negative.
        unpruned = min(0.0, penalty.min(initial=0.0))
        return trace_path(problem, masks, np.concatenate([[unpruned], penalty]), repr(self))


def _critical_of_levels(problem: Problem) -> NDArray[np.float64]:
    """Return the critical penalty of the level of each node, (n_nodes,)."""
    chains = chains_of(problem.forest)
    of_levels = (chains.totals(of_node) for of_node in (problem.risk, *problem.prices))
    return kernels.weakest_link(chains.parent, chains.right, *of_levels)[chains.link_index]
