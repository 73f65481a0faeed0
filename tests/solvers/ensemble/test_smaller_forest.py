"""Large models: forests cut to what a budget could use, packed states, used-up budgets; against brute force."""

import numpy as np
import pytest
from hypothesis import given
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from tests.strategies import forests, generators, random_rows

import secateur as sc
from secateur import Decision, kernels, subforest
from secateur.api import prune_point
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.forest.routing import route
from secateur.kernels.ensemble.projection import project_on_large_simplex
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.path.build import Point
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble import _smaller_forest, mean_state
from secateur.solvers.ensemble._smaller_forest import smaller_forest
from secateur.solvers.ensemble.additive_model import additive


@pytest.fixture
def cuts_all(monkeypatch):
    """Cut forests of any size."""
    monkeypatch.setattr(_smaller_forest, "_LARGE", 0)


def problem_of(model, X, y):
    adapter = adapt(model)
    return Problem(adapter.forest, read_sample(adapter, X, y), default_loss(adapter.forest), NodeCost())


@given(forests(), generators)
def test_the_spread_is_that_of_the_rows_at_each_node(forest, rng):
    X, target = random_rows(rng, 30, forest.n_features), rng.normal(size=(30, 3))
    leaves, weight = route(forest, X), rng.integers(1, 4, 30).astype(float)
    found = kernels.target_spread(leaves, forest.tree_start, forest.right, weight, target)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    for node in range(forest.n_nodes):
        leaf = forest.tree_start[tree[node]] + leaves[tree[node]].astype(int)
        here = (leaf >= node) & (leaf < forest.end[node])
        expected = 0.0
        if here.any():
            away = target[here] - np.average(target[here], axis=0, weights=weight[here])
            expected = (weight[here] @ away**2).sum()
        assert found[node] == pytest.approx(expected, abs=1e-9)


@pytest.mark.usefixtures("cuts_all")
def test_a_smaller_forest_has_the_splits_with_the_largest_spread_and_the_same_rows():
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    model = RandomForestRegressor(20, random_state=0).fit(X, y)
    problem = problem_of(model, X, y)
    part = smaller_forest(problem, 50)
    assert 700 <= part.problem.forest.n_nodes <= 820
    # Rows reach the same leaves as if they were routed through the smaller forest.
    marked = np.zeros(problem.forest.n_nodes, bool)
    marked[part.nodes] = True
    cut = subforest(problem.forest, Decision(marked))
    assert np.array_equal(part.problem.sample.leaves, route(cut, problem.sample.rows))
    others = read_sample(adapt(model), X[:50] + 0.1, y[:50])
    assert np.array_equal(part.route(others).leaves, route(cut, others.rows))
    # A pruning of the smaller forest is the same pruning of the whole one.
    keep = cut.depth <= 1
    restored = part.restored(Point(1.0, keep)).keep
    assert np.array_equal(restored, problem.forest.depth <= 1)
    assert smaller_forest(problem, 1000) is None
    assert smaller_forest(problem, None) is None


@pytest.mark.usefixtures("cuts_all")
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_a_search_in_a_smaller_forest_finds_prunings_as_good(kind, monkeypatch):
    if kind == "numbers":
        X, y = make_friedman1(1500, noise=1.0, random_state=0)
        model = RandomForestRegressor(30, random_state=0).fit(X[:1000], y[:1000])
    else:
        X, y = load_digits(return_X_y=True)
        model = RandomForestClassifier(60, random_state=0).fit(X[:1000], y[:1000])
    given = {"validation": (X[1000:], y[1000:]), "max_nodes": 300}
    cut = prune_point(model, X[:1000], y[:1000], **given)
    monkeypatch.setattr(_smaller_forest, "_LARGE", 10**12)
    whole = prune_point(model, X[:1000], y[:1000], **given)
    assert cut.row["loss"] <= 1.05 * whole.row["loss"]
    assert cut.row["n_nodes"] <= 300
    # The point's predictions are those of the native model.
    native = cut.to_model()
    if kind == "numbers":
        assert np.array_equal(native.predict(X), cut.predict(X))
    else:
        assert np.array_equal(native.predict_proba(X), cut.predict_proba(X))
    assert sc.as_forest(native).n_nodes == cut.row["n_nodes"]


@given(rng=generators)
def test_the_projection_of_many_entries_is_the_nearest_point_of_the_simplex(rng):
    z = rng.normal(size=int(rng.integers(1, 300))) * float(rng.choice([0.01, 1.0, 100.0]))
    total = float(rng.random()) + 0.01
    found = z.copy()
    project_on_large_simplex(found, 0, len(z), total)
    # By sorting: the step is that for which the positive entries sum to the total.
    high = np.sort(z)[::-1]
    steps = (np.cumsum(high) - total) / np.arange(1, len(z) + 1)
    step = steps[np.flatnonzero(high > steps)[-1]]
    np.testing.assert_allclose(found, np.maximum(z - step, 0.0), rtol=0, atol=1e-11 * max(1.0, np.abs(z).max()))


def many_classes():
    X, y = make_classification(1200, 20, n_informative=12, n_classes=20, n_clusters_per_class=1, random_state=0)
    return RandomForestClassifier(3, random_state=0).fit(X, y), X, y


def test_a_packed_state_is_the_state_again(monkeypatch):
    monkeypatch.setattr(mean_state, "_LARGE", 0)
    model, X, y = many_classes()
    problem = problem_of(model, X, y)
    descent = BlockDescent().descent(additive(problem), problem, "refit", 5.0)
    for penalty in descent.penalties()[:30]:
        descent.step(penalty)
    assert descent.used().any()
    before = descent.state
    assert isinstance(before.copy(), mean_state.PackedMeanState)
    descent.state = before.copy()
    assert descent.state is not before
    in_use = before.status > 0
    assert np.array_equal(descent.state.status, before.status)
    assert np.array_equal(descent.decide(descent.state)[1], descent.decide(before)[1])
    assert descent.size(before.copy()) == np.count_nonzero(in_use)
    np.testing.assert_allclose(descent.raw(descent.state), descent.raw(before), rtol=0, atol=1e-12)


def test_few_trees_are_trimmed_to_the_budget():
    model, X, y = many_classes()
    problem = problem_of(model, X, y)
    descent = BlockDescent().descent(additive(problem), problem, "keep", 0.0)
    descent.start_full()
    n_nodes = descent.size(descent.state)
    for budget in (n_nodes - 1, n_nodes // 2, 41):
        descent.trim(budget)
        assert budget - 1 <= descent.size(descent.state) <= budget
        keep, _ = descent.decide(descent.state)
        assert subforest(descent.ensemble.forest, Decision(keep)).n_nodes == descent.size(descent.state)


def test_a_budget_is_used_up_below_the_smallest_penalty():
    X, y = make_friedman1(1500, noise=1.0, random_state=0)
    model = RandomForestRegressor(30, random_state=0).fit(X[:1000], y[:1000])
    solver = BlockDescent(smallest=1e-3, penalties=10)
    found = prune_point(model, X[:1000], y[:1000], validation=(X[1000:], y[1000:]), solver=solver, max_nodes=2000)
    assert found.row["n_nodes"] >= 1900
    assert found.row["penalty"] < 1e-3 * y[:1000].var()
