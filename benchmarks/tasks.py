"""Define the tasks that methods are compared on, one class per kind, and checks that their results agree."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

import secateur
from benchmarks.load import Data


@dataclass(frozen=True, eq=False)
class PathTask:
    """Kind "path": the penalties of the whole cost-complexity path of a fitted tree; `run` returns them sorted."""

    model: Any
    X: NDArray[np.float64]
    y: NDArray[Any]


@dataclass(frozen=True, eq=False)
class RowsTask:
    """Kind "leaves": the leaf of each row in each tree, (n_rows, n_trees), in one thread.

    Kind "sums": the raw prediction of a boosted model, (n_rows,), in one thread.
    """

    model: Any
    X: NDArray[np.floating]


@dataclass(frozen=True)
class Limit:
    """Limit of the loss or of the size of a pruned model.

    Attributes
    ----------
    max_loss_increase : float, optional
        Share of the unpruned model's loss on the validation rows.
    max_nodes : int, optional
    same_nodes : int, optional
        The size of the reference method's choice, for methods that cannot choose by loss.
    """

    max_loss_increase: float | None = None
    max_nodes: int | None = None
    same_nodes: int | None = None


@dataclass(frozen=True, eq=False)
class PruneTask:
    """Kind "prune": a model smaller than `model`, selected on `validation` within a limit that is passed later."""

    model: Any
    train: Data
    validation: Data


def count_nodes(model: Any) -> int:
    """Return the number of nodes of a scikit-learn tree or forest."""
    trees = getattr(model, "estimators_", [model])
    return sum(tree.tree_.node_count for tree in trees)


def model_loss(model: Any, data: Data) -> float:
    """Return the Brier score, or the mean squared error."""
    if not is_classifier(model):
        return float(((model.predict(data.X) - data.y) ** 2).mean())
    wanted = data.y[:, None] == model.classes_
    return float(((model.predict_proba(data.X) - wanted) ** 2).sum(axis=1).mean())


def largest_difference(found: NDArray[np.float64], wanted: NDArray[np.float64]) -> float | None:
    """Return the largest relative difference of two sorted lists of penalties; None if they differ in length.

    Ties come out as one penalty or as several that differ by rounding, and penalties near 0 are nothing but rounding.
    So values within a relative 1e-7 count as one, and values below a billionth of the largest as none.
    """
    found, wanted = _distinct(found), _distinct(wanted)
    if len(found) != len(wanted):
        return None
    return float((np.abs(found - wanted) / wanted).max(initial=0.0))


def _distinct(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = values[values > 1e-9 * values.max(initial=0.0)]
    return values[np.diff(values, prepend=0.0) > 1e-7 * values]


def prune_within(model: Any, rows: Data, validation: Any, limit: Limit) -> Any:
    """Return the model pruned by WeakestLink within the limit; the path is computed on `rows`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing was pruned is seen in the table
        return secateur.prune(
            model,
            rows.X,
            rows.y,
            solver="weakest_link",
            validation=validation,
            max_loss_increase=limit.max_loss_increase,
            max_nodes=limit.max_nodes,
        )
