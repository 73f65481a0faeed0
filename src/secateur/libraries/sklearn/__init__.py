"""Read every tree-based scikit-learn estimator into a Forest and write the pruned forest back as the same type."""

from typing import Any

from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree import BaseDecisionTree
from sklearn.utils.validation import check_is_fitted

from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.libraries import adapt as adapt_any
from secateur.libraries.adapter import Adapter, not_fitted
from secateur.libraries.sklearn.adaboost import AdaBoostAdapter
from secateur.libraries.sklearn.bagging import (
    BaggingAdapter,
    ForestEnsembleAdapter,
    SingleTreeAdapter,
    check_base_trees,
)
from secateur.libraries.sklearn.base import SklearnAdapter
from secateur.libraries.sklearn.gradient_boosting import GradientBoostingAdapter
from secateur.libraries.sklearn.hist_gradient_boosting import HistGradientBoostingAdapter
from secateur.libraries.sklearn.isolation_forest import IsolationForestAdapter
from secateur.libraries.sklearn.pipeline_and_search import PipelineAdapter, SearchAdapter
from secateur.libraries.sklearn.recipes import RECIPES

MODELS: dict[type, type[SklearnAdapter]] = {
    BaseDecisionTree: SingleTreeAdapter,
    RandomForestClassifier: ForestEnsembleAdapter,
    RandomForestRegressor: ForestEnsembleAdapter,
    ExtraTreesClassifier: ForestEnsembleAdapter,
    ExtraTreesRegressor: ForestEnsembleAdapter,
    IsolationForest: IsolationForestAdapter,
    BaggingClassifier: BaggingAdapter,
    BaggingRegressor: BaggingAdapter,
    GradientBoostingClassifier: GradientBoostingAdapter,
    GradientBoostingRegressor: GradientBoostingAdapter,
    AdaBoostClassifier: AdaBoostAdapter,
    AdaBoostRegressor: AdaBoostAdapter,
    HistGradientBoostingClassifier: HistGradientBoostingAdapter,
    HistGradientBoostingRegressor: HistGradientBoostingAdapter,
}
"""Adapter of each model class; subclasses included."""


def adapt(model: Any) -> Adapter:
    """Return the adapter of a fitted scikit-learn model.

    Raises
    ------
    UnsupportedModelError
        If the model is not made of trees, or is a class rather than an instance.
    InvalidInputError
        If the model is not fitted.
    """
    if isinstance(model, Pipeline):
        return PipelineAdapter(model, adapt_any(model.steps[-1][1]))
    if isinstance(model, BaseSearchCV):
        _check_fitted(model)
        if not hasattr(model, "best_estimator_"):
            raise InvalidInputError("The search was run with refit=False and has no fitted model. Use refit=True.")
        return SearchAdapter(model, adapt_any(model.best_estimator_))
    for kind, adapter in MODELS.items():
        if isinstance(model, kind):
            _check_fitted(model)
            if adapter in (BaggingAdapter, AdaBoostAdapter):
                check_base_trees(model)
            return adapter(model)
    recipe = next((RECIPES[kind.__name__] for kind in type(model).__mro__ if kind.__name__ in RECIPES), None)
    if recipe is not None:
        raise UnsupportedModelError(
            f"Got {type(model).__name__}, which is no tree model, but may contain some. Prune these instead: {recipe}."
        )
    raise UnsupportedModelError(
        f"Got {type(model).__name__}, which is not a tree model that secateur supports. Supported scikit-learn models: "
        f"{', '.join(kind.__name__ for kind in MODELS)}, and a Pipeline or search that ends in one. Pass one of these."
    )


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise not_fitted(model) from error
