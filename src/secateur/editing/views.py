"""A node as its reader sees it: what it asks, which rows it has seen, and the conditions on the way to it."""

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
    """What a row must satisfy to take one step down.

    A missing value, or a category the split does not list, may take the step too: it goes to a fixed side.

    Attributes
    ----------
    feature : int
    feature_name : str, or None
    threshold : float
        NaN where the split looks for a category.
    goes_left : bool
        Whether the step is to the left, where the comparison holds.
    comparison : "<=" or "<"
    categories : tuple of int, or None
        The codes that go left, where the split looks for a category.

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
    """One node of a trained model.

    Attributes
    ----------
    tree : int
        Counted in the order in which the model adds its trees.
    node : int
        The library's own number of the node within its tree.
    depth : int
    feature : int
        The feature the split looks at, -1 at a leaf.
    feature_name : str, or None
    threshold : float
        NaN at a leaf, and where the split looks for a category.
    n_samples : int, or None
        Training rows that reached the node, if the model tells.
    weight : float
        Training weight that reached the node.
    value : (width,) float64, read-only
        What the tree says to a row that ends here.
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
    """Yield every node of a model, tree by tree, each tree from the top and left before right.

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
    """Yield nodes of the forest with their views, in preorder; nothing below nodes the caller has marked in `cut`."""
    forest, columns = adapter.forest, _columns(adapter)
    for tree, (start, stop) in enumerate(pairwise(forest.tree_start.tolist())):
        # Tree by tree as plain tuples: reading single entries of arrays would take most of the time.
        rows = [_Row(*row) for row in zip(*(_entries(column, start, stop) for column in columns), strict=True)]
        parent, end = ((nodes[start:stop] - start).tolist() for nodes in (forest.parent, forest.end))
        above: list[Condition] = []  # all ancestors of v were met before it, so their conditions are in place
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
    """The facts of one node, in the order of the fields of NodeView."""

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
    """Return the fields of `_Row` for all nodes, None for a field nothing is known of."""
    forest = adapter.forest
    value = forest.value.view()
    value.flags.writeable = False
    names = None if forest.feature_names is None else np.array([*forest.feature_names, None], object)
    return [
        adapter.native_ids(),
        forest.depth,
        forest.feature,
        None if names is None else names[forest.feature],  # at a leaf -1, the None at the end
        np.where(numeric_splits(forest), forest.threshold, np.nan),
        adapter.samples_per_node(),
        forest.weight,
        value,
        adapter.impurity_per_node(),
        ~forest.is_split,
    ]


def _entries(column: NDArray[Any] | None, start: int, stop: int) -> Iterable[Any]:
    """Return one entry per node, rows of a matrix as arrays."""
    if column is None:
        return repeat(None, stop - start)
    return column[start:stop].tolist() if column.ndim == 1 else column[start:stop]


def _condition(forest: Forest, split: int, row: _Row, goes_left: bool) -> Condition:
    """Return the condition of a step from a split to one of its sides."""
    codes = categories_of(forest, split)
    threshold = row.threshold if codes is None else np.nan  # this very NaN, so that equal conditions compare as equal
    return Condition(row.feature, row.feature_name, threshold, goes_left, forest.comparison, codes)


def numeric_splits(forest: Forest) -> NDArray[np.bool_]:
    """Return which nodes are splits that compare with a threshold, (n_nodes,)."""
    rows = forest.categories.row
    return forest.is_split & (rows == -1) if len(rows) else forest.is_split
