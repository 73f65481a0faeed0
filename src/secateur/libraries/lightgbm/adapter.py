"""Adapt LightGBM's Booster and its scikit-learn wrappers: parse the model text, write a pruned text."""

import copy
from functools import cached_property
from typing import Any

import lightgbm
import numpy as np
from lightgbm.basic import LightGBMError
from numpy.typing import NDArray
from sklearn.base import clone

from secateur.data.targets import as_columns, as_real_target, check_known_labels, class_codes
from secateur.errors import UnsupportedFileError, UnsupportedModelError
from secateur.files.tempdir import scratch_folder
from secateur.forest import Categories, Forest, check_forest
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import as_matrix
from secateur.libraries.constraints import monotone_signs
from secateur.libraries.fork_safety import one_thread_in_a_fork
from secateur.libraries.lightgbm.columns import encode
from secateur.libraries.lightgbm.objectives import LightGBMObjective, read_objective
from secateur.libraries.lightgbm.text_file import ModelText, compose, parse
from secateur.libraries.lightgbm.trees import LightGBMNodes, read_nodes
from secateur.libraries.lightgbm.write import pruned_text
from secateur.libraries.node_values import cover_mean
from secateur.libraries.sklearn.base import SklearnAdapter

_EARLY_STOPPING = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


class LightGBMBoosterAdapter(SklearnAdapter):
    """Adapt a Booster: classes are codes, and `predict` returns probabilities."""

    library = "lightgbm"
    can_refit = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.supervised = self.native_objective.supervised

    @property
    def booster(self) -> Any:
        """The Booster; its text has as many iterations as `predict` uses."""
        return self.model

    @cached_property
    def text(self) -> ModelText:
        """The parsed model text, up to the best iteration."""
        # Save to a file: model_to_string serialises a model of more than a megabyte twice.
        try:
            with scratch_folder() as folder:
                self.booster.save_model(str(folder / "model.txt"))
                text = (folder / "model.txt").read_text(encoding="utf-8")
        except (OSError, LightGBMError):
            # No temporary file can be written: fall back to the string.
            text = self.booster.model_to_string()
        return parse(text)

    @cached_property
    def nodes(self) -> LightGBMNodes:
        """The trees as arrays."""
        return read_nodes(self.text.trees, self.text.n_features)

    @cached_property
    def native_objective(self) -> LightGBMObjective:
        """The training objective: name, link, number of classes and loss."""
        return read_objective(self.text)

    @property
    def averages(self) -> bool:
        """Whether predictions are means over iterations, as in a random forest."""
        return "average_output" in self.text.header

    def read(self) -> Forest:
        """Return Σ trees, or their mean; the first trees contain what other libraries store as base score."""
        nodes, outputs = self.nodes, self.text.per_iteration
        n_trees = len(self.text.trees)
        forest = Forest(
            tree_start=nodes.tree_start,
            right=nodes.right,
            feature=nodes.feature,
            threshold=nodes.threshold,
            default_left=nodes.default_left,
            value=cover_mean(nodes.right, nodes.value[:, None], nodes.weight),
            weight=nodes.weight,
            tree_weight=np.ones(n_trees),
            tree_output=np.tile(np.arange(outputs, dtype=np.int32), n_trees // outputs),
            base=np.zeros(outputs),
            link=self.native_objective.link,
            n_features=self.text.n_features,
            n_classes=(self.native_objective.n_classes,) if self.native_objective.n_classes else (),
            aggregation="mean" if self.averages else "sum",
            unit=1 / outputs if self.averages else 1.0,
            divisor=float(n_trees // outputs) if self.averages else 1.0,
            feature_names=self.feature_names,
            categories=_categories(nodes),
            zero_is_missing=nodes.zero_is_missing,
            monotone=self.monotone,
        )
        check_forest(forest)
        return forest

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The column names, or None if they are LightGBM's default names."""
        names = self.text.feature_names
        return None if names == [f"Column_{i}" for i in range(len(names))] else tuple(names)

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint, or None if there are none."""
        return monotone_signs(self.text.header.get("monotone_constraints"), self.text.n_features)

    @property
    def objective(self) -> str | None:
        """The name of the training loss, or None for the default."""
        return self.native_objective.loss

    def rows(self, X: Any) -> NDArray[np.floating]:
        """Return X in the precision LightGBM uses, with categories as codes."""
        matrix = encode(X, self.booster.pandas_categorical, self.feature_names)
        return as_matrix(matrix, self.forest)

    def target(self, y: Any) -> NDArray[np.generic]:
        """Return class codes or values, (n_rows, 1)."""
        y = as_columns(y, 1)
        if not self.forest.n_classes:
            return as_real_target(y)
        return self.codes(y[:, 0])[:, None]

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return class codes, counted from 0."""
        codes = as_real_target(y)
        check_known_labels(np.unique(codes), np.arange(self.forest.n_classes[0]))
        return codes.astype(np.intp)

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return class codes or values; a single target loses its axis."""
        return label[:, 0] if label.shape[1] == 1 else label

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return probabilities (that of the second class if there are two) or values."""
        mean = self.forest.response.mean(raw, self.forest.n_classes)[0]
        return mean[:, -1] if raw.shape[1] == 1 else mean

    def samples_per_node(self) -> NDArray[np.int64]:
        """Return the number of training rows at each node, (n_nodes,); zeros if the model does not record it."""
        count = self.nodes.count
        return np.zeros(self.forest.n_nodes, np.int64) if count is None else count

    def native_ids(self) -> NDArray[np.int64]:
        """Return LightGBM's node ids: s for split s, ~l for leaf l."""
        nodes = self.nodes
        size = np.diff(nodes.tree_start)
        position = nodes.order - np.repeat(nodes.tree_start[:-1], size)
        return np.where(nodes.right == -1, ~(position - np.repeat(size // 2, size)), position)

    def why_immutable(self, what: str) -> str | None:
        """Return a reason for tree weights and the base of a random forest, which averages its trees."""
        if what == "value" or not self.averages:
            return None
        return (
            "a LightGBM random forest is the unweighted mean of its trees and cannot store a "
            f"{what.replace('_', ' ')}. Include it in the leaf values."
        )

    def write(self, decision: Decision) -> Any:
        """Return a Booster with the pruned trees."""
        return self.pruned_booster(decision)

    def pruned_booster(self, decision: Decision) -> Any:
        """Return a new Booster with the pruned trees and all other state of the original, except its training data."""
        one_thread_in_a_fork()
        self.check_decision(decision)
        old = self.booster
        new = booster_of(pruned_text(self.text, self.nodes, self.forest, decision))
        new.params = copy.deepcopy(old.params)
        new.best_score = copy.deepcopy(old.best_score)
        new.pandas_categorical = copy.deepcopy(old.pandas_categorical)
        if old.best_iteration > 0:
            new.best_iteration = new.current_iteration()
        return new

    def n_bytes(self, model: Any) -> int:
        """Return the length of the model text."""
        return len(model.model_to_string())


class LightGBMWrapperAdapter(LightGBMBoosterAdapter):
    """Adapt LGBMRegressor, LGBMRanker and LGBMModel."""

    @property
    def booster(self) -> Any:
        """The wrapped Booster."""
        return self.model.booster_

    @property
    def can_refit(self) -> bool:  # type: ignore[override]
        """Whether rows, targets and weights suffice to train a clone; a ranker also needs query groups."""
        return not isinstance(self.model, lightgbm.LGBMRanker)

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a clone fitted on other rows, for as many iterations as this model uses."""
        iterations = len(self.text.trees) // self.text.per_iteration
        off = {name: 0 for name in _EARLY_STOPPING if self.model.get_params().get(name)}
        stopped = {"n_estimators": iterations} if self.booster.best_iteration > 0 else {}
        infos = self.text.header["feature_infos"].split(" ")
        categorical = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
        columns = {"categorical_feature": categorical} if categorical and not self.booster.pandas_categorical else {}
        return clone(self.model).set_params(**stopped, **off).fit(X, y, sample_weight=sample_weight, **columns)

    def write(self, decision: Decision) -> Any:
        """Return a deep copy of the wrapper around the pruned Booster."""
        booster = self.pruned_booster(decision)
        model = copy.deepcopy(self.model, {id(self.booster): booster})
        if booster.best_iteration > 0:
            model._best_iteration = booster.best_iteration
        return model

    def n_bytes(self, model: Any) -> int:
        """Return the size of the pickled wrapper."""
        return super(SklearnAdapter, self).n_bytes(model)


class ClassifierAdapter(LightGBMWrapperAdapter):
    """Adapt LGBMClassifier: predict the label with the largest probability, the first one if tied."""

    @cached_property
    def native_objective(self) -> LightGBMObjective:
        """The training objective; cross-entropy predicts the probability of the second of two classes."""
        found = read_objective(self.text)
        if found.name == "cross_entropy":
            return LightGBMObjective(found.name, "logit", n_classes=2)
        if found.name and not found.n_classes:
            raise UnsupportedModelError(
                f"This LGBMClassifier has the objective {found.name!r}, which predicts numbers, not classes. Prune "
                "model.booster_, or train the model with objective='binary' or 'multiclass'."
            )
        return found

    def codes(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index of each label among the model's classes."""
        return class_codes(y, self.model.classes_)

    def decode(self, label: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return labels, or values if the objective is not a classification."""
        if not self.forest.n_classes:
            return super().decode(label)
        labels: NDArray[np.generic] = self.model.classes_.take(label[:, 0].astype(np.intp))
        return labels

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return the label of the largest probability; probabilities can tie where raw predictions differ."""
        if not self.forest.n_classes:
            return super().predict(raw)
        return self.decode(self.probabilities(raw).argmax(axis=1)[:, None])


def booster_of(text: ModelText) -> Any:
    """Return a Booster built from the parts of a model.

    Raises
    ------
    UnsupportedFileError
        If LightGBM rejects the model.
    """
    try:
        return lightgbm.Booster(model_str=compose(text))
    except (lightgbm.basic.LightGBMError, ValueError) as error:
        raise UnsupportedFileError(
            f"LightGBM {lightgbm.__version__} cannot load this model ({str(error).splitlines()[0]}). The model must "
            "have been saved by this version or an older one. Save it again, or upgrade LightGBM."
        ) from error


def _categories(nodes: LightGBMNodes) -> Categories:
    """Return the categories of each set, which are routed left; all others are routed right."""
    if not (nodes.bitset != -1).any():
        return Categories()
    start, word = nodes.bitsets.start, nodes.bitsets.word
    bits = np.unpackbits(word.astype("<u4").view(np.uint8), bitorder="little").reshape(-1, 32)
    word_index, bit = np.nonzero(bits)
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    counts = np.bincount(owner[word_index], minlength=len(start) - 1)
    return Categories(
        row=nodes.bitset.astype(np.int32),
        start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        code=(32 * (word_index - start[owner[word_index]]) + bit).astype(np.int32),
        left=np.ones(len(word_index), bool),
        other_left=np.zeros(len(start) - 1, bool),
    )
