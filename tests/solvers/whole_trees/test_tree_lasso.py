"""Lasso over whole trees: against scikit-learn's Lasso on the matrix of tree predictions, and against optimality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import Lasso
from tests.cases import case
from tests.solvers.ensemble.test_block_descent import problem_of
from tests.strategies import generators, random_forest, random_rows

import secateur as sc
from secateur import kernels
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows
from secateur.forest.routing import route
from secateur.forest.subforest import kept_decision
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import TreeLasso
from secateur.solvers.ensemble.additive_model import additive, empty_state, loss_of
from secateur.solvers.whole_trees import reweight as polish
from secateur.solvers.whole_trees.reweight import normal_equations
from secateur.solvers.whole_trees.tree_lasso import largest_penalty, whole_trees

DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
TWO_TARGETS = (DIABETES[0], np.column_stack([DIABETES[1], DIABETES[0][:, 2] * 1000 + DIABETES[1]]))

MODELS = {
    "random forest regressor": (RandomForestRegressor(12, max_depth=5, random_state=0), DIABETES),
    "extra trees regressor": (ExtraTreesRegressor(12, max_depth=5, random_state=0), DIABETES),
    "random forest regressor, two targets": (RandomForestRegressor(9, max_depth=4, random_state=0), TWO_TARGETS),
    "boosted regressor": (GradientBoostingRegressor(n_estimators=25, random_state=0), DIABETES),
    "random forest classifier": (RandomForestClassifier(10, max_depth=3, random_state=0), CANCER),
    "random forest classifier, three classes": (RandomForestClassifier(10, max_depth=3, random_state=0), IRIS),
}


def outputs(model, X):
    """Return what each tree adds and what the model says, as (n_trees, n_rows, n_outputs) and (n_rows, n_outputs)."""
    if hasattr(model, "classes_"):
        trees = [tree.predict_proba(X) / len(model.estimators_) for tree in model.estimators_]
        return np.array(trees), model.predict_proba(X)
    rate = getattr(model, "learning_rate", 1 / len(model.estimators_))
    trees = [rate * tree.predict(X).reshape(len(X), -1) for tree in np.ravel(model.estimators_)]
    return np.array(trees), model.predict(X).reshape(len(X), -1)


def as_numbers(model, y):
    return (y[:, None] == model.classes_).astype(float) if hasattr(model, "classes_") else y.reshape(len(y), -1)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_point_predicts_what_the_lasso_of_scikit_learn_does(name):
    model, (X, y) = MODELS[name]
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model.fit(X[::2], y[::2])
    path = sc.prune_path(
        model, X, y, solver=TreeLasso(values="free", penalties=12, smallest=1e-3), sample_weight=weight
    )
    trees, _ = outputs(model, X)
    target = as_numbers(model, y)
    n_targets = 1 if hasattr(model, "classes_") else target.shape[1]
    share = weight / weight.sum()
    columns = trees - (share @ trees)[:, None]  # one intercept per output, whatever the weights are
    middle = share @ target
    flat = columns.transpose(1, 2, 0).reshape(-1, len(trees))
    for point in range(1, len(path)):
        # scikit-learn divides the squared errors by twice the weight of rows and outputs, secateur by n_targets.
        penalty = path.table["penalty"][point] * n_targets / (2 * target.shape[1])
        lasso = Lasso(penalty, fit_intercept=False, precompute=True, tol=1e-14, max_iter=1_000_000)
        lasso.fit(flat, (target - middle).ravel(), sample_weight=np.repeat(share, target.shape[1]))
        expected = (flat @ lasso.coef_).reshape(target.shape) + middle
        small = path[point].to_model()
        np.testing.assert_allclose(outputs(small, X)[1], expected, atol=2e-5 * np.abs(target).max())
        squares = share @ ((expected - target) ** 2).sum(axis=1) / n_targets
        assert path.table["risk"][point] == pytest.approx(squares, rel=1e-3)
        surely = np.abs(lasso.coef_) > 1e-4 * np.abs(lasso.coef_).max()
        assert path.table["n_trees"][point] >= max(surely.sum(), 1)


def random_gram(rng, n, n_rows):
    X = rng.normal(size=(n_rows, n)) + rng.normal(size=(n_rows, 1)) * rng.choice([0.0, 1.0, 10.0])
    X[:, rng.random(n) < 0.2] = 0.0  # trees of one leaf
    if n > 1 and rng.random() < 0.3:
        X[:, 0] = X[:, -1]  # the same tree twice
    y = X @ rng.normal(size=n) * rng.choice([0.0, 1.0]) + rng.normal(size=n_rows)
    return X.T @ X / n_rows, X.T @ y / n_rows, float(y @ y / n_rows)


@given(rng=generators, share=st.sampled_from([1.1, 0.5, 0.1, 0.01, 1e-4]))
def test_the_weights_satisfy_the_conditions_of_optimality(rng, share):
    n = int(rng.integers(1, 20))
    gram, match, square = random_gram(rng, n, int(rng.integers(2, 40)))
    penalty = share * max(largest_penalty(match), 1e-12)
    start = rng.normal(size=n) * (np.diag(gram) > 0)
    beta, gap, _ = kernels.fit_tree_lasso(gram, match, square, penalty, start, 1e-10 * square, 10_000)
    assert gap <= 1e-10 * square
    neg_gradient = 2 * (match - gram @ beta)
    loose = 1e-4 * np.sqrt(square * np.maximum(np.diag(gram), 1e-12)) + 1e-9
    assert (np.abs(neg_gradient) <= penalty + loose).all()
    active = beta != 0
    np.testing.assert_allclose((beta * neg_gradient)[active].sum(), penalty * np.abs(beta).sum(), atol=1e-4 * square)
    if share > 1:
        assert not active.any()


@given(rng=generators, share=st.sampled_from([0.5, 0.1, 0.01]), sweeps=st.integers(1, 3))
def test_the_gap_is_never_smaller_than_what_is_still_to_gain(rng, share, sweeps):
    n = int(rng.integers(1, 15))
    gram, match, square = random_gram(rng, n, int(rng.integers(2, 40)))
    penalty = share * max(largest_penalty(match), 1e-12)

    def objective(beta):
        return square - 2 * beta @ match + beta @ gram @ beta + penalty * np.abs(beta).sum()

    early, gap, _ = kernels.fit_tree_lasso(gram, match, square, penalty, np.zeros(n), 0.0, sweeps)
    late, rest, _ = kernels.fit_tree_lasso(gram, match, square, penalty, np.zeros(n), 1e-12 * square, 10_000)
    assert objective(late) <= objective(early) + 1e-9 * square
    assert gap >= objective(early) - objective(late) - 1e-9 * square
    assert rest <= 1e-10 * square


def one_tree_per_output(rng, n_rows):
    """Return a problem of two numbers to predict, trees feeding them in turn."""
    forest = random_forest(rng, n_trees=6, max_splits=4, n_outputs=2, n_classes=(), link="identity", aggregation="sum")
    object.__setattr__(forest, "value", forest.value[:, :1].copy())
    object.__setattr__(forest, "tree_output", np.array([0, 1, 0, 1, 0, 1], np.int32))
    X = random_rows(rng, n_rows, forest.n_features)
    weight = rng.integers(1, 4, n_rows).astype(float)
    sample = LocalRows(route(forest, X), rng.normal(size=(n_rows, 2)), weight)
    return Problem(forest, sample, default_loss(forest), NodeCost())


def dense(ensemble):
    """Return what each whole tree adds to each row and output, (n_trees, n_rows, n_outputs)."""
    forest = ensemble.forest
    added = np.zeros((forest.n_trees, *ensemble.target.shape))
    for tree in range(forest.n_trees):
        value = ensemble.original[forest.root[tree] + ensemble.leaves[tree].astype(int)]
        output = forest.tree_output[tree]
        if output < 0:
            added[tree] = value
        else:
            added[tree, :, output] = value[:, 0]
    return added


@pytest.mark.parametrize("chunk", [1, 7, 2**22])
@pytest.mark.parametrize("kind", ["one output each", "all outputs"])
def test_the_normal_equations_are_those_of_the_matrix_of_tree_predictions(kind, chunk, monkeypatch):
    monkeypatch.setattr(polish, "_CHUNK", chunk)
    if kind == "one output each":
        problem = one_tree_per_output(np.random.default_rng(0), 25)
    else:
        X, y = IRIS
        problem = problem_of(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y), X, y, np.arange(150) % 3)
    ensemble = additive(problem)
    added = dense(ensemble)
    added -= (ensemble.weight @ added / ensemble.weight.sum())[:, None]
    gram, match = normal_equations(ensemble, whole_trees(ensemble), np.arange(problem.forest.n_trees))
    np.testing.assert_allclose(gram, np.einsum("sik,i,tik->st", added, ensemble.weight, added), atol=1e-12)
    np.testing.assert_allclose(match, np.einsum("sik,i,ik->s", added, ensemble.weight, ensemble.target), atol=1e-12)


def test_trees_that_feed_outputs_in_turn_are_weighed_together():
    problem = one_tree_per_output(np.random.default_rng(1), 40)
    ensemble = additive(problem)
    gram, match = normal_equations(ensemble, whole_trees(ensemble), np.arange(6))
    square = loss_of(ensemble, empty_state(ensemble))
    for point in TreeLasso(penalties=5)._points(ensemble):
        beta, _, _ = kernels.fit_tree_lasso(gram, match, square, point.penalty, np.zeros(6), 1e-14, 10_000)
        expected = np.tensordot(beta, dense(ensemble), 1)
        rest = ensemble.target - expected
        expected = expected + ensemble.weight @ rest / ensemble.weight.sum()
        decision = kept_decision(problem.forest, point.keep, point.value)
        np.testing.assert_allclose(problem.sample.scores(problem.forest, decision), expected, atol=1e-6)


def test_a_tree_may_count_against_the_others():
    X, y = DIABETES
    forest = RandomForestRegressor(2, max_depth=4, random_state=0).fit(X, y)
    first, second = (tree.predict(X) for tree in forest.estimators_)
    path = sc.prune_path(forest, X, first - 0.5 * second, solver=TreeLasso(smallest=1e-6, values="free"))
    best = path[int(path.table["risk"].argmin())].to_model()
    np.testing.assert_allclose(best.predict(X), first - 0.5 * second, atol=0.1)


def test_the_path_ends_with_a_constant_and_its_gaps_are_small():
    X, y = DIABETES
    path = sc.prune_path(RandomForestRegressor(20, random_state=0).fit(X, y), X, y, solver=TreeLasso())
    assert path.table["n_nodes"][-1] == 1
    assert path.table["risk"][-1] == pytest.approx(np.var(y))
    assert (path.table["gap"] <= 1e-8 * np.var(y)).all()
    assert path.table["risk"][1:].min() < path.table["risk"][0]


def test_penalties_can_be_given_and_points_are_not_repeated():
    X, y = DIABETES
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=TreeLasso(penalties=(1e9, 1e8, 10.0, 20.0)))
    assert path.table["penalty"][1:].tolist() == [10.0, 20.0, 1e9]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gradient boosting classifier", "loss log_loss. Use fewer_trees or block_descent"),
        ("hist boosting classifier, three classes", "loss log_loss. Use fewer_trees or block_descent"),
        ("adaboost classifier", "aggregation 'mean' and link 'vote'. Use fewer_trees"),
        ("adaboost regressor", "aggregation 'median' and link 'identity'. Use fewer_trees"),
        ("isolation forest", "aggregation 'mean' and link 'anomaly'. Use fewer_trees"),
        ("hist boosting regressor, poisson", "link 'log' and loss poisson. Use fewer_trees"),
    ],
)
def test_models_that_are_not_a_sum_of_predictions_are_refused(name, reason):
    c = case(name)
    with pytest.raises(ValueError, match=rf"TreeLasso cannot prune this: .*{reason}"):
        sc.prune_path(c.model, c.X, c.y, solver=TreeLasso())


@pytest.mark.parametrize("settings", [{"penalties": 0}, {"smallest": 0.0}, {"tolerance": 0.0}])
def test_invalid_settings_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}=.*must be"):
        TreeLasso(**settings)
