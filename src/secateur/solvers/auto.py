"""Choose the default solver (`solver="auto"`) for a model and a cost."""

from typing import Literal

from secateur.costs import Cost
from secateur.forest import Forest
from secateur.solvers.base import Solver
from secateur.solvers.combined import Several
from secateur.solvers.ensemble.additive_model import not_additive
from secateur.solvers.ensemble.block_descent import BlockDescent
from secateur.solvers.feature_cost.cost_descent import CostDescent
from secateur.solvers.feature_cost.min_cut import MinCut
from secateur.solvers.single_tree.weakest_link import WeakestLink
from secateur.solvers.whole_trees.fewer_trees import FewerTrees


def automatic(forest: Forest, cost: Cost | None, *, new_values: bool, max_trees: float | None = None) -> Solver:
    """Return BlockDescent for an additive ensemble with writable leaf values, otherwise WeakestLink.

    WeakestLink and MinCut drop no trees, so that FewerTrees replaces them if a limit requires fewer trees.

    Feature costs, which trees share, are handled by CostDescent. If in addition each tree predicts the one class
    target itself, MinCut runs as well. If values cannot be changed or the ensemble is not additive, only MinCut runs.

    The BlockDescent path contains a run for every ridge and one with the original values. The validation rows decide
    among them when a point is selected.
    """
    refits = new_values and not not_additive(forest)
    if max_trees is not None and max_trees < forest.n_trees and not refits:
        return FewerTrees()
    if cost is not None and cost.shared:
        return _for_features(forest, refits)
    if forest.n_trees < 2 or not refits:
        return WeakestLink()
    granularity: Literal["layer", "node"] = "layer" if forest.symmetric else "node"
    return BlockDescent(granularity=granularity, values="both", ridge=(5.0, 25.0, 100.0, 400.0))


def _for_features(forest: Forest, new_values: bool) -> Solver:
    """Return the solver for a feature cost: MinCut, CostDescent, or both on one path."""
    if not new_values:
        return MinCut(scope="both")
    if len(forest.n_classes) != 1 or not forest.trees_predict_target:
        return CostDescent()
    return Several((MinCut(scope="both"), CostDescent()))
