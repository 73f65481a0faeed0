"""Node weights fitted by log loss: against logistic regression, and at the minimum among weights of the same signs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.strategies import generators

import secateur as sc
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import MaxHeap, RuleLasso
from secateur.solvers.node_weights._weights import blocks

CANCER = load_breast_cancer(return_X_y=True)
SOLVERS = (MaxHeap, RuleLasso)


def problem_of(model, X, y, sample_weight=None):
    adapter = adapt(model)
    sample = read_sample(adapter, X, y, sample_weight)
    return Problem(adapter.forest, sample, default_loss(adapter.forest), NodeCost())


def small_tree(rng):
    """Return a tree of two classes, its rows and its problem; labels are noisy, so that no leaf is pure."""
    X = rng.normal(size=(80, 3))
    y = (rng.random(80) < expit(X[:, 0])).astype(int)
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=8, random_state=0).fit(X, y)
    return tree, X, y


def learn(solver, tree, X, y):
    """Return the weights at each penalty."""
    problem = problem_of(tree, X, y)
    tree_blocks = blocks(problem, solver.joint, solver.loss, solver.prior)
    if isinstance(solver, RuleLasso):
        return list(solver.learn(tree_blocks, problem))
    return list(solver.learn(tree_blocks, solver.decreasing_penalties(tree_blocks), problem))


def log_loss_of(score, y):
    return np.mean(np.logaddexp(0, score) - y * score)


@given(rng=generators, share=st.sampled_from([0.5, 0.1, 0.02]), informed=st.booleans())
def test_the_rule_lasso_is_logistic_regression_on_one_column_per_node(rng, share, informed):
    tree, X, y = small_tree(rng)
    prior = tuple(2.0 ** rng.integers(-1, 3, tree.tree_.node_count)) if informed else None
    passes = tree.decision_path(X.astype(np.float32)).toarray()[:, 1:]
    columns = passes / np.array(prior)[1:] if informed else passes
    largest = np.abs(columns.T @ (y - y.mean())).max() / len(y)
    solver = RuleLasso(loss="log_loss", penalties=(share * largest,), tolerance=1e-10, prior=prior)
    (weights,) = learn(solver, tree, X, y)
    score = weights.intercept[0, 0] + passes @ weights.node[0, 1:]
    penalty = weights.penalty * (np.ones(len(passes.T)) if prior is None else np.array(prior)[1:])
    found = log_loss_of(score, y) + penalty @ np.abs(weights.node[0, 1:])
    oracle = LogisticRegression(
        l1_ratio=1, C=1 / (len(y) * weights.penalty), solver="saga", tol=1e-11, max_iter=200_000, random_state=0
    ).fit(columns, y)
    wanted = log_loss_of(oracle.decision_function(columns), y) + weights.penalty * np.abs(oracle.coef_).sum()
    assert found == pytest.approx(wanted, rel=1e-7)
    assert weights.criticality <= 1e-9
    # The weights need not be unique, the scores are.
    np.testing.assert_allclose(score, oracle.decision_function(columns), atol=1e-3)


@given(rng=generators, share=st.sampled_from([0.5, 0.1, 0.02]), informed=st.booleans())
def test_max_heap_ends_at_the_minimum_among_weights_of_its_signs(rng, share, informed):
    tree, X, y = small_tree(rng)
    parent, passes = problem_of(tree, X, y).forest.parent, tree.decision_path(X.astype(np.float32)).toarray()
    prior = rng.uniform(0.5, 2.0, len(parent)) if informed else np.ones(len(parent))
    solver = MaxHeap(loss="log_loss", penalties=2, smallest=share, tolerance=1e-9, prior=prior)
    weights = learn(solver, tree, X, y)[-1]
    w, b = weights.node[0], weights.intercept[0, 0]
    assert (np.abs(w[parent[1:]]) >= np.abs(w[1:])).all()
    # Weights of one sign pattern are sums of rooted subtrees, each taken a non-negative number of times.
    shapes = np.array([[v in kept for v in range(len(parent))] for kept in rooted_subtrees(parent)])
    columns = np.column_stack([passes @ (shapes * np.where(w < 0, -1.0, 1.0)).T, np.ones(len(y))])
    price = np.append(weights.penalty * shapes @ prior, 0.0)

    def value_and_slope(z):
        score = columns @ z
        return log_loss_of(score, y) + price @ z, columns.T @ (expit(score) - y) / len(y) + price

    bounds = [(0, None)] * len(shapes) + [(None, None)]
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    best = minimize(value_and_slope, np.zeros(len(price)), jac=True, bounds=bounds, options=options)
    assert log_loss_of(b + passes @ w, y) + weights.penalty * prior @ np.abs(w) <= best.fun + 1e-7


def rooted_subtrees(parent):
    """Return every connected set of nodes with the root; siblings are independent."""
    found = [{0}]
    for v in range(1, len(parent)):
        found += [kept | {v} for kept in found if parent[v] in kept]
    return found


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_leaf_has_the_probability_of_its_log_odds(solver):
    X, y = CANCER
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X, y)
    settings = solver(loss="log_loss", penalties=6)
    passes, learned = tree.decision_path(X.astype(np.float32)).toarray(), learn(settings, tree, X, y)
    path = sc.prune_path(tree, X, y, solver=settings)
    assert max(weights.criticality for weights in learned) <= 1e-6
    for weights in learned:
        point = int(np.flatnonzero(path.table["penalty"] == weights.penalty)[0])
        proba = expit(weights.intercept[0, 0] + passes @ weights.node[0])
        np.testing.assert_allclose(path[point].to_model().predict_proba(X)[:, 1], proba, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS)
def test_three_classes_and_forests_get_probabilities(solver):
    X, y = load_iris(return_X_y=True)
    for model in (DecisionTreeClassifier(random_state=0), RandomForestClassifier(4, max_depth=4, random_state=0)):
        path = sc.prune_path(model.fit(X, y), X, y, solver=solver(loss="log_loss", penalties=5, joint=False))
        assert len(path) == 6
        for point in range(len(path)):
            proba = path[point].to_model().predict_proba(X)
            assert (proba >= 0).all()
            np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_largest_penalty_is_the_smallest_that_empties_the_tree(solver):
    X, y = CANCER
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    for prior in (None, lambda forest: 1.0 + forest.depth):
        largest = np.nanmax(
            sc.prune_path(tree, X, y, solver=solver(loss="log_loss", penalties=2, prior=prior)).table["penalty"]
        )
        for share, empty in ((1.001, True), (0.99, False)):
            path = sc.prune_path(tree, X, y, solver=solver(loss="log_loss", penalties=(share * largest,), prior=prior))
            assert (path.table["n_nodes"][1] == 1) == empty
            if empty:
                np.testing.assert_allclose(path[1].to_model().predict_proba(X[:1])[0, 1], y.mean())


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_of_one_class_are_predicted_with_finite_log_odds(solver):
    X, y = CANCER
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    benign = y == 1
    path = sc.prune_path(tree, X[benign], y[benign], solver=solver(loss="log_loss", penalties=3))
    assert path[len(path) - 1].to_model().predict_proba(X[:1])[0, 1] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_prior_prunes_the_nodes_it_names_first(solver):
    X, y = CANCER
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    forest = sc.as_forest(tree)
    left = np.arange(forest.n_nodes) < forest.right[0]
    for loss in ("squared_error", "log_loss"):
        prior = np.where(left & (np.arange(forest.n_nodes) > 0), 1e3, 1.0)
        path = sc.prune_path(tree, X, y, solver=solver(loss=loss, penalties=10, joint=False, prior=prior))
        for point in range(1, len(path)):
            keep = path.masks.keep(point)
            assert keep[1 : forest.right[0]].sum() <= 1
        assert keep.sum() == 1
        assert any(path.masks.keep(point)[forest.right[0] + 1] for point in range(1, len(path)))
        assert "prior=(1.0, 1000.0" in path.solver


def test_a_prior_that_is_a_function_serves_clones():
    X, y = CANCER
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    solver = MaxHeap(penalties=5, prior=lambda forest: np.ones(forest.n_nodes))
    plain, informed = (sc.prune(tree, X, y, solver=s, validation="cv") for s in (MaxHeap(penalties=5), solver))
    np.testing.assert_array_equal(plain.predict_proba(X), informed.predict_proba(X))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("prior", "reason"), [((1.0, 2.0), "nodes"), (lambda forest: np.zeros(forest.n_nodes), "positive and finite")]
)
def test_an_invalid_prior_is_refused(solver, prior, reason):
    X, y = CANCER
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=f"prior has .*{reason}"):
        sc.prune_path(tree, X, y, solver=solver(prior=prior))


def test_where_the_log_loss_is_not_defined_it_is_refused():
    X, y = CANCER
    forest = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="joint=False"):
        sc.prune_path(forest, X, y, solver=RuleLasso(loss="log_loss"))
    with pytest.raises(ValueError, match="predicts numbers"):
        sc.prune_path(DecisionTreeRegressor(max_depth=2).fit(X, y), X, y, solver=MaxHeap(loss="log_loss"))
    with pytest.raises(ValueError, match="loss='hinge' is unknown"):
        MaxHeap(loss="hinge")
