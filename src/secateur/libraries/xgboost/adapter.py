"""An XGBoost `Booster`: read from the library's own copy of it in memory, written back the same way.

What only XGBoost can tell to the last bit it is asked for: a copy without trees says what its sums start from, and,
started at any sums, what they predict.
"""

import copy
from functools import cached_property
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from secateur.data.targets import as_columns, as_real_target, class_codes
from secateur.forest import Forest, Leaves, check_forest
from secateur.forest.subforest import Decision, apply_decision, kept_trees
from secateur.libraries.adapter import Adapter
from secateur.libraries.fork_safety import one_thread_in_a_fork
from secateur.libraries.xgboost import columns
from secateur.libraries.xgboost.objectives import XGBoostObjective, objective_of
from secateur.libraries.xgboost.saved_model import Saved, booster_part, count, n_outputs, weights_place
from secateur.libraries.xgboost.trees import XGBoostTrees, read_trees
from secateur.libraries.xgboost.ubjson import decode, encode
from secateur.libraries.xgboost.write import check_one_kind, forest_arrays, prune_model, without_trees


class XGBoostBoosterAdapter(Adapter):
    """A Booster; its `predict` uses all trees and gives what its objective predicts."""

    library = "xgboost"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        booster_part(self.saved)  # refuses a model that has no trees at once
        self.supervised = self.trained_for.supervised

    @property
    def booster(self) -> Any:
        """The Booster in the model."""
        return self.model

    @cached_property
    def state(self) -> Saved:
        """What the Booster holds: the Model, and the Config it would be trained further with."""
        state: Saved = decode(self.booster.__getstate__()["handle"])
        return state

    @property
    def saved(self) -> Saved:
        """The Model as it would be saved to a file."""
        saved: Saved = self.state["Model"]
        return saved

    @cached_property
    def trees(self) -> XGBoostTrees:
        """All trees there are."""
        return read_trees(self.saved)

    @property
    def n_used(self) -> int:
        """The number of trees, from the first, that `predict` uses."""
        return len(self.trees.output)

    @cached_property
    def trained_for(self) -> XGBoostObjective:
        """The objective."""
        return objective_of(self.saved)

    @property
    def objective(self) -> str | None:
        """The name of the loss the model was trained for."""
        return self.trained_for.loss

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return count(self.saved, "learner", "learner_model_param", "num_feature")

    def read(self) -> Forest:
        """Return base + Σ trees, summed in float32."""
        names = self.saved["learner"].get("feature_names")
        forest = Forest(
            **forest_arrays(self.trees, self.n_used),
            base=self._without_trees_at(None).ravel().astype(np.float64),
            link=self.trained_for.link,
            n_features=self.n_features,
            n_classes=tuple(len(classes) for classes in self.classes),
            comparison="<",
            input_dtype="float32",
            sum_dtype="float32",
            feature_names=tuple(names) if names else None,
        )
        check_forest(forest)
        return forest

    @property
    def classes(self) -> list[NDArray[Any]]:
        """The labels of each target; empty unless targets are classes."""
        outputs = n_outputs(self.saved)
        if self.trained_for.classes == "two":
            return [np.arange(2)] * outputs
        return [np.arange(outputs)] if self.trained_for.classes == "many" else []

    @cached_property
    def empty(self) -> Any:
        """A Booster like this one whose trees add nothing; no DART, which cannot start from other sums."""
        model = without_trees(booster_part(self.saved)["model"], self.trees)[0]
        learner = {**self.saved["learner"], "attributes": {}, "gradient_booster": {"name": "gbtree", "model": model}}
        booster = xgboost.Booster()
        booster.load_model(encode({**self.saved, "learner": learner}))
        return booster

    def _without_trees_at(self, raw: NDArray[np.floating] | None) -> NDArray[np.float32]:
        """Return what sums that start at `raw` and stay there predict; for None, the sums one row starts at."""
        blank = csr_matrix((1 if raw is None else len(raw), self.n_features), dtype=np.float32)
        start = None if raw is None else _as_margin(raw)
        matrix = xgboost.DMatrix(blank, base_margin=start)
        result: NDArray[np.float32] = self.empty.predict(matrix, output_margin=raw is None, validate_features=False)
        return result

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what `Booster.predict` returns."""
        return self._without_trees_at(raw)

    @cached_property
    def _known(self) -> list[columns.Names | None]:
        return columns.known_categories(booster_part(self.saved)["model"], self.n_features)

    @cached_property
    def _categorical(self) -> NDArray[np.int32]:
        return check_one_kind(self.forest)

    @property
    def missing(self) -> float:
        """The value that stands for a missing one beside NaN."""
        return float("nan")

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X as float32, with NaN for what is missing and codes for categories."""
        matrix: NDArray[np.floating] = columns.rows(X, self.forest, self._known, self._categorical, self.missing)
        return matrix

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return class codes or values, (n_rows, n_targets)."""
        y = as_columns(y, len(self.classes) or self.forest.n_outputs)
        if not self.classes:
            return as_real_target(y)
        return np.column_stack([class_codes(column, known) for column, known in zip(y.T, self.classes, strict=True)])

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return class codes, which are the labels, or values; a single target loses its axis."""
        return label[:, 0] if label.shape[1] == 1 else label

    def native_ids(self) -> NDArray[np.int64]:
        """Return the numbers `pred_leaf` and the saved arrays use."""
        start = self.trees.order_start[: self.n_used + 1]
        return self.trees.order[: start[-1]] - np.repeat(self.trees.start[: self.n_used], np.diff(start))

    def grown_on(self, leaves: Leaves) -> bool:
        """Return whether the rows fill the leaves of the first round as the training rows did.

        All rows begin with the same Hessian, so the cover of a leaf there is so many times its rows; not if rows were
        drawn or weighted, which leaves the question open.
        """
        forest, found = self.forest, False
        for tree in range(min(int(self.trees.rounds[1:2].sum()), forest.n_trees)):
            nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
            leaf = ~forest.is_split[nodes]
            rows = np.bincount(leaves[tree], minlength=len(leaf))[leaf]
            share = forest.weight[nodes][leaf] / np.maximum(rows, 1)
            if not rows.all() or not np.allclose(share, share[0], rtol=1e-4):
                return False
            found |= len(share) > 1
        return found

    def n_bytes(self, model: Any) -> int:
        """Return the size of the model saved as UBJSON."""
        booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
        return len(booster.save_raw("ubj"))

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for the base, and for tree weights unless the model is a DART."""
        if what == "base":
            return (
                "XGBoost saves the base as a prediction, not as a sum, and not every sum has one. Fold it into the "
                "leaf values."
            )
        if what == "tree_weight" and weights_place(self.saved) is None:
            return "XGBoost has a place for tree weights only in DART models. Fold them into the leaf values."
        return None

    def write(self, decision: Decision) -> Any:
        """Return a new Booster with pruned trees."""
        one_thread_in_a_fork()
        self.check_decision(decision)
        model, stays = prune_model(booster_part(self.saved)["model"], self.trees, self.forest, decision)
        weight = np.ones(self.n_used, np.float32)
        standing = kept_trees(self.forest, decision.keep)
        weight[standing] = apply_decision(self.forest, decision).tree_weight[standing]
        saved = _with_trees(self.saved, model, weight[stays], self._best_round(stays))
        config = _with_count(self.state.get("Config"), len(stays))
        held = {"Config": config, "Model": saved} if config is not None else {"Model": saved}
        state = {name: copy.deepcopy(entry) for name, entry in vars(self.booster).items() if name != "handle"}
        state["handle"] = encode(held)
        booster = self.booster.__class__.__new__(self.booster.__class__)
        booster.__setstate__(state)
        return booster

    def _best_round(self, stays: NDArray[np.int64]) -> int:
        """Return what of `best_iteration` is left: the last round up to it that has trees, -1 if there is none."""
        if self.best_iteration is None:
            return -1
        rounds = np.unique(np.searchsorted(self.trees.rounds, stays, side="right") - 1)
        return int(np.count_nonzero(rounds <= self.best_iteration)) - 1

    @property
    def best_iteration(self) -> int | None:
        """The round early stopping found best; None if training was not stopped or went on."""
        text = self.saved["learner"].get("attributes", {}).get("best_iteration")
        return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else None


def _as_margin(raw: NDArray[np.floating]) -> NDArray[np.float32]:
    raw = np.ascontiguousarray(raw, np.float32)
    return raw[:, 0] if raw.shape[1] == 1 else raw


def _with_trees(saved: Saved, model: Saved, weight: NDArray[np.float32], best: int) -> Saved:
    """Return a saved model with other trees; no table of the old one is changed."""
    learner = dict(saved["learner"])
    booster = learner["gradient_booster"]
    place = weights_place(saved)
    if place is booster_part(saved)["model"]:
        model = {**model, "weight_drop": _like(place["weight_drop"], weight)}
    if "model" in booster:
        booster = {**booster, "model": model}
    else:
        booster = {**booster, "gbtree": {**booster["gbtree"], "model": model}}
        if place is saved["learner"]["gradient_booster"]["gbtree"]:
            booster["gbtree"]["weight_drop"] = _like(place["weight_drop"], weight)
    if place is saved["learner"]["gradient_booster"]:
        booster["weight_drop"] = _like(place["weight_drop"], weight)
    learner["gradient_booster"] = booster
    attributes = dict(learner.get("attributes", {}))
    attributes.pop("best_ntree_limit", None)  # old versions count trees here too
    if "best_iteration" in attributes:
        attributes["best_iteration"] = str(best)
        if best < 0:
            del attributes["best_iteration"]
    learner["attributes"] = attributes
    return {**saved, "learner": learner}


def _like(old: Any, weight: NDArray[np.float32]) -> Any:
    """Return weights as the kind of list the model has them in."""
    return weight if isinstance(old, np.ndarray) else list(weight)


def _with_count(config: Any, n_trees: int) -> Any:
    """Return the configuration with the new number of trees where it repeats it."""
    if not isinstance(config, dict):
        return None
    booster = dict(config["learner"]["gradient_booster"])
    if "gbtree_model_param" in booster:
        booster["gbtree_model_param"] = {**booster["gbtree_model_param"], "num_trees": str(n_trees)}
    elif isinstance(booster.get("gbtree"), dict) and "gbtree_model_param" in booster["gbtree"]:
        inner = booster["gbtree"]["gbtree_model_param"]
        booster["gbtree"] = {**booster["gbtree"], "gbtree_model_param": {**inner, "num_trees": str(n_trees)}}
    return {**config, "learner": {**config["learner"], "gradient_booster": booster}}
