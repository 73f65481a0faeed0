"""Represent every tree model in one library-neutral form: flat arrays in preorder.

A forest predicts `link((base + Σ_t tree_weight[t] · value[leaf_t(x)]) / divisor)`. In preorder the left child of a
split `v` is `v + 1`, and a subtree is the slice `v:end[v]`. Sums over subtrees therefore take one reverse pass.
docs/format.md documents the file format.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur._util.html import page, table
from secateur.forest.forest_checks import check_forest
from secateur.forest.links import Link, link_named

Aggregation = Literal["sum", "mean", "median"]
Comparison = Literal["<=", "<"]
Addition = Literal["in_order", "scaled", "fours", "around_base"]
Leaves = NDArray[np.unsignedinteger]
"""Leaf that each row reaches in each tree, counted from the tree's root; (n_trees, n_rows)."""


def _empty(dtype: str) -> NDArray[Any]:
    return np.empty(0, dtype)


@dataclass(frozen=True, eq=False)
class Categories:
    """Hold the categorical splits of a forest: for each a sorted list of category codes and their branches.

    Attributes
    ----------
    row : (n_nodes,) int32, or (0,) when no split is categorical
        Index of the node's list, -1 for numeric splits and leaves.
    start : (n_lists + 1,) int64
        List r is `code[start[r]:start[r + 1]]`.
    code, left : (n_codes,) int32 and bool
        The listed categories, sorted within a list, and whether they are routed left. The category of a row is the
        integer part of its feature value.
    other_left : (n_lists,) bool
        Whether categories that are not listed are routed left.
    """

    row: NDArray[np.int32] = field(default_factory=lambda: _empty("i4"))
    start: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    code: NDArray[np.int32] = field(default_factory=lambda: _empty("i4"))
    left: NDArray[np.bool_] = field(default_factory=lambda: _empty("?"))
    other_left: NDArray[np.bool_] = field(default_factory=lambda: _empty("?"))


@dataclass(frozen=True, eq=False)
class Forest:
    """Hold the trees of a model as flat arrays, each tree in preorder.

    Attributes
    ----------
    tree_start : (n_trees + 1,) int64
        Tree t is the node slice `tree_start[t]:tree_start[t + 1]`.
    right : (n_nodes,) int32
        The right child of a split, -1 at a leaf. The left child is always the next node.
    feature : (n_nodes,) int32
        Feature tested by a split, -1 at a leaf.
    threshold : (n_nodes,) float64
        A row is routed left if `x <= threshold` (or `<`, see `comparison`). Stored exactly as in the model.
    default_left : (n_nodes,) bool
        Whether missing values are routed left.
    value : (n_nodes, width) float64
        Contribution of the tree to a row that reaches this node. The value of a split is its leaf value after pruning.
        `width` is `n_outputs`, or 1 if each tree contributes to one output.
    weight : (n_nodes,) float64
        Cover: the total training weight that reached the node.
    tree_weight : (n_trees,) float64
    tree_output : (n_trees,) int32
        Output to which a tree contributes, -1 for all outputs.
    base : (n_outputs,) float64
    link : str
        Function from the sum to the prediction; a key of `secateur.forest.links.LINKS`, followed by the link's
        parameter if it has one, as in "logit:0.7".
    n_features : int
    n_classes : tuple of int
        Number of classes of each classification target; empty for regression and outlier detection.
    aggregation : "sum", "mean" or "median"
        How the contributions of the trees are combined. A mean is over the present trees, so dropping a tree changes
        the divisor.
    unit, divisor : float
        The sum is divided by `divisor`; for a mean that is `unit` times the total tree weight.
    comparison : "<=" or "<"
    input_dtype : str
        Precision in which features are compared with thresholds, "float32" or "float64".
    sum_dtype : str
        Precision in which values are stored and added, "float32" or "float64".
    addition : "in_order", "scaled", "fours" or "around_base"
        Order of the floating-point additions. "in_order": the base, then tree after tree. "scaled": the trees, times
        their common weight, then the base (CatBoost). "fours": four interleaved partial sums with fused multiply-add,
        as in Java's BLAS (Spark's boosting). "around_base": in order, with each value replaced by
        (base + value) − base (DART of XGBoost without a DMatrix).
    symmetric : bool
        Whether all splits of a level use the same test (oblivious trees), so that only whole levels can be pruned.
    zero_is_missing : tuple of int
        Features for which 0 counts as missing.
    feature_names : tuple of str, or None
    categories : Categories
    monotone : (n_features,) int8, or None
        Monotonic constraints the model was trained with: 1 for features in which the raw score must not decrease, -1
        for those in which it must not increase, 0 for all others. The score is that of the second class for a binary
        classifier with two outputs, and every score if there are more. None if there are no constraints.
    objective : str or None
        Loss the model was trained for, as `secateur.losses.loss_named` takes it, such as "quantile:0.9". None if it is
        the default loss of the link, or unknown.
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
    monotone: NDArray[np.int8] | None = None
    objective: str | None = None

    def __repr__(self) -> str:
        return (
            f"Forest({self.n_trees} trees, {self.n_nodes} nodes, {self.n_leaves} leaves, "
            f"depth {self.max_depth}, {self.n_features} features, link={self.link!r})"
        )

    def _repr_html_(self) -> str:
        target = f"classes: {', '.join(map(str, self.n_classes))}" if self.n_classes else f"outputs: {self.n_outputs}"
        counts = {"trees": self.n_trees, "nodes": self.n_nodes, "leaves": self.n_leaves, "depth": self.max_depth}
        rows = [[name, f"{count:,}"] for name, count in counts.items()]
        rows.append(["features used", f"{len(self.features_used):,} of {self.n_features:,}"])
        largest = np.argsort(-np.diff(self.tree_start), kind="stable")[:1].tolist()
        rows += [["largest tree", f"{self.tree_start[k + 1] - self.tree_start[k]:,} nodes"] for k in largest]
        loss = "" if self.objective is None else f"; trained for {self.objective}"
        return page("Forest", table([], rows), f"{target}; link: {self.link}{loss}")

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
        """Number of raw scores per row, before the link."""
        return len(self.base)

    @property
    def root(self) -> NDArray[np.int64]:
        """The first node of each tree, (n_trees,)."""
        return self.tree_start[:-1]

    @cached_property
    def is_split(self) -> NDArray[np.bool_]:
        """Which nodes have children, (n_nodes,)."""
        return self.right != -1

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Which nodes are splits by lists of categories, (n_nodes,)."""
        rows = self.categories.row
        return self.is_split & (rows != -1) if len(rows) else np.zeros(self.n_nodes, bool)

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
        return kernels.tree_parent(self.right)

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """The number of splits above each node, (n_nodes,)."""
        return kernels.tree_depth(self.parent)

    @property
    def max_depth(self) -> int:
        """Number of splits on the longest path from a root to a leaf."""
        return int(self.depth.max(initial=0))

    @property
    def features_used(self) -> NDArray[np.int32]:
        """Features used by at least one split, sorted."""
        return np.unique(self.feature[self.is_split])

    @property
    def trees_predict_target(self) -> bool:
        """Whether each tree predicts the target, as in bagging, instead of a contribution to it, as in boosting."""
        return self.aggregation != "sum" and self.response.linear

    @property
    def response(self) -> Link:
        """The link as an object."""
        return link_named(self.link)
