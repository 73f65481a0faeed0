"""Adapt an XGBoost `Booster`: decode its in-memory state, prune it, and load it into a new Booster.

Two quantities are computed by XGBoost itself, so that they agree to the last bit. A copy of the Booster without trees
returns the initial raw prediction, and it transforms given raw predictions by the link of the objective.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from secateur.forest import Forest, Leaves, check_forest
from secateur.forest.promises import monotone_signs
from secateur.forest.subforest import Decision, apply_decision, kept_trees
from secateur.libraries.adapter import Adapter
from secateur.libraries.fork_safety import one_thread_in_a_fork
from secateur.libraries.input_columns import InputColumns
from secateur.libraries.xgboost import columns
from secateur.libraries.xgboost.objectives import XGBoostObjective, objective_of
from secateur.libraries.xgboost.saved_model import (
    Saved,
    booster_part,
    count,
    dart_weight_table,
    entry,
    integers,
    n_outputs,
)
from secateur.libraries.xgboost.trees import XGBoostTrees, read_trees
from secateur.libraries.xgboost.ubjson import decode, encode
from secateur.libraries.xgboost.write import check_one_kind, forest_arrays, prune_model, without_trees


class XGBoostBoosterAdapter(Adapter):
    """Adapt a Booster; its `predict` uses all trees and returns the predictions of its objective."""

    library = "xgboost"
    predicts_labels = False
    hides_objective = True
    forgets_offsets = True

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        # Raises early if the model has no trees.
        booster_part(self.saved)
        self.supervised = self.native_objective.supervised

    @property
    def booster(self) -> Any:
        """The Booster."""
        return self.model

    @cached_property
    def state(self) -> Saved:
        """The decoded state of the Booster: its Model, and the Config for further training."""
        state: Saved = decode(self.booster.__getstate__()["handle"])
        return state

    @property
    def saved(self) -> Saved:
        """The Model, as a file would contain it."""
        saved: Saved = self.state["Model"]
        return saved

    @cached_property
    def trees(self) -> XGBoostTrees:
        """All trees of the model."""
        return read_trees(self.saved)

    @property
    def n_used(self) -> int:
        """The number of leading trees that `predict` uses."""
        return len(self.trees.output)

    @cached_property
    def native_objective(self) -> XGBoostObjective:
        """The training objective: link, loss and kind of target."""
        return objective_of(self.saved)

    @property
    def objective(self) -> str | None:
        """The name of the training loss, or None for the default."""
        return self.native_objective.loss

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return count(self.saved, "learner", "learner_model_param", "num_feature")

    def read(self) -> Forest:
        """Return base + Σ trees, summed in float32."""
        names = self.saved["learner"].get("feature_names")
        forest = Forest(
            **forest_arrays(self.trees, self.n_used),
            base=self._predict_without_trees(None).ravel().astype(np.float64),
            link=self.native_objective.link,
            n_features=self.n_features,
            n_classes=tuple(len(classes) for classes in self.classes),
            comparison="<",
            input_dtype="float32",
            sum_dtype="float32",
            feature_names=tuple(names) if names else None,
            monotone=self.monotone,
        )
        check_forest(forest)
        return forest

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint; None if there are none, or the Booster was loaded from a file."""
        return monotone_signs(_parameter(self.state.get("Config"), "monotone_constraints"), self.n_features)

    @property
    def classes(self) -> list[NDArray[Any]]:
        """The labels of each target; empty unless targets are classes."""
        outputs = n_outputs(self.saved)
        if self.native_objective.classes == "two":
            return [np.arange(2)] * outputs
        return [np.arange(outputs)] if self.native_objective.classes == "many" else []

    @cached_property
    def empty(self) -> Any:
        """A copy of the Booster whose trees contribute 0.

        A DART model becomes gbtree here, because DART cannot start from a given margin.
        """
        model = without_trees(booster_part(self.saved)["model"], self.trees)[0]
        learner = {**self.saved["learner"], "attributes": {}, "gradient_booster": {"name": "gbtree", "model": model}}
        booster = xgboost.Booster()
        booster.load_model(encode({**self.saved, "learner": learner}))
        return booster

    def _predict_without_trees(self, raw: NDArray[np.floating] | None) -> NDArray[np.float32]:
        """Return the predictions for raw predictions `raw`; for None, the initial raw prediction of one row."""
        blank = csr_matrix((1 if raw is None else len(raw), self.n_features), dtype=np.float32)
        start = None if raw is None else _as_margin(raw)
        matrix = xgboost.DMatrix(blank, base_margin=start)
        result: NDArray[np.float32] = self.empty.predict(matrix, output_margin=raw is None, validate_features=False)
        return result

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what `Booster.predict` returns."""
        return self._predict_without_trees(raw)

    def predictor(self, model: Any, method: str) -> Callable[[Any], Any] | None:
        """Return the method of a wrapper; for a Booster, `predict` of a DMatrix that is made from the rows."""
        if not isinstance(model, xgboost.Booster):
            return super().predictor(model, method)
        names = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        predict = lambda X: model.predict(xgboost.DMatrix(X, enable_categorical=True, **names))  # noqa: E731
        return predict if method == "predict" else None

    @cached_property
    def _known(self) -> list[columns.Names | None]:
        version = integers(entry(self.saved, "version"), "version", 3, 1 << 20).tolist()
        return columns.known_categories(booster_part(self.saved)["model"], self.n_features, version)

    @cached_property
    def _categorical(self) -> NDArray[np.int32]:
        return check_one_kind(self.forest)

    def input_columns(self) -> InputColumns:
        """Return the input columns; none is numeric if a number marks missing entries, which become NaN."""
        found = super().input_columns()
        return found if np.isnan(self.missing_value) else replace(found, numeric=np.zeros_like(found.numeric))

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as float32, with NaN for missing values and codes for categories."""
        matrix: NDArray[np.floating] = columns.rows(X, self.forest, self._known, self._categorical, self.missing_value)
        return matrix

    def native_ids(self) -> NDArray[np.int64]:
        """Return the node ids that `pred_leaf` and the saved arrays use."""
        start = self.trees.order_start[: self.n_used + 1]
        return self.trees.order[: start[-1]] - np.repeat(self.trees.start[: self.n_used], np.diff(start))

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the rows fill the leaves of the first round as the training rows did.

        All rows have the same Hessian in the first round, so a leaf's cover is proportional to its number of rows. With
        subsampled or weighted training rows this does not hold, and False is returned.
        """
        forest, has_evidence = self.forest, False
        for tree in range(min(int(self.trees.rounds[1:2].sum()), forest.n_trees)):
            nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
            leaf = ~forest.is_split[nodes]
            rows = np.bincount(leaves[tree], minlength=len(leaf))[leaf]
            cover_per_row = forest.weight[nodes][leaf] / np.maximum(rows, 1)
            if not rows.all() or not np.allclose(cover_per_row, cover_per_row[0], rtol=1e-4):
                return False
            has_evidence |= len(cover_per_row) > 1
        return has_evidence

    def n_bytes(self, model: Any) -> int:
        """Return the size of the model saved as UBJSON."""
        booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
        return len(booster.save_raw("ubj"))

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for the base, and for tree weights unless the booster is DART."""
        if what == "base":
            return (
                "XGBoost stores the base score as a prediction, not as a raw score, and not every raw score has one. "
                "Include it in the leaf values."
            )
        if what == "tree_weight" and dart_weight_table(self.saved) is None:
            return "XGBoost stores tree weights only in DART models. Include them in the leaf values."
        return None

    def write(self, decision: Decision) -> Any:
        """Return a new Booster with pruned trees."""
        one_thread_in_a_fork()
        self.check_decision(decision)
        model, stays = prune_model(booster_part(self.saved)["model"], self.trees, self.forest, decision)
        weight = np.ones(self.n_used, np.float32)
        tree_kept = kept_trees(self.forest, decision.keep)
        weight[tree_kept] = apply_decision(self.forest, decision).tree_weight[tree_kept]
        saved = _with_trees(self.saved, model, weight[stays], self._best_round(stays))
        config = _with_count(self.state.get("Config"), len(stays))
        parts = {"Config": config, "Model": saved} if config is not None else {"Model": saved}
        state = {name: copy.deepcopy(entry) for name, entry in vars(self.booster).items() if name != "handle"}
        state["handle"] = encode(parts)
        booster = self.booster.__class__.__new__(self.booster.__class__)
        booster.__setstate__(state)
        return booster

    def _best_round(self, stays: NDArray[np.int64]) -> int:
        """Return the new `best_iteration`: the last kept round up to the old one, -1 if none is kept."""
        if self.best_iteration is None:
            return -1
        rounds = np.unique(np.searchsorted(self.trees.rounds, stays, side="right") - 1)
        return int(np.count_nonzero(rounds <= self.best_iteration)) - 1

    @property
    def best_iteration(self) -> int | None:
        """The best round of early stopping; None if training was not stopped early or was continued."""
        text = self.saved["learner"].get("attributes", {}).get("best_iteration")
        return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else None


