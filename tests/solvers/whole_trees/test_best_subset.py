"""Best subset: the search and its bounds against all subsets, also when the time is up early; then whole models."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from tests.cases import case
from tests.in_one_test import for_each
from tests.solvers.ensemble.test_block_descent import random_problem
from tests.solvers.whole_trees.test_tree_lasso import as_numbers, dense, outputs
from tests.strategies import generators

import secateur as sc
from secateur.solvers import BestSubset
from secateur.solvers.ensemble.additive_model import additive
from secateur.solvers.whole_trees import _branch_and_bound as subset_search
from secateur.solvers.whole_trees._branch_and_bound import pose, relax, search

DIABETES = load_diabetes(return_X_y=True)
IRIS = load_iris(return_X_y=True)
KINDS = ("unlike", "alike", "near copies", "of all scales")


def random_trees(rng, n, kind):
    """Return a random question."""
    n_rows = int(rng.integers(3, 40))
    X = rng.normal(size=(n_rows, n))
    if kind == "alike":
        X = rng.normal(size=(n_rows, 1)) + 0.3 * X
    elif kind == "near copies":
        X = X[:, rng.integers(0, n, n)] + 10.0 ** -rng.integers(2, 12) * X
    elif kind == "of all scales":
        X = X * 10.0 ** rng.integers(-4, 4, n)
    y = rng.normal(size=n_rows) + X @ rng.normal(size=n) * rng.choice([0.0, 1.0])
    if n > 1 and rng.random() < 0.3:
        y += (X[:, 0] - X[:, 1]) * 10.0 ** rng.integers(0, 6)  # what only two trees together can say
    X, y = X - X.mean(axis=0), y - y.mean()
    return pose(X.T @ X / n_rows, X.T @ y / n_rows, float(y @ y / n_rows), rng.integers(1, 15, n))


def subsets(size, budget):
    for k in range(len(size) + 1):
        for chosen in itertools.combinations(range(len(size)), k):
            if size[list(chosen)].sum() <= budget:
                yield np.array(chosen, int)


def objective(trees, chosen):
    """Return the objective by another way than the search: the eigenvectors of the chosen Gram matrix."""
    if not len(chosen):
        return trees.square
    values, vectors = np.linalg.eigh(trees.gram[np.ix_(chosen, chosen)])
    return trees.square - float((vectors.T @ trees.match[chosen]) ** 2 @ (1 / values))


def lowest(trees, budget):
    return min(objective(trees, chosen) for chosen in subsets(trees.size, budget))


class Clock:
    """A clock on which every look takes a second, so that time limits strike where a test wants them."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("kind", KINDS)
@for_each("seed", range(16))
def test_the_search_finds_the_best_of_all_subsets_and_never_claims_more_than_is_true(seed, kind, monkeypatch):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    trees = random_trees(rng, 12 if seed == 0 else int(rng.integers(1, 11)), kind)
    budget = int(rng.integers(1, trees.size.sum() + 2))
    best = lowest(trees, budget)
    bounds = []
    for seconds in (0, 1, 3, 10, 30, 100, np.inf):
        monkeypatch.setattr(subset_search, "time", Clock())
        found = search(trees, budget, [], seconds)
        assert trees.size[found.chosen].sum() <= budget
        assert found.objective == pytest.approx(objective(trees, found.chosen), abs=1e-10 * trees.square)
        assert found.bound <= best
        assert found.bound <= found.objective
        bounds.append(found.bound)
    assert (np.diff(bounds) >= -1e-10 * trees.square).all()
    assert found.objective <= best + 1e-9 * trees.square
    assert found.bound >= max(best - 2.1e-9 * trees.square, 0)


@pytest.mark.parametrize("kind", KINDS)
@for_each("seed", range(8))
def test_branching_alone_finds_the_best_of_all_subsets(seed, kind, monkeypatch):
    for name in ("forward", "_round_down"):
        monkeypatch.setattr(subset_search, name, lambda *_: np.empty(0, int))
    rng = np.random.default_rng([100 + seed, KINDS.index(kind)])
    trees = random_trees(rng, int(rng.integers(3, 9)), kind)
    budget = int(rng.integers(1, trees.size.sum() + 2))
    found = search(trees, budget, [], np.inf)
    assert found.bound <= lowest(trees, budget) <= found.objective + 1e-10 * trees.square
    assert found.objective <= lowest(trees, budget) + 1e-9 * trees.square


