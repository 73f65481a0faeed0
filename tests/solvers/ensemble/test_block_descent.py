"""Block descent: each update against brute force, the whole against enumeration, the result against the library."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor
from tests.cases import case
from tests.strategies import all_prunings, generators, random_forest, random_rows

import secateur as sc
from secateur import kernels
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InterruptedWarning
from secateur.forest.routing import route
from secateur.forest.subforest import kept_decision
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble import _descent as descent
from secateur.solvers.ensemble._descent import Descent
from secateur.solvers.ensemble.additive_model import additive, decide, loss_of, renew_parabolas

DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


def random_problem(rng, n_trees, n_rows=25, max_splits=3):
    forest = random_forest(rng, n_trees=n_trees, max_splits=max_splits, aggregation="sum")
    X = random_rows(rng, n_rows, forest.n_features)
    y = 0.5 * rng.normal(size=(n_rows, 1)) + sum(forest.value[forest.root])
    weight = rng.integers(1, 4, n_rows).astype(float)
    return Problem(forest, LocalRows(route(forest, X), y, weight), default_loss(forest), NodeCost())


def problem_of(model, X, y, sample_weight=None):
    adapter = adapt(model)
    sample = read_sample(adapter, X, y, sample_weight)
    return Problem(adapter.forest, sample, default_loss(adapter.forest), NodeCost())


def descent_of(problem, ridge=0.0, **settings):
    return Descent(
        additive(problem), problem, BlockDescent(**settings).settings(settings.get("values", "refit"), ridge)
    )


@given(rng=generators, penalty=st.sampled_from([0.3, 0.03, 0.003, 0.0]), ridge=st.sampled_from([0.5, 5.0]))
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_one_update_is_the_best_of_all_subtrees(values, rng, penalty, ridge):
    problem = random_problem(rng, 1, max_splits=5)
    descent = descent_of(problem, ridge if values == "refit" else 0.0, values=values, max_sweeps=1)
    ensemble, before = descent.ensemble, descent.state.copy()
    wanted = before.neg_gradient[0] / ensemble.weight  # the residual the update sees
    leaf = problem.sample.leaves[0].astype(int)
    costs = [ensemble.weight @ wanted**2]
    for kept in all_prunings(problem.forest, 0):
        ends = [v for v in kept if problem.forest.right[v] == -1 or v + 1 not in kept]
        cost = penalty * len(kept)
        for v in ends:
            here = (leaf >= v) & (leaf < problem.forest.end[v])
            w = ensemble.weight[here]
            value = w @ wanted[here] / (w.sum() + descent.ridge) if values == "refit" else ensemble.original[v, 0]
            cost += w @ (wanted[here] - value) ** 2 + descent.ridge * value**2
        costs.append(cost)
    descent.descend(penalty)
    state = descent.state
    added = state.contribution[leaf, 0]
    found = ensemble.weight @ (wanted - added) ** 2 + penalty * np.count_nonzero(state.status)
    if values == "refit":
        found += descent.ridge * (state.contribution[state.status == 2] ** 2).sum()
    assert found == pytest.approx(min(costs), abs=1e-10)


MODELS = {
    "random forest regressor": (RandomForestRegressor(10, random_state=0), DIABETES),
    "extra trees regressor": (ExtraTreesRegressor(10, random_state=0), DIABETES),
    "bagging regressor": (BaggingRegressor(DecisionTreeRegressor(), n_estimators=8, random_state=0), DIABETES),
    "one tree": (DecisionTreeRegressor(random_state=0), DIABETES),
    "boosted regressor": (GradientBoostingRegressor(n_estimators=30, random_state=0), DIABETES),
    "histogram regressor": (HistGradientBoostingRegressor(max_iter=20), DIABETES),
    "random forest classifier": (RandomForestClassifier(10, random_state=0), IRIS),
    "extra trees classifier": (ExtraTreesClassifier(10, random_state=0), CANCER),
    "boosted classifier": (GradientBoostingClassifier(n_estimators=20, random_state=0), CANCER),
    "boosted classifier, exponential": (
        GradientBoostingClassifier(loss="exponential", n_estimators=20, random_state=0),
        CANCER,
    ),
    "boosted classifier, three classes": (GradientBoostingClassifier(n_estimators=10, random_state=0), IRIS),
    "histogram classifier": (HistGradientBoostingClassifier(max_iter=20), CANCER),
    "histogram classifier, three classes": (HistGradientBoostingClassifier(max_iter=10), IRIS),
}
models = pytest.mark.parametrize("name", list(MODELS))
settings = pytest.mark.parametrize(
    "settings",
    [
        {"values": "refit"},
        {"values": "keep"},
        {"granularity": "layer", "values": "keep"},
        {"granularity": "layer", "values": "refit"},
    ],
    ids=str,
)


def fitted(name):
    model, (X, y) = MODELS[name]
    return model.fit(X[::2], y[::2]), X, y


@models
@settings
def test_the_predictions_of_the_state_are_those_of_the_native_model(name, settings):
    model, X, y = fitted(name)
    weight = np.random.default_rng(0).integers(0, 3, len(y[::2])).astype(float)
    problem = problem_of(model, X[::2], y[::2], weight)
    rows = X[::2][weight > 0]
    descent = descent_of(problem, 2.0, penalties=6, smallest=1e-4, **settings)
    sizes = []
    for _, state in descent.run():
        keep, value = decide(descent.ensemble, state)
        native = adapt(adapt(model).write(kept_decision(problem.forest, keep, value)))
        score = descent.ensemble.slope * read_sample(native, rows, y[::2][weight > 0]).scores(native.forest)
        half_gradient = 0.5 * descent.ensemble.objective.parabolas(score, descent.ensemble.target)[0]
        np.testing.assert_allclose(
            state.neg_gradient.T / descent.ensemble.weight[:, None], half_gradient, atol=1e-10 * np.abs(y).max()
        )
        sizes.append(keep.sum())
    assert len(set(sizes)) > 2


@models
@settings
def test_every_round_lowers_the_true_objective_by_what_it_says(name, settings):
    model, X, y = fitted(name)
    descent = descent_of(problem_of(model, X[::2], y[::2]), 2.0, max_sweeps=1, **settings)
    for node_weight in (0.1, 0.01, 0.001, 0.001):
        penalty = node_weight * descent.scale
        before = descent.objective(penalty)
        gain = descent.descend(penalty)
        after = descent.objective(penalty)
        assert after <= before + 1e-12 * descent.scale
        assert before - after == pytest.approx(gain, abs=1e-9 * descent.scale)


def depth_objective(ensemble, problem, depths, penalty):
    """Return ForestPrune's objective (1) for one depth per tree, -1 for a dropped tree, the intercept solved for."""
    forest = problem.forest
    total, price = np.zeros(len(ensemble.weight)), 0
    for tree, depth in enumerate(depths):
        if depth < 0:
            continue
        start = forest.tree_start[tree]
        shown = (forest.depth <= depth)[start : forest.tree_start[tree + 1]]
        price += shown.sum()
        for i, leaf in enumerate(problem.sample.leaves[tree].astype(int)):
            v = start + leaf
            while forest.depth[v] > depth:
                v = forest.parent[v]
            total[i] += ensemble.original[v, 0]
    rest = ensemble.target[:, 0] - total
    rest = rest - ensemble.weight @ rest / ensemble.weight.sum()
    return ensemble.weight @ rest**2 + penalty * price


