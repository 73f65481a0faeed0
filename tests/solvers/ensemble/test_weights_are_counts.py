"""A row of weight 2 is two rows, as in scikit-learn: paths with integer weights are those of repeated rows."""

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from secateur import prune_path
from secateur.costs import FeatureCost
from secateur.solvers import BlockDescent, CostDescent

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=60)
WEIGHT = rng.integers(0, 4, 60)
MODELS = {
    "mean of numbers": (RandomForestRegressor(6, max_depth=3, random_state=0), SCORE),
    "mean of probabilities": (RandomForestClassifier(6, max_depth=3, random_state=0), np.digitize(SCORE, [-1, 1])),
    "two classes": (RandomForestClassifier(6, max_depth=3, random_state=0), SCORE > 0),
    "squared error": (GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0), SCORE),
    "log loss": (GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0), SCORE > 0),
    "softmax": (
        GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0),
        np.digitize(SCORE, [-1, 1]),
    ),
    "absolute error": (
        GradientBoostingRegressor(n_estimators=6, max_depth=2, loss="absolute_error", random_state=2),
        SCORE,
    ),
    "counts": (LGBMRegressor(objective="poisson", n_estimators=6, num_leaves=4, verbose=-1), np.exp(SCORE).round()),
}
SOLVERS = {
    "block_descent": (BlockDescent(ridge=2.0), None),
    "block_descent, free values": (BlockDescent(ridge=2.0, values="free"), None),
    "cost_descent": (CostDescent(ridge=2.0), FeatureCost()),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", MODELS)
def test_integer_weights_are_repeated_rows(name, solver):
    model, y = MODELS[name]
    model.fit(X, y)
    method, cost = SOLVERS[solver]
    again = np.repeat(np.arange(60), WEIGHT)
    weighted = prune_path(model, X, y, solver=method, cost=cost, sample_weight=WEIGHT)
    repeated = prune_path(model, X[again], y[again], solver=method, cost=cost)
    # Newton's steps end where the loss stops falling, about the root of the precision from the best values.
    tolerance = 1e-6 if name in ("log loss", "softmax", "counts") else 1e-9
    assert len(weighted) == len(repeated)
    for point, other in zip(range(len(weighted)), range(len(repeated)), strict=True):
        one, two = weighted[point].decision, repeated[other].decision
        assert np.array_equal(one.keep, two.keep)
        assert one.value is None or np.allclose(one.value[one.keep], two.value[two.keep], rtol=0, atol=tolerance)
