"""What every solver must satisfy on models with monotonic constraints: the pruned model keeps them."""

from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.test_solvers import some_points
from tests.libraries.test_constraints import MODELS, X

import secateur as sc
from secateur.errors import UnsupportedProblemError
from secateur.solvers import SOLVERS

pytestmark = pytest.mark.filterwarnings("ignore::secateur.errors.TrainingRowsWarning")


# More than five seconds where kernels are cold: the first model compiles those of all solvers.
@pytest.mark.contracts
@pytest.mark.parametrize("name", MODELS)
def test_the_prunings_of_every_solver_keep_the_constraints(name):
    model, y = MODELS[name]
    model.fit(X, y)
    pruned_by = 0
    for solver in SOLVERS.values():
        try:
            path = sc.prune_path(model, X, y, solver=solver())
        except UnsupportedProblemError:
            continue
        for point in some_points(path):
            assert sc.check_monotonic(path[int(point)].to_model()).holds, (solver, point)
        pruned_by += 1
    assert pruned_by >= 2


@pytest.mark.parametrize("name", ["xgboost", "forest of classes", "lightgbm, three classes", "catboost"])
def test_trimming_to_a_budget_keeps_the_constraints(name):
    model, y = MODELS[name]
    model.fit(X, y)
    for max_nodes in (9, 25):
        small = sc.prune(model, X, y, max_nodes=max_nodes, validation=0.3)
        assert sc.check_monotonic(small).holds


def test_without_separators_the_constraints_are_violated():
    model, y = MODELS["xgboost"]
    forest = sc.as_forest(model.fit(X, y))
    path = sc.prune_path(forest, X, y, solver=sc.solvers.BlockDescent())
    free = sc.prune_path(replace(forest, monotone=None), X, y, solver=sc.solvers.BlockDescent())
    found = [replace(free[k].forest, monotone=forest.monotone) for k in range(1, len(free))]
    assert np.mean([not sc.check_monotonic(forest).holds for forest in found]) > 0.3
    assert path.table["risk"].min() < 1.3 * free.table["risk"].min()
