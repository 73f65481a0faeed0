"""Adapt XGBoost's scikit-learn wrappers: their Booster, used up to its best iteration."""

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import clone, is_classifier
from xgboost import XGBRanker

from secateur.forest import Forest
from secateur.forest.promises import monotone_signs
from secateur.forest.subforest import Decision
from secateur.libraries.xgboost.adapter import XGBoostBoosterAdapter, _as_margin


class XGBoostWrapperAdapter(XGBoostBoosterAdapter):
    """Adapt XGBClassifier, XGBRegressor, XGBRanker, XGBRFClassifier and XGBRFRegressor."""

    hides_objective = False

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.custom_objective = callable(model.objective)
        self.supervised = self.supervised and not self.custom_objective
        self.predicts_labels = True
        self.can_refit = self.supervised and not isinstance(model, XGBRanker) and not model.callbacks

    def read(self) -> Forest:
        """Return base + Σ trees, with XGBoost's order of summation for in-place prediction (without a DMatrix)."""
        dart = self.saved["learner"]["gradient_booster"]["name"] == "dart"
        return replace(super().read(), addition="around_base" if dart else "in_order")

    @property
    def booster(self) -> Any:
        """The wrapped Booster."""
        return self.model.get_booster()

    @property
    def monotone(self) -> NDArray[np.int8] | None:
        """The sign of each monotonic constraint; a Booster loaded from a file has those of the wrapper's parameter."""
        trained = super().monotone
        if trained is not None:
            return trained
        names = self.saved["learner"].get("feature_names")
        return monotone_signs(self.model.monotone_constraints, self.n_features, names)

    @property
    def n_used(self) -> int:
        """The number of trees up to the best iteration."""
        rounds = self.trees.rounds
        return int(rounds[-1] if self.best_iteration is None else rounds[: self.best_iteration + 2][-1])

    @property
    def classes(self) -> list[NDArray[Any]]:
        """The labels of each target; empty unless the model predicts labels."""
        known = super().classes
        if not is_classifier(self.model):
            # A regressor trained by the hinge loss predicts 0 or 1, not a probability.
            return known if self.objective == "zero_one" else []
        labels = np.asarray(self.model.classes_)
        return [labels if len(labels) == len(codes) else codes for codes in known]

    @property
    def missing_value(self) -> float:
        """The number that marks missing entries in addition to NaN."""
        return float("nan") if self.model.missing is None else float(self.model.missing)

    @cached_property
    def treeless(self) -> Any:
        """A shallow copy of the model whose Booster has no trees; it maps raw predictions to predictions."""
        treeless = copy.copy(self.model)
        treeless._Booster = self.empty
        return treeless

    def predict(self, raw: NDArray[np.floating]) -> NDArray[np.generic]:
        """Return what `predict` returns."""
        return self._transform(self.treeless.predict, raw)

    def probabilities(self, raw: NDArray[np.floating]) -> Any:
        """Return what `predict_proba` returns; a regressor has probabilities only by the link of its scores."""
        if not is_classifier(self.model):
            return super().probabilities(raw)
        return self._transform(self.treeless.predict_proba, raw)

    def _transform(self, method: Any, raw: NDArray[np.floating]) -> NDArray[Any]:
        """Return what a prediction method of the model without trees returns for given raw predictions."""
        blank = csr_matrix((len(raw), self.n_features), dtype=np.float32)
        predictions: NDArray[Any] = method(blank, base_margin=_as_margin(raw), validate_features=False)
        return predictions

    def write(self, decision: Decision) -> Any:
        """Return a deep copy of the model with a pruned Booster."""
        return copy.deepcopy(self.model, {id(self.booster): super().write(decision)})

    def refit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return a clone fitted on other rows, for as many rounds as this model uses."""
        if not self.can_refit:
            return super().refit(X, y, sample_weight)
        new = clone(self.model)
        if self.best_iteration is not None:
            new.set_params(n_estimators=self.best_iteration + 1)
        if getattr(new, "early_stopping_rounds", None):
            new.set_params(early_stopping_rounds=None)
        return new.fit(X, y, sample_weight=sample_weight)
