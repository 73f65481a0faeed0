"""Prune tree models inside a Spark ML pipeline: PruneEstimator trains and prunes, PruneModel predicts.

    Pipeline(stages=[indexer, assembler, PruneEstimator(estimator=rf, maxNodes=500)])

trains `rf` on part of the rows and selects a pruning on the held-out rows.

    Pipeline(stages=[indexer, assembler, rf, PruneEstimator(maxNodes=500)])

prunes the model fitted by the preceding stage, because this PruneEstimator has no `estimator`.
"""

import os
from typing import Any

from pyspark import __version__ as spark_version
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasSeed, HasWeightCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from secateur._util.user_functions import warn
from secateur.costs import FeatureCost
from secateur.errors import TrainingRowsWarning
from secateur.libraries.spark.live_models import tree_model
from secateur.spark.lineage import fitted_before
from secateur.spark.pruning import prune_point
from secateur.spark.split import by_content

_LIMITS = {
    "maxNodes": ("max_nodes", TypeConverters.toInt, "how many nodes the model may have"),
    "maxLeaves": ("max_leaves", TypeConverters.toInt, "how many leaves the model may have"),
    "maxTrees": ("max_trees", TypeConverters.toInt, "how many trees the model may have"),
    "maxDepth": ("max_depth", TypeConverters.toInt, "how deep trees may be"),
    "maxFeatures": ("max_features", TypeConverters.toInt, "how many features the model may look at"),
    "maxCost": ("max_cost", TypeConverters.toFloat, "what the features of a row may cost on average"),
    "maxLossIncrease": ("max_loss_increase", TypeConverters.toFloat, "by which share the loss may rise"),
}


def _param(name: str, doc: str, converter: Any) -> Param[Any]:
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class PruneParams(HasFeaturesCol, HasLabelCol, HasWeightCol, HasSeed):
    """Parameters of PruneEstimator."""

    estimator = _param("estimator", "the tree estimator to train and prune", TypeConverters.identity)
    solver = _param("solver", "the name of a solver, or auto", TypeConverters.toString)
    loss = _param("loss", "the name of a loss", TypeConverters.toString)
    validation = _param("validation", "the share of the rows that chooses", TypeConverters.toFloat)
    prices = _param("prices", "what features cost, in the order of the vector", TypeConverters.toListFloat)
    maxNodes, maxLeaves, maxTrees, maxDepth, maxFeatures, maxCost, maxLossIncrease = (  # noqa: N815, RUF100
        _param(name, doc, converter) for name, (_, converter, doc) in _LIMITS.items()
    )

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._setDefault(solver="auto", validation=0.25, seed=0)
        self._set(**settings)

    def _param(self, name: str) -> Any:
        """Return the value or default of a parameter, None if it has neither."""
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _given(self, name: str) -> Any:
        """Return the value of a parameter set explicitly, None otherwise."""
        return self.getOrDefault(name) if self.isSet(name) else None


