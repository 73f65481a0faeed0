"""Retrain clones of a model on fewer features and prune them too.

A pruned forest cannot regain lost splits, whereas a clone trained on the remaining features can use them better.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.forest import Forest
from secateur.forest.node_sums import node_weight
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.path import Path
from secateur.path.combine import JoinedPath, join_paths
from secateur.selection.validation import Rows

STAGES = (0.6, 0.35, 0.2, 0.1, 0.05)
"""Cost budget of each stage, as a fraction of the unpruned cost."""


def regrow(
    adapter: Adapter,
    rows: Rows,
    sample: LocalRows,
    make: Callable[[Adapter, LocalRows], Path],
    prices: NDArray[np.float64],
) -> JoinedPath:
    """Return the joint path of a model and of clones trained on the same rows with ever fewer features.

    Each stage trains two clones and prunes both. One clone uses the features of the best pruning so far within the
    stage's budget (`regrow` in the column `origin`). The other uses the features with the highest importance per price
    (`top_k`).

    Parameters
    ----------
    adapter : Adapter
    rows : Rows
        Training rows of the clones.
    sample : LocalRows
        The same rows, routed through the model.
    make : callable
        Returns the path of a model.
    prices : (n_features,)
        Feature costs, for `top_k`.

    Raises
    ------
    ValueError
        If the model cannot be refitted, or its features are not the columns of X.
    """
    check_regrowable(adapter, rows)
    parts, names = [make(adapter, sample)], [""]
    whole = float(parts[0].table["cost"][0])
    by_worth = np.argsort(-importance(adapter.forest, sample) / np.maximum(prices, 1e-12), kind="stable")
    # Each set of features is trained only once.
    tried: set[frozenset[int]] = set()
    for stage in STAGES:
        for name, features in (
            ("regrow", features_within(parts, stage * whole)),
            ("top_k", most_worthy(by_worth, prices, stage * whole, adapter.forest)),
        ):
            if not features or features in tried:
                continue
            tried.add(features)
            clone = adapt(adapter.refit(only(rows.X, features), rows.y, rows.weight))
            parts.append(make(clone, rows.sample(clone)))
            names.append(name)
    return join_paths(parts, names)


def check_regrowable(adapter: Adapter, rows: Rows) -> None:
    """Raise ValueError unless clones can be trained on a subset of the columns of X."""
    if not adapter.can_refit:
        raise ValueError(
            f"A {type(adapter.model).__name__} cannot be trained again from here, which regrowing needs. Pass the "
            "estimator it was trained as, or leave regrow out."
        )
    shape = getattr(rows.X, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != adapter.forest.n_features or hasattr(rows.X, "toarray"):
        raise ValueError(
            f"Regrowing trains on some of the columns of X, but X has {'no columns' if shape is None else shape[-1]} "
            f"and the trees look at {adapter.forest.n_features} features. Pass a matrix or a DataFrame to a model that "
            "sees its columns as they are, or leave regrow out."
        )


def features_within(parts: list[Path], budget: float) -> frozenset[int]:
    """Return the features of the point of least risk within the budget, over all paths; empty if none fits."""
    best: tuple[float, Path, int] | None = None
    for path in parts:
        within = np.flatnonzero(path.table["cost"] <= budget)
        if len(within):
            point = int(within[path.table["risk"][within].argmin()])
            if best is None or path.table["risk"][point] < best[0]:
                best = float(path.table["risk"][point]), path, point
    if best is None:
        return frozenset()
    return frozenset(best[1][best[2]].forest.features_used.tolist())


def most_worthy(
    by_worth: NDArray[np.intp], prices: NDArray[np.float64], budget: float, forest: Forest
) -> frozenset[int]:
    """Return the features taken greedily, in order of importance per price, within the budget.

    The cost of a set is the sum of its prices, as if every row used all of its features. Features the forest does not
    use are skipped.
    """
    used = set(forest.features_used.tolist())
    taken, spent = [], 0.0
    for k in by_worth.tolist():
        if k in used and spent + prices[k] <= budget:
            taken.append(k)
            spent += prices[k]
    return frozenset(taken)


def importance(forest: Forest, sample: LocalRows) -> NDArray[np.float64]:
    """Return the importance of each feature, (n_features,).

    It is the squared change of the node value from a split to its children, summed over the rows at the children and
    over all splits on the feature.
    """
    at = node_weight(forest, sample.leaves, sample.weight)
    split = np.flatnonzero(forest.is_split)
    gain = np.zeros(len(split))
    for child in (split + 1, forest.right[split]):
        gain += at[child] * ((forest.value[child] - forest.value[split]) ** 2).sum(axis=1)
    total = np.zeros(forest.n_features)
    np.add.at(total, forest.feature[split], gain)
    return total


def only(X: Any, features: frozenset[int]) -> Any:
    """Return X with all columns but `features` made constant, equal to their value in the first row."""
    others = [k for k in range(X.shape[1]) if k not in features]
    if hasattr(X, "iloc"):
        blank = X.copy()
        for k in others:
            blank.isetitem(k, X.iloc[np.zeros(len(X), int), k].set_axis(X.index))
        return blank
    blank = np.array(X)
    blank[:, others] = blank[:1, others]
    return blank
