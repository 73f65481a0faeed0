"""Compute pruning paths, select prunings and evaluate paths on the rows of a Spark DataFrame."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, Unpack

import numpy as np

from secateur import api
from secateur._util.user_functions import check_names
from secateur.costs import Cost
from secateur.data.row_provider import RowProvider
from secateur.errors import UnsupportedProblemError
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.libraries.spark.live_models import native_booster
from secateur.losses import Loss
from secateur.path import Limits, Path, Progress, Pruned
from secateur.path.scoring import measures_of
from secateur.solvers import Solver
from secateur.spark.cluster_rows import ClusterSample
from secateur.spark.frame_columns import FrameColumns


@dataclass(frozen=True, eq=False)
class SparkRows(RowProvider):
    """Provide the rows of a Spark DataFrame, routed by a model.

    Attributes
    ----------
    frame : pyspark DataFrame
    features, label, weight : columns, or None
        None means the columns of a Spark ML model; for other models "features", "label" and no weights.
    driver_bytes : int
        The largest size of the leaf ids collected on the driver, for solvers that need rows.
    routed : dict of Adapter: ClusterSample
        Cache of the row sources by model, so that rows are counted once.
    """

    frame: Any
    features: str | Sequence[str] | None = None
    label: str | None = None
    weight: str | None = None
    driver_bytes: int = 2**30
    routed: dict[Adapter, ClusterSample] = field(default_factory=dict, repr=False)

    def sample(self, adapter: Adapter) -> ClusterSample:
        """Return the rows on the cluster; the stages of a pipeline compute the feature column if it is missing."""
        if adapter not in self.routed:
            self.routed[adapter] = self._routed_by(adapter)
        return self.routed[adapter]

    def _routed_by(self, adapter: Adapter) -> ClusterSample:
        own = adapter.column_roles
        features = self.features or own.features
        features = features if isinstance(features, str) else tuple(features)
        frame = self.frame
        for stage in adapter.stages_before:
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
    progress: Progress | bool | None = None,
) -> Path:
    """Return the trade-off between loss and cost for a trained model, computed on the rows of a Spark DataFrame.

    Executors route the rows through the trees. Solvers that need sums over rows, such as WeakestLink,
    BlockDescent(granularity="layer", values="keep") and PartitionCut, leave the rows on the cluster. Other solvers get
    the leaf ids of the rows, not their features, on the driver: all of them if they fit into `driver_bytes`, otherwise
    a share that does. The share is drawn by a hash of the rows' contents, so it does not depend on partitions;
    `summary()` and a log line report its size.

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
        As in `secateur.prune_path`.
    cost, loss, progress
        As in `secateur.prune_path`.
    driver_bytes : int
        The largest size of the leaf ids collected on the driver.

    Returns
    -------
    Path
        Call `evaluate` of this module on other rows, then `select`; `to_model` returns a model of the original type.
    """
    _check_cost(cost)
    rows = SparkRows(df, features, label, weight, driver_bytes)
    return api.prune_path(spark_adapter(model), rows, solver=solver, cost=cost, loss=loss, progress=progress)


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
    scoring: Any = None,
    tolerance: float = 0.0,
    confidence: float | None = None,
    validation: Any = 0.25,
    driver_bytes: int = 2**30,
    random_state: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
    return_pruned: bool = False,
    **limits: Unpack[Limits],
) -> Any:
    """Return a smaller copy of a trained model, of the same type, selected on the rows of a Spark DataFrame.

    Parameters
    ----------
    model, df, features, label, weight, solver, cost, loss, driver_bytes, progress
        As in `prune_path`. Preferably pass rows the model was not trained on.
    validation : float, DataFrame or None
        The rows on which a point of the path is selected: a share of the rows, drawn by a hash of their contents and
        so independent of partitions; other rows; or None for the rows the path is computed on. The points are evaluated
        on all of these rows, in one pass on the cluster.
    scoring : str or callable, optional
        As in `secateur.prune`. A metric is no sum over rows, so the leaf ids of all rows must fit into `driver_bytes`.
        X is not collected: a function can only pass it to the estimator.
    tolerance, confidence, random_state, return_pruned
        As in `secateur.prune`.
    max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes : optional
        As in `secateur.prune`.
    max_loss_increase, max_score_drop, max_changed : optional
        As in `secateur.prune`.

    Raises
    ------
    ValueError
        If model and rows do not match, or no pruning satisfies the limits.
    """
    check_names(limits, prune, Limits.__annotations__)
    pruned = prune_point(
        model,
        df,
        features=features,
        label=label,
        weight=weight,
        cost=cost,
        validation=validation,
        driver_bytes=driver_bytes,
        solver=solver,
        loss=loss,
        scoring=scoring,
        tolerance=tolerance,
        confidence=confidence,
        random_state=random_state,
        progress=progress,
        curve=return_pruned,
        **limits,
    )
    return pruned if return_pruned else pruned.to_model()


def prune_point(
    model: Any,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    cost: Cost | str | None = None,
    validation: Any = 0.25,
    driver_bytes: int = 2**30,
    **options: Any,
) -> Pruned:
    """Return the selected `Pruned` instead of its model; the parameters are those of `prune`."""
    _check_cost(cost)
    rows = SparkRows(df, features, label, weight, driver_bytes)
    if hasattr(validation, "mapInArrow"):
        validation = (validation,)
    return api.prune_point(spark_adapter(model), rows, cost=cost, validation=validation, **options)


def evaluate(
    path: Path,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    loss: Loss | str | None = None,
    scoring: Any = None,
    tolerance: float = 0.0,
    driver_bytes: int = 2**30,
) -> Path:
    """Return the path with columns loss, loss_se, changed and increase_se, measured on the rows of a DataFrame.

    All points are evaluated in one pass over the data; with `scoring`, on the driver, as in `prune`.
    """
    measures = measures_of(scoring, tolerance, path.forest)
    rows = SparkRows(df, features, label, weight, driver_bytes).sample(path.source)
    return path.evaluate_sample(rows, loss=loss, measures=measures, rows="the rows passed to evaluate")


def spark_adapter(model: Any) -> Adapter:
    """Return the adapter of a model, also of a booster trained on Spark.

    xgboost.spark models are replaced by their booster, and LightGBM models that SynapseML has saved are read from the
    text file that their path names.
    """
    if isinstance(model, str | PathLike):
        from secateur.files.models import load_model

        model = load_model(model)
    return adapt(native_booster(model))


def _check_cost(cost: Cost | str | None) -> None:
    if cost is not None and not isinstance(cost, str) and cost.row_prices is not None:
        raise UnsupportedProblemError(
            "row_prices has a price for every row, but rows of a DataFrame have no numbers. Pass prices by feature."
        )
