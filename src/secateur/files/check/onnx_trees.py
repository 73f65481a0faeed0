"""Check the arrays of ONNX tree operators: lengths, children, cycles, features, outputs and weights.

TreeEnsembleClassifier and TreeEnsembleRegressor name nodes by (tree, node) ids. TreeEnsemble, which replaces both in
version 5 of ai.onnx.ml, names nodes and leaves by their position.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import DamagedFileError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_LEAF, _MEMBER, _N_MODES = "LEAF", 6, 7
_MAX_TARGETS = 2**20


@dataclass(frozen=True, eq=False)
class CheckedTrees:
    """Hold the sizes and numbers of the trees of one operator."""

    n_trees: int
    n_nodes: int
    n_leaves: int
    n_features: int
    n_targets: int
    value: Floats
    threshold: Floats


@dataclass(frozen=True, eq=False)
class Attributes:
    """Hold the attributes of one operator; `where` names it in errors."""

    found: dict[str, Any]
    where: str

    def damaged(self, what: str) -> DamagedFileError:
        """Return the error for attributes that no converter would write."""
        return DamagedFileError(
            f"{self.where} is damaged: {what}. The arrays must describe complete trees. Export the model again."
        )

    def array(self, name: str, length: int | None = None) -> NDArray[Any]:
        """Return a list of numbers, stored as such or as a tensor, after checking its length."""
        array = np.asarray(self.found.get(name, self.found.get(f"{name}_as_tensor", ())))
        if array.ndim != 1 or (len(array) and array.dtype.kind not in "iufb"):
            raise self.damaged(f"{name} is not a list of numbers")
        if length is not None and len(array) != length:
            raise self.damaged(f"{name} has {len(array):,} entries, but {length:,} are needed")
        return array

    def integers(self, name: str, length: int, below: int) -> Ints:
        """Return a list of integers in [0, below)."""
        array = self.array(name, length)
        if len(array) and (array.dtype.kind not in "iub" or array.min() < 0 or array.max() >= below):
            raise self.damaged(f"{name} has entries outside 0 to {below - 1:,}")
        return array.astype(np.int64)

    def finite(self, name: str, length: int) -> Floats:
        """Return a list of finite numbers."""
        array = self.array(name, length).astype(np.float64)
        if not np.isfinite(array).all():
            raise self.damaged(f"{name} contains NaN or infinite numbers")
        return array

    def count(self, name: str) -> int:
        """Return a positive number of outputs."""
        number = self.found.get(name)
        if type(number) is not int or not 1 <= number <= _MAX_TARGETS:
            raise self.damaged(f"{name} is {number!r:.40}, not a number from 1 to {_MAX_TARGETS:,}")
        return number


def check_by_ids(trees: Attributes, width: int | None) -> CheckedTrees:
    """Check a TreeEnsembleClassifier or TreeEnsembleRegressor."""
    n_nodes = len(trees.array("nodes_treeids"))
    if not n_nodes:
        raise trees.damaged("it has no nodes")
    ids = np.column_stack([trees.array(name, n_nodes) for name in ("nodes_treeids", "nodes_nodeids")])
    position = {pair: node for node, pair in enumerate(map(tuple, ids.tolist()))}
    if len(position) < n_nodes:
        raise trees.damaged("two nodes have the same tree and node id")
    leaf = _leaves_by_mode(trees, n_nodes)
    split = np.flatnonzero(~leaf)
    children = np.stack([_children(trees, name, ids, split, position) for name in ("true", "false")])
    roots = np.flatnonzero(np.bincount(children.ravel(), minlength=n_nodes) == 0)
    if len(np.unique(ids[roots, 0])) < len(roots):
        raise trees.damaged("a tree has nodes that are not reached from its root")
    _check_reached(trees, n_nodes, split, children, roots, "node")
    features = _features(trees, n_nodes, split, width)
    n_targets, value = _outputs(trees, position, leaf)
    _check_optional(trees, n_nodes)
    threshold = trees.array("nodes_values", n_nodes).astype(np.float64)[split]
    return CheckedTrees(len(np.unique(ids[:, 0])), n_nodes, int(leaf.sum()), features, n_targets, value, threshold)


def _leaves_by_mode(trees: Attributes, n_nodes: int) -> NDArray[np.bool_]:
    """Return which nodes are leaves."""
    modes = trees.found.get("nodes_modes", ())
    if len(modes) != n_nodes:
        raise trees.damaged(f"nodes_modes has {len(modes):,} entries, but {n_nodes:,} are needed")
    texts = np.array([mode.decode(errors="replace") if isinstance(mode, bytes) else str(mode) for mode in modes])
    unknown = ~np.isin(texts, (*_MODES, _LEAF))
    if unknown.any():
        raise trees.damaged(f"a node has the mode {texts[unknown][0][:40]!r}, not one of {', '.join(_MODES)}, {_LEAF}")
    return np.asarray(texts == _LEAF)


def _children(
    trees: Attributes, side: str, ids: NDArray[Any], split: Ints, position: dict[tuple[int, ...], int]
) -> Ints:
    """Return the position of the child of every split, which must exist in the same tree."""
    child = trees.array(f"nodes_{side}nodeids", len(ids))
    pairs = np.column_stack([ids[split, 0], child[split]]).tolist()
    found = np.array([position.get(tuple(pair), -1) for pair in pairs], np.int64)
    if (found < 0).any():
        tree, node = pairs[int(np.argmin(found))]
        raise trees.damaged(f"nodes_{side}nodeids names node {node} of tree {tree}, which does not exist")
    return found


def _check_reached(
    trees: Attributes, n_nodes: int, split: Ints, children: NDArray[np.int64], roots: Ints, what: str
) -> None:
    """Raise DamagedFileError unless every node is below a root and none is below itself.

    Nodes are visited once all their parents are, so that those on a cycle, and those below it, never are.
    """
    parents = np.bincount(children.ravel(), minlength=n_nodes)
    below = np.full((2, n_nodes), -1)
    below[:, split] = children
    visited, level = 0, roots[parents[roots] == 0]
    while len(level):
        visited += len(level)
        reached = below[:, level].ravel()
        reached = reached[reached >= 0]
        np.subtract.at(parents, reached, 1)
        level = np.unique(reached[parents[reached] == 0])
    if visited < n_nodes:
        raise trees.damaged(f"{n_nodes - visited:,} {what}s are on a cycle, or are not reached from a root")


def _features(trees: Attributes, n_nodes: int, split: Ints, width: int | None) -> int:
    """Return the number of features that the splits need."""
    feature = trees.array("nodes_featureids", n_nodes)[split]
    limit = 2**31 if width is None else width
    if len(feature) and (feature.dtype.kind not in "iu" or feature.min() < 0 or feature.max() >= limit):
        raise trees.damaged(f"nodes_featureids has entries outside 0 to {limit - 1:,}")
    return int(feature.max(initial=-1)) + 1


def _outputs(trees: Attributes, position: dict[tuple[int, ...], int], leaf: NDArray[np.bool_]) -> tuple[int, Floats]:
    """Return the number of outputs and the weights of the leaves, which must exist and be leaves."""
    kind, n_targets = ("target", 0) if "n_targets" in trees.found else ("class", _n_classes(trees))
    n_targets = n_targets or trees.count("n_targets")
    length = len(trees.array(f"{kind}_ids"))
    pairs = [trees.array(f"{kind}_{name}", length).tolist() for name in ("treeids", "nodeids")]
    at = np.array([position.get(pair, -1) for pair in zip(*pairs, strict=True)], np.int64)
    if (at < 0).any() or not leaf[at].all():
        raise trees.damaged(f"{kind}_nodeids names a node that does not exist or is not a leaf")
    trees.integers(f"{kind}_ids", length, n_targets)
    base = trees.array("base_values")
    if len(base) not in ({0, n_targets} if kind == "target" else {0, 1, n_targets}) or not np.isfinite(base).all():
        raise trees.damaged(f"base_values is not a list of {n_targets:,} finite numbers")
    return n_targets, trees.finite(f"{kind}_weights", length)


def _n_classes(trees: Attributes) -> int:
    labels = [len(trees.found.get(f"classlabels_{kind}", ())) for kind in ("int64s", "strings")]
    if (labels[0] > 0) == (labels[1] > 0):
        raise trees.damaged("it needs either n_targets, or one list of class labels")
    return max(labels)


def _check_optional(trees: Attributes, n_nodes: int) -> None:
    """Raise DamagedFileError if an optional array has another length than the nodes."""
    for name in ("nodes_hitrates", "nodes_missing_value_tracks_true"):
        if len(trees.array(name)) not in (0, n_nodes):
            raise trees.damaged(f"{name} has {len(trees.array(name)):,} entries, but {n_nodes:,} or none are needed")


def check_by_positions(trees: Attributes, width: int | None) -> CheckedTrees:
    """Check a TreeEnsemble."""
    n_splits, n_leaves = len(trees.array("nodes_featureids")), len(trees.array("leaf_targetids"))
    roots = trees.integers("tree_roots", len(trees.array("tree_roots")), n_splits)
    if not len(roots) or len(np.unique(roots)) < len(roots):
        raise trees.damaged("tree_roots is empty or names a node twice")
    children = np.stack([_positions(trees, side, n_splits, n_leaves) for side in ("true", "false")])
    spare = n_leaves - len(np.unique(children[children >= n_splits]))
    split, inner = np.arange(n_splits), np.where(children < n_splits, children, -1)
    _check_splits_reached(trees, n_splits, inner, roots)
    mode = trees.integers("nodes_modes", n_splits, _N_MODES)
    members = int(np.isnan(trees.array("membership_values").astype(np.float64)).sum())
    if members != int((mode == _MEMBER).sum()):
        raise trees.damaged(f"membership_values has {members:,} lists, but {int((mode == _MEMBER).sum()):,} are needed")
    _check_optional(trees, n_splits)
    n_targets = trees.count("n_targets")
    trees.integers("leaf_targetids", n_leaves, n_targets)
    return CheckedTrees(
        n_trees=len(roots),
        n_nodes=n_splits + n_leaves - spare,
        n_leaves=n_leaves - spare,
        n_features=_features(trees, n_splits, split, width),
        n_targets=n_targets,
        value=trees.finite("leaf_weights", n_leaves),
        threshold=trees.array("nodes_splits", n_splits).astype(np.float64)[mode != _MEMBER],
    )


def _positions(trees: Attributes, side: str, n_splits: int, n_leaves: int) -> Ints:
    """Return the child of every split; leaf k is position `n_splits + k`."""
    is_leaf = trees.integers(f"nodes_{side}leafs", n_splits, 2) == 1
    child = trees.integers(f"nodes_{side}nodeids", n_splits, max(n_splits, n_leaves))
    outside = child >= np.where(is_leaf, n_leaves, n_splits)
    if outside.any():
        kind, number = ("leaf", n_leaves) if is_leaf[outside][0] else ("node", n_splits)
        raise trees.damaged(f"nodes_{side}nodeids names {kind} {child[outside][0]:,}, but there are {number:,}")
    return np.where(is_leaf, n_splits + child, child)


def _check_splits_reached(trees: Attributes, n_splits: int, inner: NDArray[np.int64], roots: Ints) -> None:
    """Raise DamagedFileError unless the splits, without the leaves, form trees below the roots."""
    if np.isin(roots, inner).any():
        raise trees.damaged("a root is below another node")
    # Leaves become one more position, which every split reaches at the end.
    children = np.where(inner < 0, n_splits, inner)
    _check_reached(trees, n_splits + 1, np.arange(n_splits), children, roots, "node")
