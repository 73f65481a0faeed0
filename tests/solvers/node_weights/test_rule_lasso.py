"""The rule lasso: against scikit-learn's lasso on one column per node, and how it is written back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case
from tests.strategies import generators, random_forest, random_rows

import secateur as sc
from secateur import kernels
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.forest.routing import route
from secateur.libraries import adapt
from secateur.losses import SquaredError, default_loss
from secateur.problem import Problem
from secateur.solvers import RuleLasso
from secateur.solvers.node_weights._weights import blocks, keep_of, values_of

DIABETES = load_diabetes(return_X_y=True)


def problem_of(model, X, y, sample_weight=None):
    adapter = adapt(model)
    sample = read_sample(adapter, X, y, sample_weight)
    return Problem(adapter.forest, sample, default_loss(adapter.forest), NodeCost())


def random_block(rng, n_trees):
    """Return all trees of a random forest as one problem, with weighted rows, some of weight 0."""
    forest = random_forest(rng, n_trees, 8, aggregation="mean")
    n_rows = int(rng.integers(2, 40))
    X = random_rows(rng, n_rows, forest.n_features).astype(forest.input_dtype)
    y, weight = rng.normal(size=(n_rows, 1)), rng.integers(0, 4, n_rows).astype(float)
    weight[0] += 1
    problem = Problem(forest, LocalRows(route(forest, X), y, weight), SquaredError(), NodeCost())
    return blocks(problem, joint=True)[0]


def columns_of(parent, leaves):
    """Return which rows pass which nodes, (n_rows, n_nodes), walking up from every leaf."""
    passes = np.zeros((leaves.shape[1], len(parent)))
    for i in range(leaves.shape[1]):
        for v in leaves[:, i]:
            while v != -1:
                passes[i, v] = 1.0
                v = parent[v]
    return passes


def violation(passes, weight, rest, w, penalty):
    """Return by how much the conditions of a minimum are missed: −gradient = penalty · sign, or within ±penalty."""
    neg_gradient = passes.T @ (weight * rest)
    miss = np.where(w != 0, np.abs(neg_gradient - penalty * np.sign(w)), np.abs(neg_gradient) - penalty)
    return max(miss.max(), abs(weight @ rest))


def learn(solver, problem):
    whole = blocks(problem, solver.joint)
    return list(solver.learn(whole, problem))


def ways_of(model, X):
    """Return which rows pass which nodes, from scikit-learn's own record of ways; trees in preorder."""
    trees = np.ravel(getattr(model, "estimators_", [model]))
    return np.hstack([tree.decision_path(X.astype(np.float32)).toarray() for tree in trees])


