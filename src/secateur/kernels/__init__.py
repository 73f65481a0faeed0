"""The loops that must be fast: plain arrays in, plain arrays out, and the only place that imports numba.

Every kernel is serial and releases the GIL; whoever wants two at once uses threads. A slow, obvious version of
each lives in the tests.
"""

from secateur.kernels.max_heap import fit_max_heap, node_gradient, project_max_heap
from secateur.kernels.raising import raise_tree
from secateur.kernels.routing import add_trees, lift, route_categorical, route_numeric
from secateur.kernels.simplify import merge_leaves, reachable
from secateur.kernels.statistics import add_rows, count_classes, roll_up
from secateur.kernels.subtrees import (
    best_of_every_size,
    cheapest_cut,
    keep_of_size,
    sum_over_leaves,
    table_start,
)
from secateur.kernels.tree import preorder, stand_ins, subtree_end, sum_down, tree_depth, tree_parent
from secateur.kernels.weakest_link import weakest_link

__all__ = [
    "add_rows",
    "add_trees",
    "best_of_every_size",
    "cheapest_cut",
    "count_classes",
    "fit_max_heap",
    "keep_of_size",
    "lift",
    "merge_leaves",
    "node_gradient",
    "preorder",
    "project_max_heap",
    "raise_tree",
    "reachable",
    "roll_up",
    "route_categorical",
    "route_numeric",
    "stand_ins",
    "subtree_end",
    "sum_down",
    "sum_over_leaves",
    "table_start",
    "tree_depth",
    "tree_parent",
    "weakest_link",
]
