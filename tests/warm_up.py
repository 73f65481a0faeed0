"""python -m tests.warm_up: compile the kernels the tests need, once, before processes that test side by side start.

Kernels are compiled on their first call and kept on disk for all later processes. What is not reached from here is
compiled by the first test that needs it.
"""

import warnings

import numpy as np
from tests.cases import adapter_of, case
from tests.contracts.test_solvers import ALL_SOLVERS

import secateur as sc
from secateur.editing import simplify
from secateur.serving import LazyPredictor

MODELS = (
    "random forest classifier",
    "random forest regressor, several targets",
    "tree classifier, class weights",
    "tree regressor, missing values",
    "gradient boosting classifier",
    "gradient boosting classifier, three classes",
    "gradient boosting regressor",
    "hist boosting classifier, categories",
    "catboost regressor",
    "catboost classes",
    "lightgbm booster, categories",
    "spark_boosted_classes",
    "spark_forest_classes",
    "xgboost_classifier_three",
    "xgboost_regressor",
)
TRIMMED = ("random forest classifier", "gradient boosting classifier, three classes", "gradient boosting regressor")
"""Models that are pruned to a node budget, which collapses splits and drops trees."""


def main() -> None:
    """Prune a few models by every solver, and use what comes after pruning."""
    warnings.simplefilter("ignore")
    for name in MODELS:
        fitted = case(name)
        for solver in ALL_SOLVERS:
            try:
                path = sc.prune_path(adapter_of(name), fitted.X, fitted.y, solver=solver)
            except ValueError:  # a solver that does not take this model
                continue
            path.evaluate(fitted.X_new[: len(fitted.X)], fitted.y)
        simplify(fitted.model)
    forest = case("random forest classifier")
    for name in TRIMMED:
        fitted = case(name)
        sc.prune(fitted.model, fitted.X, fitted.y, max_nodes=30)
        sc.prune(fitted.model, fitted.X, fitted.y, max_trees=3)
    LazyPredictor(forest.model).predict_one(lambda feature: 0.0)
    sc.training.BudgetForestClassifier(n_estimators=2, random_state=0).fit(forest.X, np.asarray(forest.y))


if __name__ == "__main__":
    main()
