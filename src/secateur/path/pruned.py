"""Represent one point of a path: the pruned forest, its native model, its predictions and its summary."""

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import user_function
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.forest import Forest
from secateur.forest.monotonicity import check_monotonicity
from secateur.forest.promises import PredictionRange, is_plain_mean, keeps_range, range_of
from secateur.forest.routing import raw_scores, route
from secateur.forest.subforest import Decision, subforest
from secateur.libraries.adapter import Adapter
from secateur.path.info import PathInfo

if TYPE_CHECKING:
    from secateur.path.path import Path


@dataclass(frozen=True, eq=False)
class Pruned:
    """Hold one pruning of a model.

    Attributes
    ----------
    source : Adapter
        The unpruned model; never modified.
    decision : Decision
    point : int
        Index of the point on its path.
    row : dict
        The point's row of the path's table.
    solver : str
    info : PathInfo
    proof : dict, optional
        Optimality certificate for the budget, if the solver provides bounds: see `secateur.path.rules.certificate`.
    given : Adapter, optional
        The given model, if this is a pruning of a clone of it.
    guarantee : dict, optional
        With which confidence the point keeps which limits: see `secateur.path.guarantee`.
    path : Path, optional
        The path of the point: the whole curve, from which other points can be selected.
    """

    source: Adapter
    decision: Decision
    point: int
    row: dict[str, Any]
    solver: str
    info: PathInfo
    proof: dict[str, float] | None = None
    given: Adapter | None = None
    guarantee: dict[str, Any] | None = None
    path: "Path | None" = None

    @property
    def original(self) -> Adapter:
        """The given model, also if this is a pruning of its clone."""
        return self.given or self.source

    def __repr__(self) -> str:
        row, whole = self.row, self.original.forest
        trees = "" if whole.n_trees == 1 else f", {row['n_trees']} of {whole.n_trees} trees"
        loss, before = "", self.info.unpruned_loss
        if "loss" in row and before is not None:
            loss = f", {self.info.loss} {before:.4g} → {row['loss']:.4g}"
        if self.info.unpruned_score is not None:
            loss += f", {self.info.scoring} {self.info.unpruned_score:.4g} → {row['score']:.4g}"
        whose = "" if self.given is None else "of a clone, "
        size = f"{whose}{row['n_nodes']} of {whole.n_nodes} nodes{trees}{loss}"
        return f"Pruned({type(self.source.model).__name__}, {size}, point {self.point})"

    def _repr_html_(self) -> str:
        from secateur.plotting.notebook import pruned_html

        return pruned_html(self)

    def plot(self, kind: str = "tradeoff", *, ax: Any = None, **options: Any) -> Any:
        """Draw the curve with this point marked, or its "tree" or "features", and return the matplotlib Axes.

        The options are those of `Path.plot`. See docs/plots.md.
        """
        given = "mark" if kind == "tradeoff" else "point"
        return self._on_path.plot(kind, ax=ax, **{given: self}, **options)

    def report(self, file: str | PathLike[str], X: Any = None, y: Any = None, **options: Any) -> FilePath:
        """Write an HTML page on the path that opens at this point; the parameters are those of `secateur.report`."""
        from secateur.reporting import report

        return report(self._on_path, file, X, y, point=self.point, **options)

    @property
    def _on_path(self) -> "Path":
        if self.path is None:
            raise InvalidInputError("This pruning belongs to no path, so it has no curve. Take it from a path.")
        return self.path

    @cached_property
    def forest(self) -> Forest:
        """The pruned forest."""
        return subforest(self.source.forest, self.decision)

    @cached_property
    def n_bytes(self) -> int:
        """Size of the saved pruned model in bytes, in the path's file format (`saved_as`) or the default one."""
        suffix = self.info.saved_as
        return self.source.n_bytes_after(self.decision) if suffix is None else _file_size(self.to_model(), suffix)

    @cached_property
    def n_bytes_before(self) -> int:
        """Size of the given model in bytes, saved in the same format."""
        suffix, model = self.info.saved_as, self.original.model
        return self.original.n_bytes(model) if suffix is None else _file_size(model, suffix)

    @cached_property
    def model(self) -> Any:
        """The pruned model, of the same type as the given one; every access returns the same object."""
        return self.to_model()

    @user_function
    def to_model(self) -> Any:
        """Return a new pruned copy of the model, of the same type."""
        return self.source.write(self.decision)

    @user_function
    def raw(self, X: Any) -> NDArray[np.floating]:
        """Return the raw scores of the pruned forest, before its link, (n_rows, n_outputs)."""
        return raw_of(self.source, self.forest, X)

    @user_function
    def predict(self, X: Any) -> NDArray[np.generic]:
        """Return the predictions of the pruned model, equal to `to_model().predict(X)`."""
        return self.source.predict(self.raw(X))

    @user_function
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, equal to `to_model().predict_proba(X)`; a list of arrays for several targets."""
        if not self.forest.n_classes:
            raise UnsupportedModelError("This model predicts numbers and has no probabilities. Use predict.")
        return self.source.probabilities(self.raw(X))

    @user_function
    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Return the anomaly scores of outlier detectors, equal to `to_model().score_samples(X)`."""
        if self.source.supervised:
            raise UnsupportedModelError("This model is not an outlier detector. Use predict or predict_proba.")
        return self.forest.response.mean(self.raw(X), ())[0][:, 0]

    def save(self, file: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Write the native model to a file and return the file's path; the suffix determines the format.

        .skops, .joblib and .pkl store any model; .json, .ubj, .txt and .cbm are the native formats of the model's
        library; Spark models are stored in a folder; .onnx and .secateur store the prediction function of any model.
        See docs/files.md.
        """
        from secateur.files.models import save_model

        return save_model(self.to_model(), file, force=force)

    def _promises(self) -> dict[str, str]:
        """Return what the unpruned model promises and whether the pruned one keeps it; an empty dict without promises.

        Loss, range of predictions and monotonic constraints are listed where the model has them.
        """
        before, after = self.original.forest, self.forest
        found: dict[str, str] = {} if before.objective is None else {"objective": before.objective}
        natural = range_of(before)
        if natural is not None:
            found["range"] = _range_text(natural, keeps_range(natural, after))
        elif before.n_classes and is_plain_mean(before):
            found["range"] = "the leaves of the unpruned model are not class probabilities; they were not repaired"
        if before.monotone is not None:
            checks = [check_monotonicity(forest).holds for forest in (before, after)]
            found["constraints"] = {
                (True, True): "monotonic constraints hold",
                (False, True): "monotonic constraints hold; the unpruned model violates them",
            }.get((checks[0], checks[1]), "monotonic constraints are violated")
        return found

    def _score(self) -> dict[str, Any] | None:
        """Return the name of the user's metric and its values, None if there is none."""
        if self.info.scoring is None:
            return None
        return {
            "name": self.info.scoring,
            "before": self.info.unpruned_score,
            "after": self.row["score"],
            "standard_error": self.row["score_se"],
        }

    @user_function
    def summary(self) -> dict[str, Any]:
        """Return sizes before and after, losses, and how the point was selected, as plain values.

        `bytes` is the size of the saved native model in a file of suffix `saved_as`; if that is None, pickled or in the
        native format of its library. `score` is that of the user's metric, None without one; its `standard_error` is
        that of the drop.
        """
        row, info = self.row, self.info
        before = {**_size(self.original.forest), "bytes": self.n_bytes_before}
        after = {**_size(self.forest), "bytes": self.n_bytes}
        return {
            "model": type(self.source.model).__name__,
            "before": before,
            "after": after,
            "saved_as": self.info.saved_as,
            "loss": {
                "name": self.info.loss,
                "before": self.info.unpruned_loss,
                "after": row.get("loss"),
                "standard_error": row.get("loss_se"),
            },
            "score": self._score(),
            "risk": row["risk"],
            "cost": {"name": self.info.cost, "before": self.info.unpruned_cost, "after": row["cost"]},
            "optimality": self.proof,
            "guarantee": self.guarantee,
            **({} if self.guarantee else {"no_guarantee": self.info.why_not_guaranteed}),
            "promises": self._promises(),
            "changed": row.get("changed"),
            "penalty": row["penalty"],
            "point": self.point,
            "solver": self.solver,
            "clone": self.given is not None,
            "rows": {
                "made_on": info.made_on_rows,
                **({} if info.sampled_from is None else {"sampled_from": info.sampled_from}),
                "chosen_on": info.evaluated_on or "the rows the path was made on",
                "chosen_on_rows": info.evaluated_rows or info.made_on_rows,
            },
        }


def raw_of(source: Adapter, pruned: Forest, X: Any) -> NDArray[np.floating]:
    """Return the raw scores of a pruned forest from which the model's adapter computes predictions."""
    rows = source.rows(X)
    forest = replace(pruned, divisor=1.0) if source.raw_is_total else pruned
    return raw_scores(forest, route(forest, rows), offset=source.offset(rows))


def _range_text(natural: PredictionRange, kept: bool) -> str:
    if kept:
        return f"{natural}, as before"
    if natural.simplex:
        return "predict_proba may return numbers below 0 or above 1: the values are a free sum"
    return f"predictions may leave the range of the unpruned model, {natural}: the values are a free sum"


def _file_size(model: Any, suffix: str) -> int:
    from secateur.files.models import file_size

    return file_size(model, suffix)


def _size(forest: Forest) -> dict[str, int]:
    return {
        "nodes": forest.n_nodes,
        "leaves": forest.n_leaves,
        "trees": forest.n_trees,
        "depth": forest.max_depth,
        "features": len(forest.features_used),
    }