class PruneEstimator(Estimator, PruneParams, MLReadable, MLWritable):
    """Train a tree estimator and prune it, or prune the model fitted by the preceding stage.

    Parameters
    ----------
    estimator : pyspark.ml Estimator, optional
        The tree estimator. A share `validation` of the rows is held out, the estimator is trained on the others, and a
        pruning is selected on the held-out rows. Without an estimator, the model that computed the predictions of the
        DataFrame is pruned. That model was trained on all rows, so prefer to pass an estimator. Spark Connect requires
        one.
    featuresCol, labelCol, weightCol : str
        Column names. Default: those of the tree model.
    solver, loss : str
        Names of a solver and a loss. The default solver is "auto".
    validation : float
        The share of rows held out to select a pruning. Default: 0.25.
    prices : list of float
        The price of each feature, in the order of the feature vector, for `maxCost`.
    maxNodes, maxLeaves, maxTrees, maxDepth, maxFeatures, maxCost, maxLossIncrease : optional
        Limits, as in `secateur.prune`.
    seed : int
        Seed of the hash that assigns rows to the held-out share.
    """

    @keyword_only
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)

    def setParams(self, **settings: Any) -> "PruneEstimator":  # noqa: N802
        """Set some parameters and return the estimator."""
        self._set(**settings)
        return self

    def copy(self, extra: Any = None) -> "PruneEstimator":
        """Return a copy of this stage and its tree estimator, with some parameters changed."""
        that: PruneEstimator = super().copy(extra)
        if that._param("estimator") is not None:
            that._set(estimator=that._param("estimator").copy(extra))
        return that

    def _fit(self, dataset: Any) -> "PruneModel":
        estimator, validation = self._param("estimator"), float(self.getOrDefault("validation"))
        judging: Any = validation
        if estimator is None:
            model, rows = fitted_before(dataset), dataset
            warn(
                "The model of the preceding stage was trained on the rows that prune it, and its loss on training rows "
                "is a poor estimate of its loss on new rows. Use PruneEstimator(estimator=…), which holds out rows "
                "before training.",
                TrainingRowsWarning,
            )
        else:
            rows, judging = by_content(dataset, dataset.columns, validation, int(self.getOrDefault("seed")))
            model = estimator.fit(rows)
        pruned = prune_point(
            model,
            rows,
            features=self._given("featuresCol"),
            label=self._given("labelCol"),
            weight=self._given("weightCol"),
            solver=self.getOrDefault("solver"),
            loss=self._param("loss"),
            cost=None if self._param("prices") is None else FeatureCost(self._param("prices")),
            validation=judging,
            random_state=int(self.getOrDefault("seed")),
            **{argument: self._param(name) for name, (argument, _, _) in _LIMITS.items()},
        )
        fitted = PruneModel(pruned.to_model(), pruned.summary())
        return fitted._resetUid(self.uid)

    def write(self) -> MLWriter:
        """Return a writer that saves this estimator."""
        return _Writer(self, "estimator", self._param("estimator"))

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return a reader that loads a saved estimator."""
        return _Reader(cls, "estimator")


class PruneModel(Model, PruneParams, MLReadable, MLWritable):
    """Predict with a pruned Spark ML tree model as a pipeline stage.

    Attributes
    ----------
    model : fitted tree model of Spark ML
        The pruned model itself; it can be extracted and used without secateur.
    summary : dict
        Sizes and losses before and after pruning, as returned by `Pruned.summary()`.
    """

    def __init__(self, model: Any = None, summary: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.model, self.summary = model, summary or {}

    def copy(self, extra: Any = None) -> "PruneModel":
        """Return a copy with some parameters of the tree model changed."""
        that: PruneModel = super().copy(extra)
        that.model, that.summary = self.model.copy(extra), self.summary
        return that

    def _transform(self, dataset: Any) -> Any:
        """Return the DataFrame with the pruned model's predictions.

        Output columns of a preceding unpruned model are dropped first, so Spark does not compute them.
        """
        tree = tree_model(self.model)
        columns = [tree.getOrDefault(name) for name in _OUTPUTS if tree.hasParam(name) and tree.isDefined(name)]
        return self.model.transform(dataset.drop(*[name for name in columns if name]))

    def write(self) -> MLWriter:
        """Return a writer that saves this model."""
        return _Writer(self, "model", self.model, {"summary": self.summary})

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return a reader that loads a saved model."""
        return _Reader(cls, "model", "summary")


_OUTPUTS = ("predictionCol", "rawPredictionCol", "probabilityCol", "leafCol")


def _keeper(of: MLWriter | MLReader[Any]) -> Any:
    """Return the object Spark uses to read and write metadata: the session, or its context before Spark 4."""
    return of.sparkSession.sparkContext if spark_version.startswith("3.") else of.sparkSession


class _Writer(MLWriter):
    """Save parameters and metadata in Spark's format, and the contained stage in a subfolder."""

    def __init__(self, stage: Any, place: str, inside: Any, facts: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.stage, self.place, self.inside, self.facts = stage, place, inside, facts or {}

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Write the metadata and the contained stage to a folder."""
        settings = {param.name: value for param, value in self.stage._paramMap.items() if param.name != "estimator"}
        facts = {**self.facts, "holds": self.inside is not None}
        DefaultParamsWriter.saveMetadata(self.stage, path, _keeper(self), extraMetadata=facts, paramMap=settings)
        if self.inside is not None:
            self.inside.write().save(os.path.join(path, self.place))


class _Reader(MLReader):
    """Load a stage saved by _Writer."""

    def __init__(self, kind: Any, place: str, *facts: str) -> None:
        super().__init__()
        self.kind, self.place, self.facts = kind, place, facts

    def load(self, path: str) -> Any:
        """Load the stage from a folder."""
        metadata = DefaultParamsReader.loadMetadata(path, _keeper(self))
        stage = self.kind()
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        for name in self.facts:
            setattr(stage, name, metadata[name])
        if metadata["holds"]:
            place = os.path.join(path, self.place)
            inside: Any = DefaultParamsReader.loadParamsInstance(place, _keeper(self))
            if self.place == "estimator":
                stage._set(estimator=inside)
            else:
                setattr(stage, self.place, inside)
        return stage
