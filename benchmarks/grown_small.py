"""Train small ensembles directly, as a baseline for pruning: a grid of depths, learning rates and numbers of trees."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from benchmarks.folds import Floats, Fold

_RATES = {0.1: 250, 0.3: 120, 1.0: 40}
"""Learning rates, and the maximum number of trees of each."""
_BOOSTED_DEPTHS = (1, 2, 3, 5)
_BAGGED_DEPTHS = (4, 8, 12, 20)
_BAGGED_TREES = (1, 2, 5, 10, 20, 50, 100)
_MOST_NODES = 5_000


@dataclass(frozen=True, eq=False)
class Grown:
    """One small model: its number of nodes, and its predictions."""

    n_nodes: int
    predict: Callable[[Floats], Floats]
    on_validation: Floats


def grow_small(fold: Fold, quick: bool = False) -> list[Grown]:
    """Return boosters and forests of many sizes, trained on the training rows."""
    models = []
    for depth, rate in product(_BOOSTED_DEPTHS[:2] if quick else _BOOSTED_DEPTHS, (0.3,) if quick else _RATES):
        models += _boosted(fold, depth, rate, min(_RATES[rate], _MOST_NODES // (2 ** (depth + 1) - 1)))
    for depth in _BAGGED_DEPTHS[:1] if quick else _BAGGED_DEPTHS:
        models += _bagged(fold, depth, [n for n in _BAGGED_TREES if n <= 10 or not quick])
    return models


def _boosted(fold: Fold, depth: int, rate: float, n_trees: int) -> Iterator[Grown]:
    """Yield a booster after each of its trees."""
    model = GradientBoostingRegressor(
        n_estimators=n_trees,
        max_depth=depth,
        learning_rate=rate,
        subsample=1.0 if rate == 1.0 else 0.5,
        random_state=0,
    ).fit(fold.train.X, fold.train.y)
    nodes = np.cumsum([tree.tree_.node_count for tree in model.estimators_[:, 0]])
    for stage, on_validation in enumerate(model.staged_predict(fold.validation.X)):
        yield Grown(int(nodes[stage]), _stage(model, stage), on_validation)


def _stage(model: Any, stage: int) -> Callable[[Floats], Floats]:
    return lambda X: next(islice(model.staged_predict(X), stage, None))


def _bagged(fold: Fold, depth: int, counts: list[int]) -> Iterator[Grown]:
    """Yield the forests of the first `n` trees, for each n in `counts`."""
    model = RandomForestRegressor(max(counts), max_depth=depth, max_features="sqrt", random_state=0)
    trees = model.fit(fold.train.X, fold.train.y).estimators_
    for n_trees in counts:
        predict = _mean_of(trees[:n_trees])
        yield Grown(sum(tree.tree_.node_count for tree in trees[:n_trees]), predict, predict(fold.validation.X))


def _mean_of(trees: list[Any]) -> Callable[[Floats], Floats]:
    return lambda X: np.mean([tree.predict(X) for tree in trees], axis=0)
