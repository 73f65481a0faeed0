"""Prune a model below given nodes, or below every split that satisfies a predicate."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import warn
from secateur.editing.views import NodeView, top_down
from secateur.errors import InvalidInputError, NothingPrunedWarning
from secateur.forest import Forest
from secateur.forest.subforest import Decision
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter

Ids = Iterable[int]
Nodes = Ids | Sequence[Ids] | Mapping[int, Ids] | Callable[[NodeView], bool]


def prune_nodes(model: Any, nodes: Nodes) -> Any:
    """Return a copy of a trained model, of the same type, pruned below the given nodes; leaf values are not refitted.

    Parameters
    ----------
    model : fitted model or Forest
    nodes : node ids, or a callable
        The nodes that become leaves. For a single tree pass their ids; for an ensemble pass a dict `{tree: ids}`, or a
        sequence with the ids of every tree. Ids are those of the library (in scikit-learn those of `tree_`, `apply`
        and `decision_path`). The id of a leaf has no effect. Trees are numbered in the order in which the model adds
        them. A callable is a predicate: it gets a `NodeView` of each split, from the root down, and returns whether to
        prune below it. It is not called for splits that have already been pruned away.

    Raises
    ------
    InvalidInputError
        If a tree or a node does not exist, or the ids are not given as above.

    Warns
    -----
    NothingPrunedWarning
        If none of the nodes has descendants.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> tree.tree_.node_count, prune_nodes(tree, [2]).tree_.node_count
    (17, 3)
    >>> prune_nodes(tree, lambda node: node.n_samples < 50).tree_.node_count
    7
    """
    adapter = adapt(model)
    cut = _select(adapter, nodes) if callable(nodes) else _forest_nodes(adapter, _by_tree(adapter.forest, nodes))
    keep = _not_below(adapter.forest, cut)
    if keep.all():
        warn(
            "Nothing was pruned, because none of the given nodes has descendants. Pass the ids of splits, not of "
            "leaves, or a callable that returns True for at least one split.",
            NothingPrunedWarning,
        )
    return adapter.write(Decision(keep))


def _select(adapter: Adapter, predicate: Callable[[NodeView], bool]) -> NDArray[np.intp]:
    """Return the splits for which the predicate returns True."""
    cut = np.zeros(adapter.forest.n_nodes, bool)
    for v, view in top_down(adapter, cut, splits_only=True):
        cut[v] = bool(predicate(view))
    return np.flatnonzero(cut)


def _by_tree(forest: Forest, nodes: Any) -> dict[int, NDArray[np.int64]]:
    """Return the node ids by tree, from any of the accepted forms."""
    if isinstance(nodes, Mapping):
        return {_tree_index(forest, tree): _as_ids(ids) for tree, ids in nodes.items()}
    if forest.n_trees == 1 and not _nested(nodes):
        return {0: _as_ids(nodes)}
    if not _nested(nodes) or len(nodes) != forest.n_trees:
        raise InvalidInputError(
            f"Got {nodes!r:.40} for a model of {forest.n_trees} trees, but node ids are numbered within each tree. "
            "Pass a dict {tree: ids}, or a sequence with one sequence of ids for every tree."
        )
    return {tree: _as_ids(ids) for tree, ids in enumerate(nodes)}


def _nested(nodes: Any) -> bool:
    """Return whether `nodes` is a nonempty sequence of sequences."""
    return isinstance(nodes, Sequence | np.ndarray) and len(nodes) > 0 and isinstance(nodes[0], Iterable)


def _tree_index(forest: Forest, tree: Any) -> int:
    if not isinstance(tree, int | np.integer) or not 0 <= tree < forest.n_trees:
        raise InvalidInputError(
            f"The model has no tree {tree!r}; its trees are numbered 0 to {forest.n_trees - 1}. "
            "Pass these numbers, in the order in which the model adds its trees."
        )
    return int(tree)


def _as_ids(ids: Any) -> NDArray[np.int64]:
    array = np.asarray(list(ids) if isinstance(ids, Iterable) else ids)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidInputError(
            f"Got node ids of type {array.dtype} and shape {array.shape}, but ids must be a flat list of integers. "
            "To use a mask of nodes, pass np.flatnonzero(mask)."
        )
    return array.astype(np.int64)


def _forest_nodes(adapter: Adapter, by_tree: dict[int, NDArray[np.int64]]) -> NDArray[np.intp]:
    """Return the forest nodes that have these native ids."""
    start, native_ids = adapter.forest.tree_start, adapter.native_ids()
    found = [np.empty(0, np.intp)]
    for tree, ids in by_tree.items():
        known = native_ids[start[tree] : start[tree + 1]]
        unknown = ids[~np.isin(ids, known)]
        if len(unknown):
            raise InvalidInputError(
                f"Tree {tree} has no node {unknown[0]}; its nodes are numbered {known.min()} to {known.max()}. "
                "Pass node ids of the library; node_views(model) lists them."
            )
        order = np.argsort(known)
        found.append(start[tree] + order[np.searchsorted(known, ids, sorter=order)])
    return np.concatenate(found)


def _not_below(forest: Forest, cut: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return the mask of the nodes that are below none of `cut`, (n_nodes,)."""
    # The descendants of v are the preorder slice v+1:end[v], so a running sum counts the cut ancestors of each node.
    opened = np.bincount(cut + 1, minlength=forest.n_nodes + 1)
    closed = np.bincount(forest.end[cut], minlength=forest.n_nodes + 1)
    return np.cumsum(opened - closed)[: forest.n_nodes] == 0
