"""Compute pruning paths, select prunings and evaluate paths on the rows of a Spark DataFrame."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from secateur import api
from secateur.costs import Cost, SharedCost
from secateur.data.row_source import RowSource
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss
from secateur.path import Path, Progress, Pruned
from secateur.selection.validation import RowProvider
from secateur.solvers import BlockDescent, MinCut, Solver, WeakestLink
from secateur.solvers.ensemble.gram import columns, no_gram
from secateur.spark.cluster_rows import ClusterSample
from secateur.spark.frame_columns import FrameColumns
from secateur.spark.stages import own_columns, stages_before

_MOST_LEAVES, _MOST_LAYERS = 4_096, 3_000
"""Largest numbers of leaves, or of layers of trees, whose Gram matrix has a reasonable size, some 100 MB."""


@dataclass(frozen=True, eq=False)
class SparkRows(RowProvider):
    """Provide the rows of a Spark DataFrame, routed by a model.

    Attributes
    ----------
    frame : pyspark DataFrame
    features, label, weight : columns, or None
        None means the columns of a Spark ML model; for other models "features", "label" and no weights.
    near : bool
        Whether to collect the leaf ids of the rows on the driver if they fit, for solvers that need rows.
    driver_bytes : int
        The largest size of the collected leaf ids.
    routed : dict of Adapter: ClusterSample
        Cache of the row sources by model, so that rows are counted once.
    """

    frame: Any
    features: str | Sequence[str] | None = None
    label: str | None = None
    weight: str | None = None
    near: bool = False
    driver_bytes: int = 2**30
    routed: dict[Adapter, ClusterSample] = field(default_factory=dict, repr=False)

    def sample(self, adapter: Adapter) -> RowSource:
        """Return the routed rows: collected on the driver if `near` and they fit, else on the cluster."""
        cluster = self.cluster(adapter)
        return cluster.collect() if self.near and not cluster.why_not_local else cluster

    def cluster(self, adapter: Adapter) -> ClusterSample:
        """Return the rows on the cluster; the stages of a pipeline compute the feature column if it is missing."""
        if adapter not in self.routed:
            self.routed[adapter] = self._routed_by(adapter)
        return self.routed[adapter]

    def _routed_by(self, adapter: Adapter) -> ClusterSample:
        own = own_columns(adapter)
        features = self.features or own.features
        features = features if isinstance(features, str) else tuple(features)
        frame = self.frame
        for stage in stages_before(adapter.model):
            if isinstance(features, str) and features not in frame.columns:
                frame = stage.transform(frame)
        label = self.label or own.label if adapter.supervised else None
        chosen = FrameColumns(features, label, self.weight or own.weight)
        return ClusterSample.of(frame, adapter, chosen, driver_bytes=self.driver_bytes)

    def others(self, given: tuple[Any, ...]) -> "SparkRows":
        """Return the rows of another DataFrame, with the same column roles."""
        return replace(self, frame=given[0], routed={})


def prune_path(
    model: Any,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    driver_bytes: int = 2**30,
    progress: Progress | None = None,
) -> Path:
    """Return the trade-off between loss and cost for a trained model, computed on the rows of a Spark DataFrame.

    Rows stay on the cluster: executors route them through the trees, and each partition returns sums. Solvers that need
    sums at the nodes, and BlockDescent(granularity="layer", values="keep"), read the data once. Other settings of
    BlockDescent, and MinCut, make many passes over the leaf ids, which the executors persist. Solvers that need single
    rows get their leaf ids, not their features, collected on the driver, if they fit.

    Parameters
    ----------
    model : fitted model
        Of Spark ML, live or saved, alone or in a pipeline; or of any other library that secateur knows.
    df : pyspark DataFrame
    features : str or list of str, optional
        A column of vectors or arrays, or plain columns. Default: the columns of a Spark ML model, else "features".
    label, weight : str, optional
        Default: the columns of a Spark ML model, else "label" and no weights.
    solver : Solver, a name, or "auto"
        "auto" collects the leaf ids on the driver and behaves as in `secateur.prune_path`, if they fit. Otherwise it
        takes a solver that works with sums over remote rows: MinCut for a feature cost, else WeakestLink or
        BlockDescent.
    cost, loss, progress
        As in `secateur.prune_path`.
    driver_bytes : int
        The largest size of the leaf ids collected on the driver.

    Returns
    -------
    Path
        Call `evaluate` of this module on other rows, then `select`; `to_model` returns a model of the original type.
    """
    rows = SparkRows(df, features, label, weight, driver_bytes=driver_bytes)
    adapter = adapt(model)
    solver, rows = _chosen(solver, rows, adapter, cost)
    return api.prune_path(adapter, rows, solver=solver, cost=cost, loss=loss, progress=progress)


def prune(
    model: Any,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    loss: Loss | str | None = None,
    validation: Any = 0.25,
    driver_bytes: int = 2**30,
    max_nodes: int | None = None,
    max_leaves: int | None = None,
    max_trees: int | None = None,
    max_depth: int | None = None,
    max_features: int | None = None,
    max_cost: float | None = None,
    max_bytes: int | None = None,
    max_loss_increase: float | None = None,
    random_state: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> Any:
    """Return a smaller copy of a trained model, of the same type, selected on the rows of a Spark DataFrame.

    Parameters
    ----------
    model, df, features, label, weight, solver, cost, loss, driver_bytes, progress
        As in `prune_path`. Preferably pass rows the model was not trained on.
    validation : float, DataFrame or None
        The rows on which a point of the path is selected: a share of the rows, drawn by a hash of their contents and
        so independent of partitions; other rows; or None for the rows the path is computed on.
    max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes, max_loss_increase, random_state
        As in `secateur.prune`.

    Raises
    ------
    ValueError
        If model and rows do not match, or no pruning satisfies the limits.
    """
    given = locals()
    options = {name: given[name] for name in given if name not in ("model", "df")}
    return prune_point(model, df, **options).to_model()


def prune_point(
    model: Any,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    solver: Solver | str = "auto",
    cost: Cost | str | None = None,
    validation: Any = 0.25,
    driver_bytes: int = 2**30,
    **options: Any,
) -> Pruned:
    """Return the selected `Pruned` instead of its model; the parameters are those of `prune`."""
    rows = SparkRows(df, features, label, weight, driver_bytes=driver_bytes)
    adapter = adapt(model)
    solver, rows = _chosen(solver, rows, adapter, cost)
    if hasattr(validation, "mapInArrow"):
        validation = (validation,)
    return api.prune_point(adapter, rows, solver=solver, cost=cost, validation=validation, **options)


def evaluate(
    path: Path,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    loss: Loss | None = None,
) -> Path:
    """Return the path with columns loss, loss_se, changed and increase_se, measured on the rows of a DataFrame.

    All points are evaluated in one pass over the data.
    """
    rows = SparkRows(df, features, label, weight).cluster(path.source)
    return path.evaluate_sample(rows, loss=loss, rows="the rows passed to evaluate")


def _chosen(
    solver: Solver | str, rows: SparkRows, adapter: Adapter, cost: Cost | str | None
) -> tuple[Solver | str, SparkRows]:
    """Return the solver and the rows in the form it needs; resolve solver="auto"."""
    if getattr(cost, "row_prices", None) is not None:
        raise ValueError(
            "row_prices has a price for every row, but rows of a DataFrame have no numbers. Use prices by feature."
        )
    if not (isinstance(solver, str) and solver == "auto"):
        return solver, rows
    if not rows.cluster(adapter).why_not_local:
        return solver, replace(rows, near=True)
    return from_afar(adapter, cost), rows


def from_afar(adapter: Adapter, cost: Cost | str | None) -> Solver:
    """Return a solver that needs only sums over remote rows, chosen by the cost and the size of the forest."""
    forest = adapter.forest
    if cost == "features" or isinstance(cost, SharedCost):
        return MinCut()
    if forest.n_trees < 2 or adapter.why_immutable("value") or no_gram(forest):
        return WeakestLink()
    if forest.n_leaves <= _MOST_LEAVES and not forest.symmetric:
        return BlockDescent(penalties=25)
    return BlockDescent(granularity="layer", values="keep") if columns(forest)[-1] <= _MOST_LAYERS else WeakestLink()