@given(
    rng=generators,
    n_trees=st.integers(1, 4),
    share=st.sampled_from([1.0, 0.7, 0.3, 0.1, 0.01]),
    informed=st.booleans(),
)
def test_the_fit_is_that_of_scikit_learns_lasso(rng, n_trees, share, informed):
    block = random_block(rng, n_trees)
    prior = 2.0 ** rng.integers(-1, 2, len(block.parent)) if informed else block.prior
    # A lasso with one penalty for weights prior · w, over columns divided by the prior.
    passes, weight, y = columns_of(block.parent, block.leaves) / prior, block.weight, block.targets[0]
    penalty = share * max(np.abs(passes.T @ (weight * (y - weight @ y))).max(), 1e-3)
    w, b, *_ = kernels.fit_rule_lasso(
        block.parent, block.leaves, weight, y, penalty, prior, np.zeros(len(block.parent)), 1e-12, 10_000
    )
    w = w * prior
    oracle = Lasso(alpha=penalty, tol=1e-13, max_iter=1_000_000).fit(passes, y, sample_weight=weight)

    def objective(w, b):
        return 0.5 * weight @ (b + passes @ w - y) ** 2 + penalty * np.abs(w).sum()

    assert objective(w, b) == pytest.approx(objective(oracle.coef_, oracle.intercept_), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(b + passes @ w, oracle.predict(passes), atol=1e-5)


@given(rng=generators, n_trees=st.integers(1, 3), power=st.integers(0, 9), ties=st.booleans())
def test_the_conditions_of_a_minimum_hold_for_rows_of_any_weight_and_for_ties(rng, n_trees, power, ties):
    block = random_block(rng, n_trees)
    passes, y = columns_of(block.parent, block.leaves), block.targets[0]
    if ties:
        y = np.round(y)
    weight = 10.0 ** -rng.integers(0, power + 1, len(y))
    weight /= weight.sum()
    penalty = 10.0 ** -rng.uniform(0, power / 2 + 1)
    start = rng.normal(size=len(block.parent)) * (rng.random(len(block.parent)) < 0.5)
    rows = (block.parent, block.leaves, weight, y)
    w, b, missed, sweeps = kernels.fit_rule_lasso(*rows, penalty, block.prior, start, 1e-11, 3000)
    real = violation(passes, weight, y - b - passes @ w, w, penalty)
    assert real == pytest.approx(missed, abs=1e-13)
    assert missed <= 1e-11 or sweeps == 3000
    if n_trees == 1:
        assert (real <= 1e-14, sweeps) == (True, 1)  # one tree needs no iterations
    assert (w[block.parent == -1] == 0).all()


@pytest.mark.parametrize("joint", [True, False])
def test_the_conditions_of_a_minimum_hold_on_a_real_tree(joint):
    X, y = DIABETES
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    learned = learn(RuleLasso(joint=joint), problem_of(tree, X, y, weight))
    assert len(learned) == 40
    share, largest = weight / weight.sum(), learned[0].penalty
    for weights in learned:
        w = weights.node[0]
        rest = y - weights.intercept[0, 0] - ways_of(tree, X) @ w
        assert violation(ways_of(tree, X), share, rest, w, weights.penalty) <= 1e-12 * largest
        assert weights.criticality <= 1e-12


def test_criticality_says_how_far_a_descent_got():
    X, y = DIABETES
    forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    ways, largest = ways_of(forest, X), learn(RuleLasso(penalties=1), problem_of(forest, X, y))[0].penalty
    for max_sweeps, reached in [(1, False), (2000, True)]:
        solver = RuleLasso(penalties=10, smallest=0.01, tolerance=1e-9, max_sweeps=max_sweeps)
        learned = learn(solver, problem_of(forest, X, y))
        assert (max(weights.criticality for weights in learned) <= 1e-9) is reached
        for weights in learned:
            rest = y - weights.intercept[0, 0] - ways @ weights.node[0]
            real = violation(ways, np.full(len(y), 1 / len(y)), rest, weights.node[0], weights.penalty)
            assert weights.criticality == pytest.approx(max(real, 0) / largest, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(random_state=0),
        RandomForestRegressor(7, random_state=0),
        GradientBoostingRegressor(random_state=0),
    ],
)
def test_the_native_regressor_of_a_point_predicts_the_sum_of_the_rules(model):
    X, y = DIABETES
    model.fit(X[:200], y[:200])
    problem = problem_of(model, X[:200], y[:200])
    start = model.init_.constant_[0, 0] if hasattr(model, "init_") else 0.0
    for weights in learn(RuleLasso(penalties=5, smallest=0.02), problem):
        value = values_of(problem.forest, weights, joint=True)
        small = adapt(model).write(sc.Decision(keep_of(problem.forest, weights.support), value))
        score = weights.intercept[0, 0] + ways_of(model, X) @ weights.node[0]
        np.testing.assert_allclose(small.predict(X), start + score, rtol=1e-9)


