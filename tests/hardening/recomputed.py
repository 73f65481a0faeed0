"""Recompute every number of a path's table from the pruned forest, row by row."""

from typing import Any

import numpy as np
from tests.strategies import step, walk

from secateur.forest import Forest
from secateur.forest.subforest import check_keep
from secateur.path import Path

Floats = np.ndarray[Any, np.dtype[np.float64]]


def sizes(forest: Forest) -> dict[str, int]:
    """Return the sizes of a forest, counted in its arrays."""
    depth = [0] * forest.n_nodes
    for v in range(forest.n_nodes):
        if forest.right[v] != -1:
            depth[v + 1] = depth[int(forest.right[v])] = depth[v] + 1
    split = forest.right != -1
    return {
        "n_nodes": len(forest.right),
        "n_leaves": int((~split).sum()),
        "n_trees": len(forest.tree_start) - 1,
        "n_features": len(set(forest.feature[split].tolist())),
        "depth": max(depth, default=0),
    }


def cost(name: str, forest: Forest, rows: Any, weight: Floats) -> float:
    """Return the cost of a forest: its nodes, or the mean price of the distinct features on the paths of a row."""
    if name == "nodes":
        return float(len(forest.right))
    assert name == "features"
    return float(np.average([len(_met(forest, x)) for x in rows], weights=weight))


def _met(forest: Forest, x: Any) -> set[int]:
    """Return the features on the paths of a row."""
    met = set()
    for tree in range(forest.n_trees):
        v = int(forest.tree_start[tree])
        while forest.right[v] != -1:
            met.add(int(forest.feature[v]))
            v = step(forest, v, x)
    return met


def risk(path: Path, point: int, rows: Any, y: Any, weight: Floats) -> float | None:
    """Return the mean loss that the solver minimised; None if it depends on the sum of trees, or trees were removed."""
    whole, pruned = path.forest, path[point].forest
    if path.info.judges == "ensemble":
        return None  # computed from the native model instead
    if pruned.n_trees != whole.n_trees:
        return None
    total = 0.0
    for tree in range(whole.n_trees):
        ends = [walk(pruned, tree, x) for x in rows]
        if whole.trees_predict_target:
            losses = loss(path.info.loss, pruned, pruned.value[ends], y)
        else:
            before = whole.value[[walk(whole, tree, x) for x in rows]]
            losses = ((pruned.value[ends] - before) ** 2).sum(axis=1) * whole.tree_weight[tree] ** 2
        total += float(np.average(losses, weights=weight))
    return total / whole.n_trees


def loss(name: str, forest: Forest, predicted: Floats, y: Any) -> Floats:
    """Return the loss of each row from its predictions: a number per target, or probabilities of the classes."""
    if name == "squared_error":
        return ((predicted - y) ** 2).mean(axis=1)
    if name == "absolute_error":
        return np.abs(predicted - y).mean(axis=1)
    parts = np.split(predicted, np.cumsum(forest.n_classes)[:-1], axis=1)
    each = []
    for share, label in zip(parts, y.T, strict=True):
        own = share[np.arange(len(y)), label]
        if name == "brier":
            each.append(((share - np.eye(share.shape[1])[label]) ** 2).sum(axis=1))
        elif name == "log_loss":
            each.append(-np.log(np.maximum(own, np.finfo(float).eps)))
        else:
            assert name == "zero_one"
            each.append((share.argmax(axis=1) != label).astype(float))
    return np.mean(each, axis=0)


def as_array(predictions: dict[str, Any], forest: Forest) -> Floats | None:
    """Return a native model's numbers or class probabilities as one array; None if it predicts neither."""
    if not forest.n_classes:
        predicted = np.asarray(predictions["predict"], np.float64) if "predict" in predictions else None
        return predicted if predicted is None else predicted.reshape(len(predicted), -1)
    if "predict_proba" not in predictions:
        return None
    probabilities = predictions["predict_proba"]
    return np.hstack(probabilities) if isinstance(probabilities, list) else np.asarray(probabilities, np.float64)


def is_pruning(path: Path, point: int) -> None:
    """Raise ValueError unless the keep mask of a point is a pruning."""
    check_keep(path.forest, path.masks.keep(point))
