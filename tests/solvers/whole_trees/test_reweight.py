"""Trees reweighed after pruning: ForestPrune's problem (2)."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from tests.strategies import generators

import secateur as sc
from secateur.solvers import BlockDescent
from secateur.solvers.whole_trees.reweight import ridge_weights, subset_weights


@pytest.mark.parametrize("polish", ["ridge", "subset"])
def test_polished_trees_fit_the_rows_better_than_before(polish):
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(12, max_depth=6, random_state=0).fit(X, y)
    settings = {"granularity": "layer", "values": "keep", "penalties": 12, "smallest": 1e-3}
    plain = sc.prune_path(forest, X, y, solver=BlockDescent(**settings))
    after = sc.prune_path(forest, X, y, solver=BlockDescent(polish=polish, polish_penalty=1e-3 * len(y), **settings))
    assert after.table["risk"][1:].min() < plain.table["risk"][1:].min()
    for point in (1, len(after) // 2):
        native = after[point].to_model()
        assert np.mean((native.predict(X) - y) ** 2) == pytest.approx(after.table["risk"][point])


@given(rng=generators)
def test_ridge_weights_are_those_of_a_ridge_regression(rng):
    A, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    found = ridge_weights(A.T @ A, A.T @ y, 0.7)
    np.testing.assert_allclose(found, Ridge(0.7, fit_intercept=False).fit(A, y).coef_, atol=1e-8)


def test_subsets_are_the_best_or_nearly():
    """Elimination and exchanges find the best subset of six in nearly all cases, and never a worse than none."""
    hits = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        A, y = rng.normal(size=(30, 6)), rng.normal(size=30)
        gram, match, penalty = A.T @ A / 30, A.T @ y / 30, 0.03

        def value(inside, gram=gram, match=match, penalty=penalty):
            here = np.linalg.solve(gram[np.ix_(inside, inside)], match[inside]) if len(inside) else np.empty(0)
            return -here @ match[inside] + penalty * len(inside)

        subsets = itertools.chain.from_iterable(itertools.combinations(range(6), k) for k in range(7))
        best = min(value(list(subset)) for subset in subsets)
        beta = subset_weights(gram, match, penalty)
        found = beta @ gram @ beta - 2 * beta @ match + penalty * np.count_nonzero(beta)
        assert best - 1e-9 <= found <= 1e-9
        hits += found <= best + 1e-9
    assert hits >= 48


def test_subsets_are_no_worse_than_those_of_plain_elimination():
    rng = np.random.default_rng(0)
    for n, n_rows in ((12, 40), (30, 150), (30, 25)):
        A, y = rng.normal(size=(n_rows, n)), rng.normal(size=n_rows)
        A[:, n // 2 :] += A[:, : n - n // 2]
        A[:, 0] = 0.0  # a constant tree
        gram, match = A.T @ A / n_rows, A.T @ y / n_rows
        for penalty in (0.1, 0.01, 0.001):
            beta = subset_weights(gram, match, penalty)
            found = beta @ gram @ beta - 2 * beta @ match + penalty * np.count_nonzero(beta)
            assert found <= plain_elimination(gram, match, penalty) + 1e-6


def plain_elimination(gram, match, penalty):
    """Return the lowest objective on the way, solving every subset from scratch."""
    inside, lowest = list(range(len(match))), 0.0
    while inside:
        values = []
        for subset in [inside, *([t for t in inside if t != tree] for tree in inside)]:
            beta = np.linalg.pinv(gram[np.ix_(subset, subset)], hermitian=True) @ match[subset]
            values.append(-beta @ match[subset] + penalty * len(subset))
        lowest = min(lowest, values[0])
        inside = [t for t in inside if t != inside[int(np.argmin(values[1:]))]]
    return lowest


def test_log_odds_are_not_polished():
    X, y = load_breast_cancer(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs squared error"):
        sc.prune_path(model, X, y, solver=BlockDescent(polish="ridge"))