def test_trees_on_top_of_another_model_learn_what_it_leaves_over():
    X, y = DIABETES
    model = GradientBoostingRegressor(n_estimators=2, init=LinearRegression(), random_state=0).fit(X, y)
    path = sc.prune_path(model, X, y, solver=RuleLasso(penalties=3, smallest=0.1, tolerance=1e-9))
    start, ways = model.init_.predict(X), ways_of(model, X)
    for point in range(1, len(path)):
        lasso = Lasso(alpha=path.table["penalty"][point], tol=1e-10, max_iter=100_000).fit(ways, y - start)
        np.testing.assert_allclose(path[point].to_model().predict(X), start + lasso.predict(ways), rtol=1e-5)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_the_native_classifier_of_a_point_has_the_probabilities_halfway_up_the_sums(load):
    X, y = load(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    problem = problem_of(tree, X[::2], y[::2])
    for weights in learn(RuleLasso(penalties=6), problem):
        value = values_of(problem.forest, weights, joint=True)
        small = adapt(tree).write(sc.Decision(keep_of(problem.forest, weights.support), value))
        scores = weights.intercept[:, 0] + ways_of(tree, X) @ weights.node.T
        proba = small.predict_proba(X)
        np.testing.assert_allclose(proba[:, 1:] if len(tree.classes_) == 2 else proba, (1 + scores) / 2, atol=1e-12)


def test_a_point_of_the_path_is_what_was_learned():
    X, y = DIABETES
    forest = RandomForestRegressor(5, max_depth=5, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=RuleLasso(penalties=6, values="free"))
    for weights in learn(RuleLasso(penalties=6, values="free"), problem_of(forest, X, y)):
        point = int(np.flatnonzero(path.table["penalty"] == weights.penalty)[0])
        score = weights.intercept[0, 0] + ways_of(forest, X) @ weights.node[0]
        np.testing.assert_allclose(path[point].to_model().predict(X), score, rtol=1e-9)
        assert path.table["risk"][point] == pytest.approx(np.mean((score - y) ** 2))
        assert path.table["criticality"][point] == weights.criticality <= 1e-6


def test_a_kept_split_has_a_rule_below_it():
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    problem = problem_of(tree, X, y)
    for weights in learn(RuleLasso(penalties=8), problem):
        keep = keep_of(problem.forest, weights.support)
        assert keep[weights.support].all()
        for v in np.flatnonzero(keep & problem.forest.is_split):
            assert keep[v + 1] == weights.support[v + 1 : problem.forest.end[v]].any()


@pytest.mark.parametrize("joint", [True, False])
def test_at_the_largest_penalty_every_tree_is_its_root(joint):
    X, y = DIABETES
    forest = RandomForestRegressor(6, max_depth=6, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=RuleLasso(penalties=3, joint=joint))
    assert path.table["n_nodes"][-1] == 6
    np.testing.assert_allclose(path[len(path) - 1].to_model().predict(X[:5]), y.mean())
    below = (0.999 * np.nanmax(path.table["penalty"]),)
    assert sc.prune_path(forest, X, y, solver=RuleLasso(penalties=below, joint=joint)).table["n_nodes"][-1] > 6


def test_where_nothing_is_to_be_learned_every_point_is_a_root():
    X, y = DIABETES
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    path = sc.prune_path(tree, X, np.full(len(y), 0.1), solver=RuleLasso(penalties=3))
    assert path.table["n_nodes"][1:].tolist() == [1, 1, 1]
    assert path[1].to_model().predict(X[:1])[0] == pytest.approx(0.1)


def test_rows_counted_twice_are_rows_given_twice():
    X, y = DIABETES
    forest = RandomForestRegressor(4, max_depth=5, random_state=0).fit(X, y)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    solver = RuleLasso(penalties=5, values="free", tolerance=1e-9, max_sweeps=5000)
    weighted = sc.prune_path(forest, X, y, sample_weight=weight, solver=solver)
    repeated = sc.prune_path(forest, np.repeat(X, weight, axis=0), np.repeat(y, weight), solver=solver)
    np.testing.assert_allclose(weighted.table["penalty"], repeated.table["penalty"])
    np.testing.assert_allclose(weighted.table["risk"], repeated.table["risk"], rtol=1e-6)


def test_one_tree_is_the_same_problem_alone_and_jointly():
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    alone, joint = (sc.prune_path(tree, X, y, solver=RuleLasso(penalties=6, joint=joint)) for joint in (False, True))
    assert np.array_equal(alone.table["n_nodes"], joint.table["n_nodes"])
    np.testing.assert_allclose(alone.table["risk"], joint.table["risk"], rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("tree classifier, several targets", {}, "one target, but this model has several"),
        ("tree regressor, several targets", {}, "one target, but this model has several"),
        ("gradient boosting regressor", {"joint": False}, "joint=True"),
        ("gradient boosting classifier", {}, "targets or labels"),
        ("adaboost regressor", {}, "targets or labels"),
    ],
)
def test_unsupported_models_are_refused_with_the_reason(name, settings, reason):
    c = case(name)
    with pytest.raises(ValueError, match=f"RuleLasso cannot prune this: .*{reason}"):
        sc.prune_path(c.model, c.X, c.y, solver=RuleLasso(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"penalties": 0},
        {"penalties": ()},
        {"penalties": (0.1, -1.0)},
        {"smallest": 0.0},
        {"smallest": 1.5},
        {"tolerance": 0.0},
        {"tolerance": float("nan")},
        {"max_sweeps": 0},
    ],
)
def test_invalid_settings_are_refused(settings):
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=name) as error:
        RuleLasso(**settings)
    assert str(value) in str(error.value)
