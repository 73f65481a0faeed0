"""One chosen point of a path: the pruned forest, the native model, and what it gives."""

from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.routing import raw_scores, route
from secateur.forest.subforest import Decision, subforest
from secateur.libraries.adapter import Adapter


@dataclass(frozen=True, eq=False)
class Pruned:
    """A pruning of a model.

    Attributes
    ----------
    source : Adapter
        The model that was pruned; never modified.
    decision : Decision
    point : int
        Its place on the path.
    row : dict
        Its row of the path's table.
    solver : str
    facts : dict
    given : Adapter, optional
        The model given, where this is a pruning of a clone of it.
    proof : dict, optional
        How good it is for its budget, where the solver can tell: see `secateur.path.rules.certificate`.
    """

    source: Adapter
    decision: Decision
    point: int
    row: dict[str, Any]
    solver: str
    facts: dict[str, Any]
    proof: dict[str, float] | None = None
    given: Adapter | None = None

    @property
    def original(self) -> Adapter:
        """The model given: what was pruned, or what a clone of was."""
        return self.given or self.source

    def __repr__(self) -> str:
        row, whole = self.row, self.original.forest
        trees = "" if whole.n_trees == 1 else f", {row['n_trees']} of {whole.n_trees} trees"
        loss, before = "", self.facts.get("unpruned_loss")
        if "loss" in row and before is not None:
            loss = f", {self.facts['loss']} {before:.4g} → {row['loss']:.4g}"
        whose = "" if self.given is None else "of a clone, "
        size = f"{whose}{row['n_nodes']} of {whole.n_nodes} nodes{trees}{loss}"
        return f"Pruned({type(self.source.model).__name__}, {size}, point {self.point})"

    def _repr_html_(self) -> str:
        from secateur.plotting.notebook import pruned_html

        return pruned_html(self)

    def plot(self, *, ax: Any = None, tree: int = 0, max_depth: int | None = None) -> Any:
        """Draw a tree of the model with matplotlib, what was cut as a ghost; return the Axes. See docs/plots.md."""
        from secateur.plotting.tree_plot import draw_tree

        return draw_tree(self, ax, tree=tree, max_depth=max_depth)

    @cached_property
    def forest(self) -> Forest:
        """The pruned forest."""
        return subforest(self.source.forest, self.decision)

    @cached_property
    def n_bytes(self) -> int:
        """The size of the pruned model when it is saved: in the kind of file the path is for, else as is usual."""
        suffix = self.facts.get("saved_as")
        return self.source.n_bytes_after(self.decision) if suffix is None else _file_size(self.to_model(), suffix)

    @cached_property
    def n_bytes_before(self) -> int:
        """The size of the model that was given, saved the same way."""
        suffix, model = self.facts.get("saved_as"), self.original.model
        return self.original.n_bytes(model) if suffix is None else _file_size(model, suffix)

    def to_model(self) -> Any:
        """Return a pruned copy of the model, of the model's own type."""
        return self.source.write(self.decision)

    def raw(self, X: Any) -> NDArray[np.floating]:
        """Return the pruned forest's sums before its link, (n_rows, n_outputs)."""
        rows = self.source.rows(X)
        forest = replace(self.forest, divisor=1.0) if self.source.raw_is_total else self.forest
        return raw_scores(forest, route(forest, rows), offset=self.source.offset(rows))

    def predict(self, X: Any) -> NDArray[np.generic]:
        """Return what `to_model().predict(X)` returns."""
        return self.source.predict(self.raw(X))

    def predict_proba(self, X: Any) -> Any:
        """Return what `to_model().predict_proba(X)` returns: an array, or a list of them for several targets."""
        if not self.forest.n_classes:
            raise ValueError("This model predicts numbers and has no probabilities. Use predict.")
        return self.source.probabilities(self.raw(X))

    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Return what `to_model().score_samples(X)` returns, for outlier detectors."""
        if self.source.supervised:
            raise ValueError("This model is not an outlier detector. Use predict or predict_proba.")
        return self.forest.response.mean(self.raw(X), ())[0][:, 0]

    def save(self, file: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Write the native model to a file and return where it is; the suffix says how.

        .skops, .joblib and .pkl for any model, .json, .ubj, .txt and .cbm as the model's own library has them, a folder
        for Spark; .onnx and .secateur for what it predicts, whatever its library. See docs/files.md.
        """
        from secateur.files.models import save_model

        return save_model(self.to_model(), file, force=force)

    def summary(self) -> dict[str, Any]:
        """Return before and after, the losses, and how the choice was made, as plain values.

        `bytes` is the size of the saved native model: in files of the suffix `saved_as`; if that is None, pickled or as
        its library saves it.
        """
        row = self.row
        before = {**_size(self.original.forest), "bytes": self.n_bytes_before}
        after = {**_size(self.forest), "bytes": self.n_bytes}
        return {
            "model": type(self.source.model).__name__,
            "before": before,
            "after": after,
            "saved_as": self.facts.get("saved_as"),
            "loss": {
                "name": self.facts["loss"],
                "before": self.facts.get("unpruned_loss"),
                "after": row.get("loss"),
                "standard_error": row.get("loss_se"),
            },
            "risk": row["risk"],
            "cost": {"name": self.facts["cost"], "before": self.facts.get("unpruned_cost"), "after": row["cost"]},
            "optimality": self.proof,
            "changed": row.get("changed"),
            "penalty": row["penalty"],
            "point": self.point,
            "solver": self.solver,
            "clone": self.given is not None,
            "rows": {
                "made_on": self.facts["made_on_rows"],
                "chosen_on": self.facts.get("evaluated_on", "the rows the path was made on"),
                "chosen_on_rows": self.facts.get("evaluated_rows", self.facts["made_on_rows"]),
            },
        }


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
