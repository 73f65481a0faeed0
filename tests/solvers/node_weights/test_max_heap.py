"""Max-heap pruning: what is learned, how it is written back, and how stable it is."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case
from tests.strategies import generators

import secateur as sc
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.path import Path
from secateur.problem import Problem
from secateur.solvers import MaxHeap
from secateur.solvers.node_weights._weights import blocks, keep_of, values_of

DIABETES = load_diabetes(return_X_y=True)


def problem_of(model, X, y, sample_weight=None):
    adapter = adapt(model)
    sample = read_sample(adapter, X, y, sample_weight)
    return Problem(adapter.forest, sample, default_loss(adapter.forest), NodeCost())


def learn(solver, problem):
    """Return what the solver learns at each of its penalties."""
    whole = blocks(problem, solver.joint)
    return list(solver.learn(whole, solver.decreasing_penalties(whole), problem))


def score_by_hand(model, X, weights, k):
    """Return intercept plus weights on the way, from scikit-learn's own record of ways; trees in preorder."""
    trees = np.ravel(getattr(model, "estimators_", [model]))
    ways = np.hstack([tree.decision_path(X.astype(np.float32)).toarray() for tree in trees])
    return weights.intercept[k, 0] + ways @ weights.node[k]


def test_a_regression_tree_predicts_the_weights_on_the_way():
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X[:200], y[:200])
    problem = problem_of(tree, X[:200], y[:200])
    for weights in learn(MaxHeap(penalties=6), problem):
        keep = keep_of(problem.forest, weights.support)
        small = adapt(tree).write(sc.Decision(keep, values_of(problem.forest, weights, joint=False)))
        np.testing.assert_allclose(small.predict(X), score_by_hand(tree, X, weights, 0), rtol=1e-12)


@pytest.mark.parametrize("model", [RandomForestRegressor(7, random_state=0), GradientBoostingRegressor(random_state=0)])
def test_trees_learned_together_predict_the_weights_on_all_ways(model):
    X, y = DIABETES
    model.fit(X[:200], y[:200])
    solver = MaxHeap(penalties=4, smallest=0.02, tolerance=1e-4, joint=True)
    problem = problem_of(model, X[:200], y[:200])
    start = model.init_.constant_[0, 0] if hasattr(model, "init_") else 0.0
    for weights in learn(solver, problem):
        value = values_of(problem.forest, weights, joint=True)
        small = adapt(model).write(sc.Decision(keep_of(problem.forest, weights.support), value))
        np.testing.assert_allclose(small.predict(X), start + score_by_hand(model, X, weights, 0), rtol=1e-9)


def test_a_classifier_has_the_probability_halfway_up_its_score():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    problem = problem_of(tree, X[:300], y[:300])
    for weights in learn(MaxHeap(penalties=6), problem):
        value = values_of(problem.forest, weights, joint=False)
        small = adapt(tree).write(sc.Decision(keep_of(problem.forest, weights.support), value))
        score = score_by_hand(tree, X, weights, 0)
        np.testing.assert_allclose(small.predict_proba(X)[:, 1], np.clip((1 + score) / 2, 0, 1), atol=1e-12)
        assert np.array_equal(small.predict(X)[score != 0], (score > 0)[score != 0])


def test_more_classes_share_the_union_of_their_shapes():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    problem = problem_of(tree, X, y)
    seen = set()
    for weights in learn(MaxHeap(penalties=8), problem):
        shapes = weights.node != 0
        assert np.array_equal(weights.support, shapes.any(axis=0))
        seen.add(len({tuple(shape) for shape in shapes}))
        value = values_of(problem.forest, weights, joint=False)
        small = adapt(tree).write(sc.Decision(keep_of(problem.forest, weights.support), value))
        scores = np.column_stack([score_by_hand(tree, X, weights, k) for k in range(3)])
        wanted = np.maximum((1 + scores) / 2, 0)
        np.testing.assert_allclose(small.predict_proba(X), wanted / wanted.sum(axis=1, keepdims=True), atol=1e-12)
    assert max(seen) > 1  # the classes do differ


def test_every_point_is_critical_and_the_last_is_empty():
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    path = sc.prune_path(tree, X, y, solver=MaxHeap())
    assert len(path) == 41
    assert path.table["criticality"].max() <= 1e-6
    assert path.table["n_nodes"][-1] == 1
    assert path[len(path) - 1].to_model().predict(X[:1])[0] == pytest.approx(y.mean())


def test_the_largest_penalty_is_the_smallest_that_empties_the_tree():
    X, y = DIABETES
    tree = DecisionTreeRegressor(max_depth=6, random_state=0).fit(X, y)
    largest = np.nanmax(sc.prune_path(tree, X, y, solver=MaxHeap(penalties=2)).table["penalty"])
    sizes = [
        sc.prune_path(tree, X, y, solver=MaxHeap(penalties=(share * largest,))).table["n_nodes"][1]
        for share in (1.001, 0.99)
    ]
    assert sizes[0] == 1 < sizes[1]