def tree_depths(problem):
    forest = problem.forest
    return [int(forest.depth[a:b].max()) for a, b in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True)]


def three_quiet_updates(ensemble, problem, penalty):
    """Return the objective where the authors' descent stops: after three updates in a row that change little."""
    deepest = tree_depths(problem)
    depths = [-1] * len(deepest)
    history = [depth_objective(ensemble, problem, depths, penalty)]
    for update in range(1000):
        tree = update % len(depths)
        options = [[*depths[:tree], d, *depths[tree + 1 :]] for d in range(-1, deepest[tree] + 1)]
        values = [depth_objective(ensemble, problem, option, penalty) for option in options]
        depths = options[int(np.argmin(values))]
        history.append(min(values))
        if len(history) > 3 and max(abs(np.diff(history[-4:]))) < 1e-6:
            break
    return history[-1]


def test_layers_are_optimal_nearly_always_and_never_worse_than_the_authors():
    optimal, n_cases = 0, 200
    for seed in range(n_cases):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, 4, n_rows=15)
        settings = {"granularity": "layer", "values": "keep", "local_search": 20}
        descent = descent_of(problem, **settings)
        penalty = float(rng.choice([0.003, 0.01, 0.03])) * descent.scale
        descent.descend(penalty)
        descent.search(penalty)
        found = descent.objective(penalty)
        combinations = itertools.product(*(range(-1, deepest + 1) for deepest in tree_depths(problem)))
        best = min(depth_objective(descent.ensemble, problem, depths, penalty) for depths in combinations)
        assert found >= best - 1e-9
        assert found <= three_quiet_updates(descent.ensemble, problem, penalty) + 1e-9
        optimal += found <= best + 1e-9 * max(best, 1.0)
    assert optimal >= 0.95 * n_cases


