"""Compute curves of error against feature cost on given rows, and average the curves of folds at an error level."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc
from benchmarks.load import Data
from benchmarks.results import Row
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
_PENALTIES = 1_000


@dataclass(frozen=True, eq=False)
class Curve:
    """Errors and costs of the points of a path on given rows, from the unpruned forest on.

    Attributes
    ----------
    penalty, error, cost : (n_points,)
        A point holds for its penalty and all penalties up to the next.
    """

    penalty: Floats
    error: Floats
    cost: Floats

    def at(self, penalties: Floats) -> tuple[Floats, Floats]:
        """Return errors and costs at the penalties; a negative penalty gives the unpruned forest."""
        point = np.searchsorted(self.penalty, penalties, side="right") - 1
        point[penalties < 0] = 0
        return self.error[point], self.cost[point]


def part(data: Data, rows: Rows) -> Data:
    return replace(data, X=data.X[rows], y=data.y[rows])


def divide(data: Data, share: float, seed: int) -> tuple[Data, Data]:
    """Return two parts, the second with the fraction `share` of rows; stratified if each class has two rows."""
    labels = data.y if np.unique(data.y, return_counts=True)[1].min() > 1 else None
    first, second = train_test_split(np.arange(len(data.y)), test_size=share, stratify=labels, random_state=seed)
    return part(data, first), part(data, second)


def grow(data: Data, n_trees: int, seed: int) -> Any:
    return RandomForestClassifier(n_trees, random_state=seed).fit(data.X, data.y)


def error_of(model: Any, data: Data) -> float:
    return float(np.mean(model.predict(data.X) != data.y))


def vote_error(model: Any, data: Data) -> float:
    """Return the error of the majority vote; ties go to the first class."""
    labels = np.array([tree.predict(data.X).astype(np.intp) for tree in model.estimators_])
    votes = np.array([(labels == k).sum(axis=0) for k in range(len(model.classes_))])
    return float(np.mean(model.classes_[votes.argmax(axis=0)] != data.y))


def trace(path: sc.Path, data: Data, cost: FeatureCost) -> Curve:
    """Return error and cost of every point on the given rows."""
    sample = read_sample(path.source, data.X, data.y)
    errors = path.evaluate_sample(sample, rows="other rows").table["loss"]
    return Curve(path.table["penalty"], errors, cost.totals(path.forest, sample, path.masks))


def cheapest(validated: Curve, tested: Curve, rise: float) -> tuple[float, float]:
    """Return the increase of the test error and the remaining fraction of the test cost at the selected point.

    It is the cheapest point whose error on the validation rows exceeds that of the unpruned forest by at most `rise`.
    """
    good = np.flatnonzero(validated.error <= validated.error[0] + rise + 1e-12)
    point = good[validated.cost[good].argmin()]
    return tested.error[point] - tested.error[0], tested.cost[point] / tested.cost[0]


def match(curves: list[Curve], rise: float) -> Row:
    """Return error and cost at the largest penalty at which the mean error exceeds the unpruned one by `rise`.

    They are interpolated linearly between at most a thousand penalties.
    """
    known = np.unique(np.concatenate([curve.penalty for curve in curves]))
    some = np.unique(np.linspace(0, len(known) - 1, _PENALTIES).astype(np.intp))
    penalties = np.concatenate([[-1.0], known[some]])
    every = np.array([curve.at(penalties) for curve in curves])  # curves, error and cost, penalties
    error = every[:, 0].mean(axis=0)
    level = error[0] + rise
    k = int(np.flatnonzero(error <= level + 1e-12)[-1])
    after = min(k + 1, len(penalties) - 1)
    t = 0.0 if after == k else max(0.0, level - error[k]) / (error[after] - error[k])
    return spread((1 - t) * every[:, :, k] + t * every[:, :, after])


def spread(pairs: Any) -> Row:
    """Return means and standard deviations of errors and costs, (n, 2)."""
    (error, cost), (of_error, of_cost) = np.mean(pairs, axis=0), np.std(pairs, axis=0)
    return {"error": float(error), "±_error": float(of_error), "cost": float(cost), "±_cost": float(of_cost)}