@given(rng=generators, kind=st.sampled_from(KINDS), rounds=st.integers(1, 8))
def test_the_relaxation_is_below_every_subset_for_any_initial_fractions(rng, kind, rounds):
    trees = random_trees(rng, int(rng.integers(1, 8)), kind)
    budget = int(rng.integers(1, trees.size.sum() + 2))
    share = rng.choice([1e-9, 0.1, 0.5, 1.0], len(trees.size))
    rounds, subset_search._ROUNDS = subset_search._ROUNDS, rounds
    bound, _, _ = relax(trees, budget, share, np.inf, np.inf)
    subset_search._ROUNDS = rounds
    assert bound <= lowest(trees, budget)


def test_the_relaxation_is_tight_when_all_trees_are_as_like_each_other():
    n, like = 20, 0.8
    gram = like * np.ones((n, n)) + (1 - like) * np.eye(n)
    trees = pose(gram, 0.9 * np.ones(n), 1.0, np.full(n, 7, np.int64))
    bound, _, _ = relax(trees, 5 * 7, np.full(n, 5 / n), np.inf, np.inf)
    assert bound == pytest.approx(objective(trees, np.arange(5)), rel=1e-4)


@given(rng=generators, kind=st.sampled_from(KINDS))
def test_the_gram_matrix_less_the_diagonal_is_positive_semidefinite(rng, kind):
    trees = random_trees(rng, int(rng.integers(1, 12)), kind)
    floor = subset_search._diagonal(trees)
    assert (floor > 0).all()
    assert np.linalg.eigvalsh(trees.gram - np.diag(floor))[0] >= -1e-14 * np.trace(trees.gram)


