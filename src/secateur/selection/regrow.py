"""Retrain clones of a model on fewer features and prune them too.

A pruned forest cannot regain lost splits, whereas a clone trained on the remaining features can use them better.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.row_provider import RowProvider, Rows
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError, UnsupportedModelError, UnsupportedProblemError
from secateur.forest import Forest
from secateur.forest.node_sums import node_weight
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.path import Path
from secateur.path.combine import JoinedPath, join_paths
from secateur.selection.fitting import FitSettings, fit_path

STAGES = (0.6, 0.35, 0.2, 0.1, 0.05)
"""Cost budget of each stage, as a fraction of the unpruned cost."""


def regrow_path(settings: FitSettings, adapter: Adapter, sample: RowSource) -> JoinedPath:
    """Return the joint path of a model and of clones trained on the same rows with ever fewer features.

    Each stage trains two clones and prunes both. One clone uses the features of the best pruning so far within the
    stage's budget (`regrow` in the column `origin`). The other uses the features with the highest importance per price
    (`top_k`).

    Parameters
    ----------
    settings : FitSettings
        Its `regrow_rows` contain the rows of the sample before routing.
    adapter : Adapter
    sample : RowSource
        The training rows of the clones, routed through the model.

    Raises
    ------
    ValueError
        If the rows are remote, the cost is not a feature cost, the model cannot be refitted, or its features are not
        the columns of X.
    """
    rows, sample = _training_rows(settings.regrow_rows, sample)
    prices = _mean_prices(settings, adapter, sample)
    check_regrowable(adapter, rows)
    parts, names = [fit_path(settings, adapter, sample)], [""]
    unpruned_cost = float(parts[0].table["cost"][0])
    by_worth = np.argsort(-importance(adapter.forest, sample) / np.maximum(prices, 1e-12), kind="stable")
    # Each set of features is trained only once.
    tried: set[frozenset[int]] = set()
    for stage in STAGES:
        for name, features in (
            ("regrow", features_within(parts, stage * unpruned_cost)),
            ("top_k", most_worthy(by_worth, prices, stage * unpruned_cost, adapter.forest)),
        ):
            if not features or features in tried:
                continue
            tried.add(features)
            clone = adapt(adapter.refit(only(rows.X, features), rows.y, rows.weight))
            parts.append(fit_path(settings, clone, rows.sample(clone)))
            names.append(name)
    return join_paths(parts, names)


def _training_rows(rows: RowProvider | None, sample: RowSource) -> tuple[Rows, LocalRows]:
    """Return the rows to train clones on, before and after routing; raise InvalidInputError if they are remote."""
    if not isinstance(rows, Rows) or not isinstance(sample, LocalRows):
        raise InvalidInputError(
            "regrow=True trains clones of the model on this machine, but the rows are remote. Pass regrow=False, or a "
            "sample of the rows as arrays."
        )
    return (rows if sample.row_index is None else rows.take(sample.row_index)), sample


def _mean_prices(settings: FitSettings, adapter: Adapter, sample: LocalRows) -> NDArray[np.float64]:
    """Return the mean price of each feature, (n_features,); raise an error unless the cost is a feature cost."""
    cost = settings.cost_for_solver()
    if not cost.shared:
        raise UnsupportedProblemError(
            f"regrow=True trains clones on fewer features, but the cost is {cost.name}. Pass cost=FeatureCost(prices) "
            "or regrow=False."
        )
    table = cost.price_table(adapter.forest, sample)
    return np.append(table.prices.mean(axis=0), 0.0)[table.resources].sum(axis=1)


def check_regrowable(adapter: Adapter, rows: Rows) -> None:
    """Raise an error unless clones can be trained on a subset of the columns of X."""
    if not adapter.can_refit:
        raise UnsupportedModelError(
            f"A {type(adapter.model).__name__} cannot be trained again, which regrow=True requires. Pass the estimator "
            "that trained it, or regrow=False."
        )
    shape = getattr(rows.X, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != adapter.forest.n_features or hasattr(rows.X, "toarray"):
        raise InvalidInputError(
            f"regrow=True trains on a subset of the columns of X, but X has "
            f"{'no columns' if shape is None else f'{shape[-1]} columns'} and the model "
            f"{adapter.forest.n_features} features. Pass a dense matrix or a DataFrame with one column per feature, "
            "or regrow=False."
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