@models
def test_a_budget_is_used_up(name):
    model, X, y = fitted(name)
    budget = 100 if len(y) > 200 else 25
    path = sc.prune_path(model, X[::2], y[::2], solver=BlockDescent(max_nodes=budget, ridge=2.0))
    sizes = path.table["n_nodes"]
    assert (sizes[1:] > budget).any()
    assert min(0.98 * budget, budget - 3) <= sizes[sizes <= budget].max() <= budget


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (GradientBoostingRegressor(n_estimators=150, max_depth=4, subsample=0.3, random_state=0), DIABETES),
        (GradientBoostingClassifier(n_estimators=150, max_depth=4, subsample=0.3, random_state=0), CANCER),
    ],
    ids=["squares", "log odds"],
)
@pytest.mark.parametrize("ridge", [25.0, 200.0])
def test_trimming_many_trees_at_once_fits_nothing_twice(model, data, ridge):
    X, y = data
    descent = descent_of(problem_of(model.fit(X, y), X, y), ridge)
    penalty = 1e-6 * descent.scale
    descent.descend(penalty)
    full, largest = descent.size(descent.state), np.abs(descent.state.contribution).max()
    descent.trim(full // 2)
    assert 0.98 * (full // 2) <= descent.size(descent.state) <= full // 2
    assert descent.loss() < descent.scale
    assert np.abs(descent.state.contribution).max() <= 2 * largest
    trimmed = descent.objective(penalty)
    descent.descend(penalty, frozen=True)
    assert descent.objective(penalty) < trimmed


@pytest.mark.parametrize("granularity", ["node", "layer"])
def test_refitting_values_leaves_the_kept_nodes_as_they_are(granularity):
    model = GradientBoostingRegressor(n_estimators=20, max_depth=4, subsample=0.5, random_state=0)
    descent = descent_of(problem_of(model.fit(*DIABETES), *DIABETES), 5.0, values="refit", granularity=granularity)
    for penalty in (1e-2 * descent.scale, 1e-4 * descent.scale):
        descent.descend(penalty)
        before, loss = descent.state.status.copy(), descent.objective(0.0)
        # At this penalty other nodes would be kept.
        descent.descend(1e-3 * penalty, frozen=True)
        np.testing.assert_array_equal(descent.state.status, before)
        assert descent.objective(0.0) <= loss


@given(rng=generators, penalty=st.sampled_from([0.3, 0.03, 0.003]), ridge=st.sampled_from([0.0, 5.0]))
def test_no_best_subtree_contains_an_inactive_node(rng, penalty, ridge):
    problem = random_problem(rng, 1, max_splits=6)
    descent = descent_of(problem, ridge, values="refit", max_sweeps=1)
    forest = problem.forest
    marked = kernels.mark_active_nodes(*descent.nodes, descent.state, penalty, descent.ridge)
    assert marked[0]
    split = np.flatnonzero(forest.is_split)
    np.testing.assert_array_equal(marked[split + 1], marked[forest.right[split]])
    descent.descend(penalty)  # the best subtree, as tested against all of them
    assert not ((descent.state.status > 0) & ~marked).any()


@pytest.mark.parametrize("name", ["random forest regressor", "extra trees classifier", "extra trees regressor"])
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_active_sets_do_not_change_the_path(monkeypatch, name, values):
    model, X, y = fitted(name)
    problem = problem_of(model, X[::2], y[::2])
    found = {}
    for least in (0, 10**9):
        monkeypatch.setattr(descent, "_LARGE", least)
        run = descent_of(problem, 5.0 if values == "refit" else 0.0, values=values, penalties=25, smallest=1e-3)
        found[least] = [(state.status.copy(), state.contribution.copy()) for _, state in run.run()]
        assert run.active_set is None if least else run.active_set.marked.mean() < 1
    for (status, contribution), (other_status, other_part) in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(status, other_status)
        np.testing.assert_allclose(contribution, other_part, atol=1e-12)


@models
@pytest.mark.parametrize("polish", [None, "ridge"])
def test_the_risk_is_the_loss_of_the_native_model(name, polish):
    model, X, y = fitted(name)
    problem = problem_of(model, X, y, np.arange(len(y)) % 3)
    if polish and problem.forest.link not in ("identity", "probability"):
        reason = BlockDescent(polish=polish).unsupported(problem)
        assert "squared error" in reason
        return
    path = BlockDescent(penalties=5, smallest=1e-3, polish=polish).path(problem)
    measured = path.evaluate_sample(problem.sample, rows="the same").table["loss"]
    np.testing.assert_allclose(path.table["risk"], measured, rtol=1e-10)


@models
def test_trees_are_used_up_and_may_be_deep(name):
    model, X, y = fitted(name)
    forest = sc.as_forest(model)
    most = min(4 * (forest.n_outputs if (forest.tree_output >= 0).all() else 1), forest.n_trees)
    settings = {"ridge": 2.0, "penalties": 25}
    path = sc.prune_path(model, X[::2], y[::2], solver=BlockDescent(max_trees=most, **settings))
    trees = path.table["n_trees"][1:]
    assert trees.max() == most
    assert np.count_nonzero(trees == most) > 1  # the path goes on with them at smaller penalties
    free = sc.prune_path(model, X[::2], y[::2], solver=BlockDescent(**settings))
    few = (free.table["n_trees"] <= most) & (np.arange(len(free)) > 0)
    assert path.table["risk"][1:].min() <= free.table["risk"][few].min()
    assert sc.as_forest(path.select(max_trees=most).to_model()).n_trees <= most


def test_every_round_is_reported():
    X, y = DIABETES
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    reported = []
    solver = BlockDescent(ridge=(5.0, 50.0), penalties=6, max_sweeps=4)
    sc.prune_path(forest, X, y, solver=solver, progress=lambda *what: reported.append(what))
    done = [entry[0] for entry in reported]
    assert len(reported) > 2 * 6  # more than once per penalty
    assert done == sorted(done)
    assert {entry[1:] for entry in reported} == {(2 * 6 * 4, "pruning")}
    assert done[-1] <= 2 * 6 * 4


def test_ctrl_c_returns_what_was_found_so_far():
    X, y = DIABETES
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    solver = BlockDescent(penalties=20, max_sweeps=3)
    whole = sc.prune_path(forest, X, y, solver=solver)

    def stop(done, total, what):
        if done > 30:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning, match="points found so far"):
        path = sc.prune_path(forest, X, y, solver=solver, progress=stop)
    assert path.info.interrupted
    assert 2 < len(path) < len(whole)
    np.testing.assert_array_equal(path.table["n_nodes"][1:], whole.table["n_nodes"][-len(path) + 1 :])
    small = path[1].to_model()
    np.testing.assert_allclose(small.predict(X), whole[-len(path) + 1].to_model().predict(X), rtol=1e-12)


def test_ctrl_c_while_choosing_by_other_rows_chooses_from_what_there_is():
    X, y = DIABETES
    forest = RandomForestRegressor(10, random_state=0).fit(X[::2], y[::2])
    calls = iter(range(1000))

    def stop(done, total, what):
        if next(calls) == 20:
            raise KeyboardInterrupt

    solver = BlockDescent(penalties=20, max_sweeps=3)
    with pytest.warns(InterruptedWarning):
        small = sc.prune(forest, X[1::2], y[1::2], solver=solver, max_nodes=50, progress=stop)
    assert 1 < sc.as_forest(small).n_nodes <= 50


def test_several_ridges_make_one_path():
    X, y = DIABETES
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=BlockDescent(ridge=(5.0, 50.0), penalties=10))
    assert set(path.table["ridge"][1:]) == {5.0, 50.0}
    assert (np.diff(path.table["n_nodes"]) <= 0).all()


