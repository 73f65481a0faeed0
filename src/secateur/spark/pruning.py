"""prune() and prune_path() by rows that live in a Spark cluster."""

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
"""Up to how many leaves, or layers of trees, their inner products are a matrix of reasonable size, some 100 MB."""


@dataclass(frozen=True, eq=False)
class SparkRows(RowProvider):
    """Rows of a Spark DataFrame.

    Attributes
    ----------
    frame : pyspark DataFrame
    features, label, weight : columns, or None
        None for what the model says, if it is one of Spark ML, else "features", "label" and no weights.
    near : bool
        Whether to bring the leaves of the rows to the driver if they fit there, for solvers that look at rows.
    driver_bytes : int
        How large they may be.
    routed : dict of ClusterSample
        The same rows as they were routed by a model before, and so counted.
    """

    frame: Any
    features: str | Sequence[str] | None = None
    label: str | None = None
    weight: str | None = None
    near: bool = False
    driver_bytes: int = 2**30
    routed: dict[Adapter, ClusterSample] = field(default_factory=dict, repr=False)

    def sample(self, adapter: Adapter) -> RowSource:
        """Return them routed: in the cluster, or here."""
        cluster = self.cluster(adapter)
        return cluster.collect() if self.near and not cluster.why_not_local else cluster

    def cluster(self, adapter: Adapter) -> ClusterSample:
        """Return them as they are routed in the cluster; a pipeline's own stages make the features, if they must."""
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
        """Return another DataFrame with the same columns."""
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
    """Return the whole trade-off between loss and cost for a trained model, judged by the rows of a Spark DataFrame.

    Rows stay where they are: executors send them through the trees, and each partition answers with sums. Solvers that
    ask for sums at the nodes read the data once; BlockDescent and MinCut go over the leaves the rows reached, kept by
    the executors, many times. What looks at rows one by one gets their leaves, not their features, brought to the
    driver, if they fit.

    Parameters
    ----------
    model : fitted model
        Of Spark ML, live or saved, alone or in a pipeline; or of any other library that secateur knows.
    df : pyspark DataFrame
    features : str or list of str, optional
        A column of vectors or arrays, or plain columns. Default: what a Spark ML model says, else "features".
    label, weight : str, optional
        Default: what a Spark ML model says, else "label", and no weights.
    solver : Solver, a name, or "auto"
        "auto" brings the leaves to the driver and does what it does there, if they fit; else it takes a solver that
        reads the data once.
    cost, loss, progress
        As in `secateur.prune_path`.
    driver_bytes : int
        How large the leaves brought to the driver may be.

    Returns
    -------
    Path
        Call `evaluate` of this module on other rows, then `select`; `to_model` gives a model of the kind given.
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
    """Return a smaller copy of a trained model, of the same type, judged by the rows of a Spark DataFrame.

    Parameters
    ----------
    model, df, features, label, weight, solver, cost, loss, driver_bytes, progress
        As in `prune_path`. Best pass rows the model was not trained on.
    validation : float, DataFrame or None
        The rows on which a point of the path is chosen: a share of the rows, which is drawn by what is in them and so
        does not depend on partitions; other rows; or None for the rows the path is made on.
    max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes, max_loss_increase, random_state
        As in `secateur.prune`.

    Raises
    ------
    ValueError
        If model and rows do not fit, or no pruning satisfies the limits.
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
    """Do what `prune` does, but return the chosen `Pruned`: its `summary()` says what was gained and lost."""
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

    All points are judged in one pass over the data.
    """
    rows = SparkRows(df, features, label, weight).cluster(path.source)
    return path.evaluate_sample(rows, loss=loss, rows="the rows passed to evaluate")


def _chosen(
    solver: Solver | str, rows: SparkRows, adapter: Adapter, cost: Cost | str | None
) -> tuple[Solver | str, SparkRows]:
    """Return the solver to take and the rows as it takes them, for a caller who names none."""
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
    """Return a solver that needs few passes over rows that cannot be brought together."""
    forest = adapter.forest
    if cost == "features" or isinstance(cost, SharedCost):
        return MinCut()
    if forest.n_trees < 2 or adapter.why_immutable("value") or no_gram(forest):
        return WeakestLink()
    if forest.n_leaves <= _MOST_LEAVES and not forest.symmetric:
        return BlockDescent(penalties=25)
    return BlockDescent(granularity="layer", values="keep") if columns(forest)[-1] <= _MOST_LAYERS else WeakestLink()
