"""python -m tests.warm_up: compile the kernels the tests need, once, before processes that test side by side start.

Kernels are compiled on their first call and kept on disk for all later processes. What is not reached from here is
compiled by the first test that needs it.
"""

import warnings

import numpy as np
from tests.cases import adapter_of, case

import secateur as sc
from secateur.editing import simplify
from secateur.serving import LazyPredictor
from secateur.solvers import SOLVERS

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
    "xgboost_regressor",
)


def main() -> None:
    """Prune a few models by every solver, and use what comes after pruning."""
    warnings.simplefilter("ignore")
    for name in MODELS:
        fitted = case(name)
        for solver in [*(solver() for solver in SOLVERS.values()), sc.solvers.ReducedError(raising=True)]:
            try:
                path = sc.prune_path(adapter_of(name), fitted.X, fitted.y, solver=solver)
            except ValueError:  # a solver that does not take this model
                continue
            path.evaluate(fitted.X_new[: len(fitted.X)], fitted.y)
        simplify(fitted.model)
    forest = case("random forest classifier")
    layers = sc.solvers.BlockDescent(granularity="layer", values="keep", penalties=8)
    sc.prune_path(forest.model, forest.X, forest.y, solver=layers)
    sc.prune(forest.model, forest.X, forest.y, max_nodes=50)
    LazyPredictor(forest.model).predict_one(lambda feature: 0.0)
    sc.training.BudgetForestClassifier(n_estimators=2, random_state=0).fit(forest.X, np.asarray(forest.y))


if __name__ == "__main__":
    main()