@pytest.mark.parametrize("name", ["adaboost classifier", "adaboost regressor", "isolation forest"])
def test_models_that_are_not_additive_are_refused(name):
    c = case(name)
    with pytest.raises(ValueError, match=r"BlockDescent cannot prune this: .*Use weakest_link"):
        sc.prune_path(c.model, c.X, c.y, solver=BlockDescent())


def test_the_loss_that_is_minimised_is_that_of_the_model():
    X, y = CANCER
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    descent = descent_of(problem_of(model, X, y), 1.0, penalties=5)
    for _, state in descent.run():
        keep, value = decide(descent.ensemble, state)
        native = adapt(model).write(kept_decision(descent.ensemble.forest, keep, value))
        probability = native.predict_proba(X)[np.arange(len(y)), y]
        assert loss_of(descent.ensemble, state) == pytest.approx(-np.log(probability).mean(), rel=1e-9)


@given(rng=generators, node_weight=st.sampled_from([0.03, 0.003]), polish=st.sampled_from(["ridge", "subset"]))
def test_depth_and_weight_of_a_tree_are_chosen_together(rng, node_weight, polish):
    problem = random_problem(rng, 1, max_splits=5)
    settings = {"granularity": "layer", "values": "keep", "joint": True, "polish": polish}
    settings["polish_penalty"] = 0.02 * problem.sample.total_weight
    descent = descent_of(problem, max_sweeps=1, **settings)
    ensemble, forest, penalty = descent.ensemble, problem.forest, node_weight * descent.scale
    wanted = descent.state.neg_gradient[0] / ensemble.weight
    costs = [ensemble.weight @ wanted**2]
    for depth in range(forest.max_depth + 1):
        ends = [walk_up(forest, int(leaf), depth) for leaf in problem.sample.leaves[0]]
        added = ensemble.original[ends, 0]
        square = ensemble.weight @ added**2
        extra = 0.02 if polish == "ridge" else 0.0
        beta = ensemble.weight @ (wanted * added) / (square + extra) if square + extra else 0.0
        cost = ensemble.weight @ (wanted - beta * added) ** 2 + penalty * (forest.depth <= depth).sum()
        costs.append(cost + (0.02 * beta**2 if polish == "ridge" else 0.02))
    descent.descend(penalty)
    state = descent.state
    left = wanted - state.contribution[problem.sample.leaves[0].astype(int), 0]
    found = ensemble.weight @ left**2 + penalty * np.count_nonzero(state.status)
    if state.status[0]:
        found += 0.02 * state.factor[0] ** 2 if polish == "ridge" else 0.02
    assert found == pytest.approx(min(costs), abs=1e-10)