def _parameter(config: Any, name: str) -> Any:
    """Return a training parameter from a configuration, whose tables are nested differently by version and booster."""
    if not isinstance(config, dict):
        return None
    if name in config:
        return config[name]
    return next((found for table in config.values() if (found := _parameter(table, name)) is not None), None)


def _as_margin(raw: NDArray[np.floating]) -> NDArray[np.float32]:
    raw = np.ascontiguousarray(raw, np.float32)
    return raw[:, 0] if raw.shape[1] == 1 else raw


def _with_trees(saved: Saved, model: Saved, weight: NDArray[np.float32], best: int) -> Saved:
    """Return a saved model with other trees; the tables of the original are not modified."""
    learner = dict(saved["learner"])
    booster = learner["gradient_booster"]
    weight_table = dart_weight_table(saved)
    if weight_table is booster_part(saved)["model"]:
        model = {**model, "weight_drop": _like(weight_table["weight_drop"], weight)}
    if "model" in booster:
        booster = {**booster, "model": model}
    else:
        booster = {**booster, "gbtree": {**booster["gbtree"], "model": model}}
        if weight_table is saved["learner"]["gradient_booster"]["gbtree"]:
            booster["gbtree"]["weight_drop"] = _like(weight_table["weight_drop"], weight)
    if weight_table is saved["learner"]["gradient_booster"]:
        booster["weight_drop"] = _like(weight_table["weight_drop"], weight)
    learner["gradient_booster"] = booster
    attributes = dict(learner.get("attributes", {}))
    # Old versions also store the best iteration as a number of trees.
    attributes.pop("best_ntree_limit", None)
    if "best_iteration" in attributes:
        attributes["best_iteration"] = str(best)
        if best < 0:
            del attributes["best_iteration"]
    learner["attributes"] = attributes
    return {**saved, "learner": learner}


def _like(old: Any, weight: NDArray[np.float32]) -> Any:
    """Return weights as the type in which the model stores them: array or list."""
    return weight if isinstance(old, np.ndarray) else list(weight)


def _with_count(config: Any, n_trees: int) -> Any:
    """Return the configuration with the new number of trees, if it contains that number."""
    if not isinstance(config, dict):
        return None
    booster = dict(config["learner"]["gradient_booster"])
    if "gbtree_model_param" in booster:
        booster["gbtree_model_param"] = {**booster["gbtree_model_param"], "num_trees": str(n_trees)}
    elif isinstance(booster.get("gbtree"), dict) and "gbtree_model_param" in booster["gbtree"]:
        inner = booster["gbtree"]["gbtree_model_param"]
        booster["gbtree"] = {**booster["gbtree"], "gbtree_model_param": {**inner, "num_trees": str(n_trees)}}
    return {**config, "learner": {**config["learner"], "gradient_booster": booster}}