def test_rows_counted_twice_are_rows_given_twice():
    X, y = DIABETES
    tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = sc.prune_path(tree, X, y, sample_weight=weight, solver=MaxHeap(penalties=5))
    repeated = sc.prune_path(tree, np.repeat(X, weight, axis=0), np.repeat(y, weight), solver=MaxHeap(penalties=5))
    for a, b in zip(weighted.values, repeated.values, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)
    np.testing.assert_allclose(weighted.table["risk"], repeated.table["risk"], rtol=1e-6)


def test_one_tree_is_the_same_problem_alone_and_jointly():
    X, y = DIABETES
    tree = DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y)
    alone, joint = (sc.prune_path(tree, X, y, solver=MaxHeap(penalties=6, joint=joint)) for joint in (False, True))
    assert np.array_equal(alone.table["n_nodes"], joint.table["n_nodes"])
    np.testing.assert_allclose(alone.table["risk"], joint.table["risk"], rtol=1e-6)


def test_original_values_can_be_kept():
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    learned, mean = (sc.prune_path(tree, X, y, solver=MaxHeap(penalties=6, values=v)) for v in ("learned", "mean"))
    assert np.array_equal(learned.masks.bits, mean.masks.bits)
    point = mean[3]
    here = point.to_model().apply(X.astype(np.float32))
    for leaf in np.unique(here):
        np.testing.assert_allclose(point.to_model().predict(X[here == leaf]), y[here == leaf].mean())


def never_grows_downwards(forest, support):
    inner = forest.parent != -1
    return bool((support[forest.parent[inner]] >= support[inner]).all())


@given(rng=generators)
def test_support_over_subsamples_and_penalties_is_a_tree(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    solver = MaxHeap(penalties=5, subsamples=4, tolerance=1e-4, seed=int(rng.integers(100)))
    problem = problem_of(tree, X, y)
    counts, _ = solver.count_support(problem, np.geomspace(0.2, 0.002, 5))
    assert all(never_grows_downwards(problem.forest, count) for count in counts)  # proposition 4.1
    assert never_grows_downwards(problem.forest, counts.max(axis=0))  # proposition 4.2
    path = solver.path(problem)
    assert never_grows_downwards(path.forest, path.support)
    assert 0 <= path.support.min() <= path.support.max() <= 1
    for least in np.unique(path.support[path.support > 0]):
        shape = keep_of(path.forest, path.support >= least)
        assert sc.subforest(path.forest, sc.Decision(shape)).n_trees == 1


def test_stable_shapes_get_their_weights_learned_again(tmp_path):
    X, y = DIABETES
    tree = DecisionTreeRegressor(random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(tree, X[::2], y[::2], solver=MaxHeap(penalties=10, subsamples=10, thresholds=3))
    assert len(path) == 1 + 3 * 10
    assert path.table["criticality"].max() <= 1e-6
    for point in range(1, len(path)):
        keep = path.masks.keep(point)
        least = path.support[keep & (path.support > 0)].min()
        assert keep.sum() <= keep_of(path.forest, path.support >= least).sum()
    again = Path.load(path.save(tmp_path / "path.npz"))
    assert np.array_equal(again.support, path.support)
    chosen = path.evaluate(X[1::2], y[1::2]).select()
    assert chosen.row["loss"] < path.evaluate(X[1::2], y[1::2]).table["loss"][0]


def test_forests_are_learned_tree_by_tree_or_together():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(X[::2], y[::2])
    for joint in (False, True):
        solver = MaxHeap(penalties=8, smallest=0.02, tolerance=1e-4, joint=joint)
        chosen = sc.prune_path(forest, X[::2], y[::2], solver=solver).evaluate(X[1::2], y[1::2]).select()
        small = chosen.to_model()
        assert type(small) is RandomForestClassifier
        assert np.array_equal(small.predict_proba(X), chosen.predict_proba(X))
        assert small.score(X[1::2], y[1::2]) > 0.9


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("tree classifier, several targets", {}, "one target, but this model has several"),
        ("tree regressor, several targets", {}, "one target, but this model has several"),
        ("gradient boosting regressor", {}, "joint=True"),
        ("gradient boosting classifier", {"joint": True}, "targets or labels"),
        ("adaboost classifier", {}, "targets or labels"),
    ],
)
def test_unsupported_models_are_refused_with_the_reason(name, settings, reason):
    c = case(name)
    with pytest.raises(ValueError, match=f"MaxHeap cannot prune this: .*{reason}"):
        sc.prune_path(c.model, c.X, c.y, solver=MaxHeap(**settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"penalties": 0},
        {"penalties": ()},
        {"penalties": (0.1, -1.0)},
        {"penalties": (float("nan"),)},
        {"penalties": "many"},
        {"values": "median"},
        {"smallest": 0.0},
        {"sample_fraction": 1.5},
        {"stable_smallest": 2.0},
        {"growth": 1.0},
        {"tolerance": 0.0},
        {"memory": 0},
        {"max_iterations": 0},
        {"subsamples": -1},
        {"thresholds": 0},
    ],
)
def test_invalid_settings_are_refused(settings):
    name, value = next(iter(settings.items()))
    with pytest.raises(ValueError, match=name) as error:
        MaxHeap(**settings)
    assert str(value) in str(error.value)
