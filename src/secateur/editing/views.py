"""Describe the nodes of a model: split, training rows, value, and the conditions on the path from the root."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Comparison, Forest
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.plotting.split_labels import categories_of

_OPPOSITE = {"<=": ">", "<": ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition under which a split routes a row to one of its children.

    A missing value, or a category the split does not list, is routed to a fixed side, so it may also reach this child.

    Attributes
    ----------
    feature : int
    feature_name : str, or None
    threshold : float
        NaN for a categorical split.
    goes_left : bool
        Whether the condition leads to the left child, where the comparison holds.
    comparison : "<=" or "<"
    categories : tuple of int, or None
        The category codes routed left by a categorical split.

    Examples
    --------
    >>> str(Condition(3, "petal width", 0.8, goes_left=True)), str(Condition(3, None, 0.8, goes_left=False))
    ('petal width <= 0.8', 'x[3] > 0.8')
    """

    feature: int
    feature_name: str | None
    threshold: float
    goes_left: bool
    comparison: Comparison = "<="
    categories: tuple[int, ...] | None = None

    def __str__(self) -> str:
        name = f"x[{self.feature}]" if self.feature_name is None else self.feature_name
        if self.categories is not None:
            return f"{name} {'in' if self.goes_left else 'not in'} {{{', '.join(map(str, self.categories))}}}"
        return f"{name} {self.comparison if self.goes_left else _OPPOSITE[self.comparison]} {self.threshold:g}"


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """Read-only description of one node of a trained model.

    Attributes
    ----------
    tree : int
        The tree, numbered in the order in which the model adds its trees.
    node : int
        The library's id of the node within its tree.
    depth : int
    feature : int
        The feature used by the split, -1 at a leaf.
    feature_name : str, or None
    threshold : float
        NaN at a leaf and at a categorical split.
    n_samples : int, or None
        Number of training rows that reached the node, if the model stores it.
    weight : float
        Training weight that reached the node.
    value : (width,) float64, read-only
        The tree's prediction for a row that ends at this node.
    impurity : float, or None
    is_leaf : bool
    path : tuple of Condition
        The conditions from the root to the node.
    """

    tree: int
    node: int
    depth: int
    feature: int
    feature_name: str | None
    threshold: float
    n_samples: int | None
    weight: float
    value: NDArray[np.float64]
    impurity: float | None
    is_leaf: bool
    path: tuple[Condition, ...]


def node_views(model: Any) -> Iterator[NodeView]:
    """Yield a `NodeView` of every node of a model, tree by tree, in preorder.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> data = load_iris(as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(data.data, data.target)
    >>> for view in node_views(tree):
    ...     print(view.node, view.n_samples, *view.path, sep="; ")
    0; 150
    1; 50; petal width (cm) <= 0.8
    2; 100; petal width (cm) > 0.8
    3; 54; petal width (cm) > 0.8; petal width (cm) <= 1.75
    4; 46; petal width (cm) > 0.8; petal width (cm) > 1.75
    """
    adapter = adapt(model)
    for _, view in top_down(adapter, np.zeros(adapter.forest.n_nodes, bool)):
        yield view


def top_down(adapter: Adapter, cut: NDArray[np.bool_], *, splits_only: bool = False) -> Iterator[tuple[int, NodeView]]:
    """Yield the nodes of the forest with their views, in preorder.

    The caller may mark nodes in `cut` during the iteration; their descendants are skipped.
    """
    forest, columns = adapter.forest, _columns(adapter)
    for tree, (start, stop) in enumerate(pairwise(forest.tree_start.tolist())):
        # Convert each tree to plain tuples: reading single array entries would take most of the time.
        rows = [_Row(*row) for row in zip(*(_entries(column, start, stop) for column in columns), strict=True)]
        parent, end = ((nodes[start:stop] - start).tolist() for nodes in (forest.parent, forest.end))
        # Invariant: preorder visits all ancestors of v before v, so above[:depth - 1] holds their conditions.
        above: list[Condition] = []
        v = 0
        while v < len(rows):
            row = rows[v]
            if not (splits_only and row.is_leaf):
                if v > 0:
                    step = _condition(forest, start + parent[v], rows[parent[v]], goes_left=v == parent[v] + 1)
                    above[row.depth - 1 :] = [step]
                yield start + v, NodeView(tree, *row, tuple(above))
            v = end[v] if cut[start + v] else v + 1


class _Row(NamedTuple):
    """Attributes of one node, in the order of the fields of NodeView."""

    node: int
    depth: int
    feature: int
    feature_name: str | None
    threshold: float
    n_samples: int | None
    weight: float
    value: NDArray[np.float64]
    impurity: float | None
    is_leaf: bool


def _columns(adapter: Adapter) -> list[NDArray[Any] | None]:
    """Return the fields of `_Row` for all nodes, None for a field that is not available."""
    forest = adapter.forest
    value = forest.value.view()
    value.flags.writeable = False
    names = None if forest.feature_names is None else np.array([*forest.feature_names, None], object)
    return [
        adapter.native_ids(),
        forest.depth,
        forest.feature,
        # The feature of a leaf is -1, which selects the None at the end of the names.
        None if names is None else names[forest.feature],
        np.where(forest.is_split & ~forest.is_categorical, forest.threshold, np.nan),
        adapter.samples_per_node(),
        forest.weight,
        value,
        adapter.impurity_per_node(),
        ~forest.is_split,
    ]


def _entries(column: NDArray[Any] | None, start: int, stop: int) -> Iterable[Any]:
    """Return one entry per node; the rows of a matrix stay arrays."""
    if column is None:
        return repeat(None, stop - start)
    return column[start:stop].tolist() if column.ndim == 1 else column[start:stop]


def _condition(forest: Forest, split: int, row: _Row, goes_left: bool) -> Condition:
    """Return the condition that leads from a split to one of its children."""
    codes = categories_of(forest, split)
    # Tuples compare by identity first, so sharing np.nan makes equal conditions compare equal.
    threshold = row.threshold if codes is None else np.nan
    return Condition(row.feature, row.feature_name, threshold, goes_left, forest.comparison, codes)
