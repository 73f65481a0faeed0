"""The neutral form of every tree model: flat arrays in preorder.

A forest predicts `link((base + Σ_t tree_weight[t] · value[leaf_t(x)]) / divisor)`. In preorder the left child of a
split `v` is `v + 1`, a subtree is the slice `v:end[v]`, and a sum over subtrees is one pass from the back.
The written format is in docs/format.md.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest.forest_checks import check_forest
from secateur.forest.links import Link, link_named

Aggregation = Literal["sum", "mean", "median"]
Comparison = Literal["<=", "<"]
Addition = Literal["in_order", "scaled", "fours", "around_base"]
Leaves = NDArray[np.unsignedinteger]
"""(n_trees, n_rows): the leaf each row reaches in each tree, counted from the tree's root."""


def _empty(dtype: str) -> NDArray[Any]:
    return np.empty(0, dtype)


@dataclass(frozen=True, eq=False)
class Categories:
    """The categorical splits of a forest: for each a sorted list of category codes and the side each goes to.

    Attributes
    ----------
    row : (n_nodes,) int32, or (0,) when no split is categorical
        Which list a node uses, -1 for numeric splits and leaves.
    start : (n_lists + 1,) int64
        List r is `code[start[r]:start[r + 1]]`.
    code, left : (n_codes,) int32 and bool
        The listed categories, sorted within a list, and whether they go left. The category of a row is the whole part
        of its number.
    other_left : (n_lists,) bool
        Whether a category that is not listed goes left.
    """

    row: NDArray[np.int32] = field(default_factory=lambda: _empty("i4"))
    start: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    code: NDArray[np.int32] = field(default_factory=lambda: _empty("i4"))
    left: NDArray[np.bool_] = field(default_factory=lambda: _empty("?"))
    other_left: NDArray[np.bool_] = field(default_factory=lambda: _empty("?"))


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as flat arrays, each tree in preorder.

    Attributes
    ----------
    tree_start : (n_trees + 1,) int64
        Tree t is the node slice `tree_start[t]:tree_start[t + 1]`.
    right : (n_nodes,) int32
        The right child of a split, -1 at a leaf. The left child is always the next node.
    feature : (n_nodes,) int32
        The feature a split looks at, -1 at a leaf.
    threshold : (n_nodes,) float64
        A row goes left when `x <= threshold` (or `<`, see `comparison`). Never nudged.
    default_left : (n_nodes,) bool
        Whether a missing value goes left.
    value : (n_nodes, width) float64
        What the tree adds for a row that ends here, for splits too: the value they get when they become leaves.
        `width` is `n_outputs`, or 1 when each tree feeds one output.
    weight : (n_nodes,) float64
        Cover: how much training weight reached the node.
    tree_weight : (n_trees,) float64
    tree_output : (n_trees,) int32
        The output a tree feeds, -1 for all of them.
    base : (n_outputs,) float64
    link : str
        What turns the sum into a prediction; a key of `secateur.forest.links.LINKS`, with a number as in
        "logit:0.7" where the link has one.
    n_features : int
    n_classes : tuple of int
        Classes of each classification target; empty for everything else.
    aggregation : "sum", "mean" or "median"
        How trees combine. A mean is over the trees that are there, so dropping one changes the divisor.
    unit, divisor : float
        The sum is divided by `divisor`; for a mean that is `unit` times the total tree weight.
    comparison : "<=" or "<"
    input_dtype : str
        The precision in which the model looks at a feature, "float32" or "float64".
    sum_dtype : str
        The precision in which values are stored and added: "float32" or "float64".
    addition : "in_order", "scaled", "fours" or "around_base"
        In which order sums are made: base, then tree after tree; or the trees, times the weight they all have, then the
        base (CatBoost); or four sums side by side with fused multiplications, as Java's BLAS does (Spark's boosting);
        or in order, with (base + value) − base for a value (DART of XGBoost without a DMatrix).
    symmetric : bool
        Whether all splits of a level ask the same question (oblivious trees), so that only whole levels can go.
    zero_is_missing : tuple of int
        Features of which 0 counts as missing.
    feature_names : tuple of str, or None
    categories : Categories
    """

    tree_start: NDArray[np.int64]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    default_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    weight: NDArray[np.float64]
    tree_weight: NDArray[np.float64]
    tree_output: NDArray[np.int32]
    base: NDArray[np.float64]
    link: str
    n_features: int
    n_classes: tuple[int, ...] = ()
    aggregation: Aggregation = "sum"
    unit: float = 1.0
    divisor: float = 1.0
    comparison: Comparison = "<="
    input_dtype: str = "float64"
    sum_dtype: str = "float64"
    addition: Addition = "in_order"
    symmetric: bool = False
    zero_is_missing: tuple[int, ...] = ()
    feature_names: tuple[str, ...] | None = None
    categories: Categories = field(default_factory=Categories)

    def __repr__(self) -> str:
        return (
            f"Forest({self.n_trees} trees, {self.n_nodes} nodes, {self.n_leaves} leaves, "
            f"depth {self.max_depth}, {self.n_features} features, link={self.link!r})"
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.right)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_start) - 1

    @property
    def n_outputs(self) -> int:
        """Number of sums a row gets before the link."""
        return len(self.base)

    @property
    def root(self) -> NDArray[np.int64]:
        """The first node of each tree, (n_trees,)."""
        return self.tree_start[:-1]

    @cached_property
    def is_split(self) -> NDArray[np.bool_]:
        """Which nodes have children, (n_nodes,)."""
        return self.right != -1

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.n_nodes - int(np.count_nonzero(self.is_split))

    @cached_property
    def end(self) -> NDArray[np.int64]:
        """One past the last node below each node, (n_nodes,)."""
        check_forest(self)
        end = np.empty(self.n_nodes, np.int64)
        kernels.subtree_end(self.tree_start, self.right, end)
        return end

    @cached_property
    def parent(self) -> NDArray[np.int32]:
        """The parent of each node, -1 at a root, (n_nodes,)."""
        check_forest(self)
        return kernels.tree_parent(self.tree_start, self.right)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """The number of splits above each node, (n_nodes,)."""
        return kernels.tree_depth(self.parent)

    @property
    def max_depth(self) -> int:
        """The number of splits on the longest way down."""
        return int(self.depth.max(initial=0))

    @property
    def features_used(self) -> NDArray[np.int32]:
        """The features some split looks at, sorted."""
        return np.unique(self.feature[self.is_split])

    @property
    def trees_predict_target(self) -> bool:
        """Whether each tree alone predicts the target, as in bagging, and not a share of it, as in boosting."""
        return self.aggregation != "sum" and self.response.linear

    @property
    def response(self) -> Link:
        """The link as an object."""
        return link_named(self.link)