def walk_up(forest, v, depth):
    while forest.depth[v] > depth:
        v = forest.parent[v]
    return v


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"granularity": "branch"}, "granularity"),
        ({"values": "median"}, "values"),
        ({"weights": "bytes"}, "weights"),
        ({"polish": "lasso"}, "polish"),
        ({"joint": True}, "joint"),
        ({"weights": "depth"}, "depth"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": ()}, "ridge"),
        ({"max_sweeps": 0}, "max_sweeps"),
        ({"local_search": -1}, "local_search"),
        ({"max_nodes": 0}, "max_nodes"),
        ({"penalties": 0}, "penalties"),
        ({"smallest": 0.0}, "smallest"),
    ],
)
def test_invalid_settings_are_refused(settings, word):
    with pytest.raises(ValueError, match=word):
        BlockDescent(**settings)


@given(rng=generators)
def test_by_depth_a_tree_costs_its_depth(rng):
    problem = random_problem(rng, 2, max_splits=6)
    descent = descent_of(problem, granularity="layer", values="keep", weights="depth")
    forest = problem.forest
    tree = np.repeat([0, 1], np.diff(forest.tree_start))
    for depths in itertools.product(*(range(deepest + 1) for deepest in tree_depths(problem))):
        kept = forest.depth <= np.array(depths)[tree]
        assert descent.prices.as_leaf[kept].sum() == sum(depths)
    assert np.array_equal(descent.prices.as_leaf, descent.prices.as_split)


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=20, monotonic_cst=[0, 0, 1, 1, 0, 0, -1, 0, 1, 0]),
        RandomForestRegressor(10, max_depth=6, monotonic_cst=[0, 0, 1, 1, 0, 0, -1, 0, 1, 0], random_state=0),
    ],
    ids=["sum", "mean"],
)
@pytest.mark.parametrize("values", ["refit", "bounded"])
def test_the_solver_alone_keeps_monotonic_constraints_in_both_directions(model, values):
    X, y = DIABETES
    problem = problem_of(model.fit(X[::2], y[::2]), X[::2], y[::2])
    path = BlockDescent(values=values, penalties=12, smallest=1e-5).path(problem)
    assert len(path) > 5
    for point in range(len(path)):
        assert sc.check_monotonic(path[point].forest).holds


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_whose_parabolas_are_too_flat_is_undone(seed, loss, monkeypatch):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    y = np.exp(4 * X[:, 0]) * rng.gamma(0.3, 1, 300) + 1e-3
    model = HistGradientBoostingRegressor(loss=loss, max_iter=30).fit(X, y)
    run = descent_of(problem_of(model, X, y), 0.0, penalties=5)
    attempts = []

    def renew(ensemble, state, attempt=0):
        attempts.append(attempt)
        return renew_parabolas(ensemble, state, attempt)

    monkeypatch.setattr(descent, "renew_parabolas", renew)
    penalty = 1e-4 * run.scale
    values = [run.objective(penalty)]
    for _ in range(10):
        run.sweep(penalty, run.open, 0, False)
        values.append(run.objective(penalty))
    assert max(attempts) > 0
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert values[-1] < 0.9 * values[0]