def test_a_first_answer_that_cannot_be_improved_is_kept():
    trees = random_trees(np.random.default_rng(3), 10, "unlike")
    budget = int(trees.size.sum() // 3)
    best = search(trees, budget, [], np.inf)
    again = search(trees, budget, [best.chosen, np.arange(10)], 0.0)
    assert again.objective == best.objective
    assert set(again.chosen) == set(best.chosen)
    assert again.bound <= best.objective


@for_each("seed", range(10))
def test_the_solver_is_as_good_as_least_squares_on_every_subset_of_tree_predictions(seed):
    problem = random_problem(np.random.default_rng(seed), 8, max_splits=5)
    ensemble = additive(problem)
    size = np.diff(problem.forest.tree_start)
    budget = int(size.sum() // 3)
    columns, root = dense(ensemble)[:, :, 0].T, np.sqrt(ensemble.weight)
    best = np.inf
    for chosen in subsets(size, budget):
        design = np.column_stack([np.ones(len(columns)), columns[:, chosen]]) * root[:, None]
        beta = np.linalg.lstsq(design, root * ensemble.target[:, 0], rcond=None)[0]
        best = min(best, float(((design @ beta - root * ensemble.target[:, 0]) ** 2).sum()))
    path = BestSubset(max_nodes=budget).path(problem)
    assert path.table["n_nodes"][1] <= budget
    assert path.table["risk"][1] == pytest.approx(best, rel=1e-4)
    assert path.table["objective"][1] == pytest.approx(best, rel=1e-4)
    assert path.table["gap"][1] < 1e-6


MODELS = {
    "random forest regressor": (RandomForestRegressor(8, max_depth=4, random_state=0), DIABETES),
    "boosted regressor": (GradientBoostingRegressor(n_estimators=10, random_state=0), DIABETES),
    "random forest classifier": (RandomForestClassifier(8, max_depth=3, random_state=0), IRIS),
}


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("time_limit", [0.0, 60.0])
def test_no_subset_of_a_native_models_trees_is_below_the_bound(name, time_limit):
    model, (X, y) = MODELS[name]
    model.fit(X[::2], y[::2])
    added, _ = outputs(model, X)
    target = as_numbers(model, y)
    size = np.diff(sc.as_forest(model).tree_start)
    columns = (added - added.mean(axis=1, keepdims=True)).transpose(1, 2, 0).reshape(-1, len(added))
    rest = (target - target.mean(axis=0)).ravel()
    ridge = 1e-6 * (columns**2).sum() / len(size)
    for share in (0.2, 0.5):
        budget = int(share * size.sum())
        solver = BestSubset(max_nodes=budget, values="free", time_limit=time_limit)
        row = sc.prune_path(model, X, y, solver=solver)[1].row
        squares = []
        for chosen in subsets(size, budget):
            design = np.vstack([columns[:, chosen], np.sqrt(ridge) * np.eye(len(size))[:, chosen]])
            beta = np.linalg.lstsq(design, np.append(rest, np.zeros(len(size))), rcond=None)[0]
            squares.append(((columns[:, chosen] @ beta - rest) ** 2).sum() / len(y) + ridge * (beta**2).sum() / len(y))
        assert row["bound"] <= min(squares)
        assert row["objective"] >= min(squares) * (1 - 1e-9)
        if time_limit:
            assert row["objective"] == pytest.approx(min(squares), rel=1e-9)
            assert row["risk"] == pytest.approx(min(squares), rel=1e-4)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_native_model_predicts_with_the_weights_that_were_found(name):
    model, (X, y) = MODELS[name]
    model.fit(X[::2], y[::2])
    budget = int(0.4 * sc.as_forest(model).n_nodes)
    path = sc.prune_path(model, X, y, solver=BestSubset(max_nodes=budget, values="free"))
    kept = np.flatnonzero(path.masks.keep(1)[path.forest.root])
    added = outputs(model, X)[0][kept]
    target = as_numbers(model, y)
    columns = (added - added.mean(axis=1, keepdims=True)).transpose(1, 2, 0).reshape(-1, len(kept))
    rest = (target - target.mean(axis=0)).ravel()
    beta = np.linalg.lstsq(columns, rest, rcond=None)[0]
    expected = (columns @ beta).reshape(target.shape) + target.mean(axis=0)
    small = path[1].to_model()
    np.testing.assert_allclose(outputs(small, X)[1], expected, atol=1e-3 * np.abs(target).max())


def test_budgets_are_kept_and_more_nodes_are_never_worse():
    X, y = DIABETES
    forest = RandomForestRegressor(30, max_depth=5, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=BestSubset(time_limit=1.0))
    assert len(path) == 5
    assert np.isnan(path.table["gap"][0])
    assert (path.table["n_nodes"][1:] <= np.maximum(path.table["budget"][1:], 1)).all()
    assert (np.diff(path.table["objective"][1:]) >= -1e-9).all()
    assert (path.table["bound"][1:] <= path.table["objective"][1:]).all()
    assert ((path.table["gap"][1:] >= 0) & (path.table["gap"][1:] <= 1)).all()


def test_a_budget_too_small_for_any_tree_leaves_a_constant():
    X, y = DIABETES
    path = sc.prune_path(RandomForestRegressor(5, random_state=0).fit(X, y), X, y, solver=BestSubset(max_nodes=2))
    assert path.table["n_nodes"][1] == 1
    assert path.table["objective"][1] == pytest.approx(np.var(y))
    np.testing.assert_allclose(path[1].to_model().predict(X), y.mean())


def test_the_limit_of_prune_is_the_budget():
    X, y = DIABETES
    forest = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X[::2], y[::2])
    small = sc.prune(forest, X[::2], y[::2], solver=BestSubset(), max_nodes=50, validation=(X[1::2], y[1::2]))
    assert 35 < sc.as_forest(small).n_nodes <= 50


def test_a_target_that_does_not_vary_needs_no_tree():
    X, y = DIABETES
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    row = sc.prune_path(forest, X, np.full(len(y), 7.0), solver=BestSubset(max_nodes=40))[1].row
    assert (row["objective"], row["bound"], row["gap"]) == (0.0, 0.0, 0.0)


def test_log_odds_are_refused():
    c = case("gradient boosting classifier")
    with pytest.raises(ValueError, match=r"BestSubset cannot prune this: .*needs squared error, .*Use fewer_trees"):
        sc.prune_path(c.model, c.X, c.y, solver=BestSubset())


@pytest.mark.parametrize("settings", [{"max_nodes": 0}, {"time_limit": -1.0}, {"time_limit": float("nan")}])
def test_invalid_settings_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}=.*must be"):
        BestSubset(**settings)
