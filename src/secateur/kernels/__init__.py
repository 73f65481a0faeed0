"""Compile the inner loops with numba: functions from plain arrays to plain arrays.

Only this package imports numba. Every kernel is serial and releases the GIL, so callers can run several in threads.
The tests contain a slow reference implementation of each kernel.
"""

from secateur.kernels._cache import are_compiling
from secateur.kernels.editing.simplify import merge_leaves, reachable
from secateur.kernels.ensemble.active_nodes import mark_active_nodes
from secateur.kernels.ensemble.arrays import BlockProblem, Prices, RoutedRows, State, Trees, leaves_then_splits
from secateur.kernels.ensemble.block_descent import sweep_blocks
from secateur.kernels.ensemble.block_update import KEEP, REFIT, SCALE, SCALE_SPARSE
from secateur.kernels.ensemble.collapse import drop_tree
from secateur.kernels.ensemble.gram_descent import layer_steps, move_cut, sweep_layers
from secateur.kernels.ensemble.layer_descent import sweep_layered_blocks
from secateur.kernels.ensemble.mean_arrays import MeanProblem
from secateur.kernels.ensemble.mean_descent import loss_without, remove_tree, sum_without, sweep_means
from secateur.kernels.ensemble.mean_scores import recompute_scores, sum_targets
from secateur.kernels.ensemble.merge_leaves import merge_rates
from secateur.kernels.ensemble.target_spread import mark_spread, target_spread
from secateur.kernels.feature_cost.closure_path import closure_path, inseparable, profitable_splits
from secateur.kernels.feature_cost.cost_descent import (
    Pricing,
    PurchaseTable,
    collapse_features,
    count_tree,
    list_rows,
    shifts_without,
    sweep_priced_blocks,
    sweep_priced_means,
)
from secateur.kernels.feature_cost.maximum_closure import best_closure, cost_of_levels, no_more_than_parent
from secateur.kernels.feature_cost.row_items import cost_of_points, equal_items, list_needs, needed_until, price_needs
from secateur.kernels.forest.links import exp_all, softmax_rows, softplus_all
from secateur.kernels.forest.monotonicity import Region, SplitTests, order_violations
from secateur.kernels.forest.node_sums import add_moments, count_classes, count_rows, roll_up
from secateur.kernels.forest.preorder import (
    complete_trees,
    keeps_levels,
    preorder,
    replacements,
    subtree_end,
    sum_down,
    tree_depth,
    tree_parent,
)
from secateur.kernels.forest.routing import (
    CategoryLists,
    SplitArrays,
    add_trees,
    add_trees_by_fours,
    lift,
    lift_to_kept,
    route_categorical,
    route_numeric,
)
from secateur.kernels.forest.separators import all_in_order, order_values
from secateur.kernels.forest.small_trees import Cuts, RankedSplits, route_small_trees
from secateur.kernels.node_weights.max_heap import fit_max_heap, node_gradient, project_max_heap
from secateur.kernels.node_weights.rule_lasso import fit_rule_lasso
from secateur.kernels.single_tree.optimal_size import (
    best_of_every_size,
    cheapest_cut,
    keep_of_size,
    sum_over_leaves,
    table_start,
)
from secateur.kernels.single_tree.subtree_raising import raise_tree
from secateur.kernels.single_tree.weakest_link import weakest_link
from secateur.kernels.whole_trees.tree_lasso import fit_tree_lasso

__all__ = [
    "KEEP",
    "REFIT",
    "SCALE",
    "SCALE_SPARSE",
    "BlockProblem",
    "CategoryLists",
    "Cuts",
    "MeanProblem",
    "Prices",
    "Pricing",
    "PurchaseTable",
    "RankedSplits",
    "Region",
    "RoutedRows",
    "SplitArrays",
    "SplitTests",
    "State",
    "Trees",
    "add_moments",
    "add_trees",
    "add_trees_by_fours",
    "all_in_order",
    "are_compiling",
    "best_closure",
    "best_of_every_size",
    "cheapest_cut",
    "closure_path",
    "collapse_features",
    "complete_trees",
    "cost_of_levels",
    "cost_of_points",
    "count_classes",
    "count_rows",
    "count_tree",
    "drop_tree",
    "equal_items",
    "exp_all",
    "fit_max_heap",
    "fit_rule_lasso",
    "fit_tree_lasso",
    "inseparable",
    "keep_of_size",
    "keeps_levels",
    "layer_steps",
    "leaves_then_splits",
    "lift",
    "lift_to_kept",
    "list_needs",
    "list_rows",
    "loss_without",
    "mark_active_nodes",
    "mark_spread",
    "merge_leaves",
    "merge_rates",
    "move_cut",
    "needed_until",
    "no_more_than_parent",
    "node_gradient",
    "order_values",
    "order_violations",
    "preorder",
    "price_needs",
    "profitable_splits",
    "project_max_heap",
    "raise_tree",
    "reachable",
    "recompute_scores",
    "remove_tree",
    "replacements",
    "roll_up",
    "route_categorical",
    "route_numeric",
    "route_small_trees",
    "shifts_without",
    "softmax_rows",
    "softplus_all",
    "subtree_end",
    "sum_down",
    "sum_over_leaves",
    "sum_targets",
    "sum_without",
    "sweep_blocks",
    "sweep_layered_blocks",
    "sweep_layers",
    "sweep_means",
    "sweep_priced_blocks",
    "sweep_priced_means",
    "table_start",
    "target_spread",
    "tree_depth",
    "tree_parent",
    "weakest_link",
]
