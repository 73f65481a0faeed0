"""Pruning as a stage of a Spark ML pipeline: PruneEstimator trains and prunes, PruneModel predicts.

    Pipeline(stages=[indexer, assembler, PruneEstimator(estimator=rf, maxNodes=500)])

trains `rf` on some of the rows and prunes it by the others. After a tree estimator of its own in the pipeline,

    Pipeline(stages=[indexer, assembler, rf, PruneEstimator(maxNodes=500)])

a PruneEstimator without `estimator` prunes the model that has just been fitted.
"""

import os
import warnings
from typing import Any

from pyspark import __version__ as spark_version
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasSeed, HasWeightCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from secateur.costs import FeatureCost
from secateur.errors import TrainingRowsWarning
from secateur.spark.lineage import fitted_before
from secateur.spark.pruning import prune_point
from secateur.spark.split import by_content
from secateur.spark.stages import tree_model

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
    """What PruneEstimator can be told."""

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

    def _told(self, name: str) -> Any:
        """Return a setting, None if it was not given."""
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _given(self, name: str) -> Any:
        """Return a setting that somebody gave, None where the default would be meant."""
        return self.getOrDefault(name) if self.isSet(name) else None


class PruneEstimator(Estimator, PruneParams, MLReadable, MLWritable):
    """Train a tree estimator and prune it, or prune the model that the stage before has fitted.

    Parameters
    ----------
    estimator : pyspark.ml Estimator, optional
        The tree estimator. A share `validation` of the rows is held out, it is trained on the others, and a pruning is
        chosen by the rows held out. Without it the model that made the predictions of the DataFrame is pruned, which
        has seen all rows: pass an estimator, if you can. Spark Connect needs one.
    featuresCol, labelCol, weightCol : str
        By default those of the tree model.
    solver, loss : str
    validation : float
    prices : list of float
        What features cost, for `maxCost`.
    maxNodes, maxLeaves, maxTrees, maxDepth, maxFeatures, maxCost, maxLossIncrease : optional
        Limits, as in `secateur.prune`.
    seed : int
        Draws the rows that are held out, by what is in them.
    """

    @keyword_only
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)

    def setParams(self, **settings: Any) -> "PruneEstimator":  # noqa: N802
        """Set some parameters and return the estimator."""
        self._set(**settings)
        return self

    def copy(self, extra: Any = None) -> "PruneEstimator":
        """Return a copy, of the tree estimator too, with some parameters changed."""
        that: PruneEstimator = super().copy(extra)
        if that._told("estimator") is not None:
            that._set(estimator=that._told("estimator").copy(extra))
        return that

    def _fit(self, dataset: Any) -> "PruneModel":
        estimator, validation = self._told("estimator"), float(self.getOrDefault("validation"))
        judging: Any = validation
        if estimator is None:
            model, rows = fitted_before(dataset), dataset
            warnings.warn(
                "The stage before was trained on the rows that are to prune it, and a model's loss there says little "
                "about other rows. Use PruneEstimator(estimator=…), which holds rows out before training.",
                TrainingRowsWarning,
                stacklevel=3,
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
            loss=self._told("loss"),
            cost=None if self._told("prices") is None else FeatureCost(self._told("prices")),
            validation=judging,
            random_state=int(self.getOrDefault("seed")),
            **{argument: self._told(name) for name, (argument, _, _) in _LIMITS.items()},
        )
        fitted = PruneModel(pruned.to_model(), pruned.summary())
        return fitted._resetUid(self.uid)

    def write(self) -> MLWriter:
        """Return what saves it."""
        return _Writer(self, "estimator", self._told("estimator"))

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return what loads it."""
        return _Reader(cls, "estimator")


class PruneModel(Model, PruneParams, MLReadable, MLWritable):
    """A pruned tree model of Spark ML as a stage.

    Attributes
    ----------
    model : fitted tree model of Spark ML
        The pruned model itself; it can be taken out and used without secateur.
    summary : dict
        What was gained and lost, as `Pruned.summary()` has it.
    """

    def __init__(self, model: Any = None, summary: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.model, self.summary = model, summary or {}

    def copy(self, extra: Any = None) -> "PruneModel":
        """Return a copy, with some parameters of the tree model changed."""
        that: PruneModel = super().copy(extra)
        that.model, that.summary = self.model.copy(extra), self.summary
        return that

    def _transform(self, dataset: Any) -> Any:
        """Return the predictions of the pruned model; those of an unpruned one before it are dropped, and not made."""
        tree = tree_model(self.model)
        columns = [tree.getOrDefault(name) for name in _OUTPUTS if tree.hasParam(name) and tree.isDefined(name)]
        return self.model.transform(dataset.drop(*[name for name in columns if name]))

    def write(self) -> MLWriter:
        """Return what saves it."""
        return _Writer(self, "model", self.model, {"summary": self.summary})

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return what loads it."""
        return _Reader(cls, "model", "summary")


_OUTPUTS = ("predictionCol", "rawPredictionCol", "probabilityCol", "leafCol")


def _keeper(of: MLWriter | MLReader[Any]) -> Any:
    """Return what Spark reads and writes metadata with: the session, before Spark 4 its context."""
    return of.sparkSession.sparkContext if spark_version.startswith("3.") else of.sparkSession


class _Writer(MLWriter):
    """Saves parameters and facts as Spark does, and what is inside in a folder of its own."""

    def __init__(self, stage: Any, place: str, inside: Any, facts: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.stage, self.place, self.inside, self.facts = stage, place, inside, facts or {}

    def saveImpl(self, path: str) -> None:  # noqa: N802
        """Write the folder."""
        settings = {param.name: value for param, value in self.stage._paramMap.items() if param.name != "estimator"}
        facts = {**self.facts, "holds": self.inside is not None}
        DefaultParamsWriter.saveMetadata(self.stage, path, _keeper(self), extraMetadata=facts, paramMap=settings)
        if self.inside is not None:
            self.inside.write().save(os.path.join(path, self.place))


class _Reader(MLReader):
    """Loads what _Writer has saved."""

    def __init__(self, kind: Any, place: str, *facts: str) -> None:
        super().__init__()
        self.kind, self.place, self.facts = kind, place, facts

    def load(self, path: str) -> Any:
        """Read the folder."""
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
