"""Cost descent: each update against brute force, counts against a recount, prices against the meter, budgets met."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tests.feature_problems import price_of, rows_needs
from tests.strategies import all_prunings, generators, random_forest, random_rows

import secateur as sc
from secateur import kernels
from secateur.costs import FeatureCost
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InterruptedWarning
from secateur.forest.routing import route
from secateur.forest.subforest import kept_decision
from secateur.kernels.ensemble.arrays import empty_scratch
from secateur.kernels.ensemble.block_descent import update_tree
from secateur.kernels.feature_cost.cost_descent import price_tree
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BlockDescent, CostDescent
from secateur.solvers.ensemble import mean_state
from secateur.solvers.ensemble.additive_model import additive, decide, full_state, loss_of
from secateur.solvers.feature_cost._backward_elimination import Elimination
from secateur.solvers.feature_cost._priced_mean import PricedMean

CANCER = load_breast_cancer(return_X_y=True)
MODELS = {
    "forest": lambda: (RandomForestClassifier(8, random_state=0), *CANCER),
    "three classes": lambda: (ExtraTreesClassifier(6, max_depth=4, random_state=0), *load_iris(return_X_y=True)),
    "numbers": lambda: (RandomForestRegressor(6, max_depth=6, random_state=0), *load_diabetes(return_X_y=True)),
    "boosted numbers": lambda: (
        GradientBoostingRegressor(n_estimators=12, random_state=0),
        *load_diabetes(return_X_y=True),
    ),
    "boosted classes": lambda: (
        GradientBoostingClassifier(n_estimators=10, random_state=0),
        *load_iris(return_X_y=True),
    ),
    "boosted yes or no": lambda: (HistGradientBoostingClassifier(max_iter=10), *CANCER),
}


def fitted(name):
    model, X, y = MODELS[name]()
    return model.fit(X, y), X, y


def problem_of(model, X, y, cost, sample_weight=None):
    adapter = adapt(model)
    sample = read_sample(adapter, X, y, sample_weight)
    return Problem(adapter.forest, sample, default_loss(adapter.forest), cost)


def descent_of(problem, **settings):
    return Elimination(additive(problem), problem, CostDescent(**settings).settings)


def random_problem(rng, n_trees=3, n_rows=12):
    forest = random_forest(rng, n_trees=n_trees, max_splits=4, aggregation="sum")
    X = random_rows(rng, n_rows, forest.n_features)
    y = 0.5 * rng.normal(size=(n_rows, 1)) + sum(forest.value[forest.root])
    weight = rng.integers(1, 4, n_rows).astype(float)
    prices = rng.integers(0, 4, forest.n_features).astype(float)
    groups = {"lab": (2.0, list(range(1 + int(rng.integers(forest.n_features)))))} if rng.random() < 0.5 else None
    return Problem(forest, LocalRows(route(forest, X), y, weight), default_loss(forest), FeatureCost(prices, groups)), X


def slow_price(problem, X, trees, theta):
    """Return what prunings of trees pay when a resource that n of them need costs 1 + 2^−θ + … + n^−θ of its price."""
    forest, cost, total = problem.forest, problem.cost, 0.0
    for i, x in enumerate(X):
        wanted = [rows_needs(forest, kept, x) for kept in trees]
        resources = [(price, {k}) for k, price in enumerate(cost.prices)]
        resources += [(price, set(members)) for price, members in (cost.groups or {}).values()]
        for price, members in resources:
            n = sum(bool(met & members) for met in wanted)
            share = min(n, 1) if theta is None else sum((1.0 + j) ** -theta for j in range(n))
            total += problem.sample.weight[i] * price * share
    return total / problem.sample.weight.sum()


@pytest.mark.parametrize("values", ["refit", "keep"])
@pytest.mark.parametrize("theta", [1.0, 2.0, 4.0, None])
@given(rng=generators, penalty=st.sampled_from([0.5, 0.1, 0.02, 0.0]))
def test_one_update_is_the_best_of_all_subtrees(values, theta, rng, penalty):
    problem, X = random_problem(rng)
    forest = problem.forest
    descent = descent_of(problem, values=values, ridge=2.0, node_penalty=0.01)
    ensemble = descent.ensemble
    descent.sweep(0.05, descent.price_fraction(1.0))  # away from the start
    state = descent.now.state
    tree = int(rng.integers(forest.n_trees))
    nodes = int(forest.tree_start[tree]), int(forest.tree_start[tree + 1])
    leaf = forest.root[tree] + problem.sample.leaves[tree].astype(int)
    wanted = state.neg_gradient[0] / ensemble.weight + state.contribution[leaf, 0]
    others = [_kept(forest, other, state.status) for other in range(forest.n_trees) if other != tree]
    costs = []
    for kept in [set(), *map(set, all_prunings(forest, tree))]:
        splits = [v for v in kept if forest.right[v] != -1 and v + 1 in kept]
        predicted, extra = np.zeros(len(X)), 0.0
        if kept and not splits:
            continue  # a root alone says what the intercept can say
        for v in kept - set(splits):
            here = (leaf >= v) & (leaf < forest.end[v])
            w, original = ensemble.weight[here], ensemble.original[v, 0]
            value = original
            if values == "refit":
                value = (w @ wanted[here] + descent.ridge * original) / (w.sum() + descent.ridge)
                extra += descent.ridge * (value - original) ** 2
            predicted[here] = value
        paid = slow_price(problem, X, [*others, kept], theta) - slow_price(problem, X, others, theta)
        costs.append(ensemble.weight @ (wanted - predicted) ** 2 + extra + penalty * paid + 0.01 * len(splits))
    before = descent.objective(penalty, theta)
    best = before - _alone(descent, problem, X, tree, nodes, penalty, theta, wanted, leaf) + min(costs)
    _update(descent, tree, nodes, penalty, theta)
    assert descent.objective(penalty, theta) == pytest.approx(best, abs=1e-9)


def _kept(forest, tree, status):
    return {v for v in range(forest.tree_start[tree], forest.tree_start[tree + 1]) if status[v] > 0}


def _alone(descent, problem, X, tree, nodes, penalty, theta, wanted, leaf):
    """Return what one tree as it is adds to the objective, on the scale of the test's own costs."""
    forest, state, weight = problem.forest, descent.now.state, descent.ensemble.weight
    kept = _kept(forest, tree, state.status)
    others = [_kept(forest, other, state.status) for other in range(forest.n_trees) if other != tree]
    at_leaf = np.array([v for v in kept if state.status[v] == 2], int)
    away = state.contribution[at_leaf, 0] - descent.ensemble.original[at_leaf, 0]
    paid = slow_price(problem, X, [*others, kept], theta) - slow_price(problem, X, others, theta)
    splits = np.count_nonzero(state.status[slice(*nodes)] == 1)
    rows = weight @ (wanted - state.contribution[leaf, 0]) ** 2
    return rows + descent.ridge * (away**2).sum() + penalty * paid + 0.01 * splits


def _update(descent, tree, nodes, penalty, theta):
    """Update one tree, the way a sweep does."""
    ensemble, now, prices = descent.ensemble, descent.now, descent.prices
    pricing = kernels.Pricing(penalty, descent.settings.per_split, descent.price_fraction(theta), now.banned)
    count_needs(descent, nodes, -1)
    price_tree(*nodes, ensemble.forest.right, descent.purchases, now.counts, pricing, prices.as_split)
    scratch = empty_scratch(ensemble.trees, now.state)
    update_tree(
        tree, ensemble.rows, ensemble.trees, prices, now.state, descent.block_problem, scratch, np.empty((0, 0))
    )
    count_needs(descent, nodes, 1)


def count_needs(descent, nodes, step):
    """Add the needs of some nodes to the counts, or subtract them; return the change of the price."""
    return kernels.count_tree(*nodes, step, descent.purchases, descent.now.state.status, descent.now.counts)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_model_itself(name, weighted):
    model, X, y = fitted(name)
    weight = np.random.default_rng(0).integers(0, 3, len(X)) if weighted else None
    problem = problem_of(model, X, y, FeatureCost(), weight)
    ensemble = additive(problem)
    state = full_state(ensemble)
    some = problem.sample.weight > 0
    score = ensemble.slope * problem.sample.scores(problem.forest)[some]
    half_gradient = 0.5 * ensemble.objective.parabolas(score, ensemble.target)[0]
    np.testing.assert_allclose(state.neg_gradient.T / ensemble.weight[:, None], half_gradient, atol=1e-12)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_objective_never_rises_and_counts_are_those_of_a_recount(name):
    model, X, y = fitted(name)
    prices = np.random.default_rng(1).integers(0, 3, X.shape[1]).astype(float)
    groups = {"lab": (1.5, [0, 1]), "scan": (0.5, [2, 3])}
    problem = problem_of(model, X, y, FeatureCost(prices, groups))
    descent = descent_of(problem)
    unit = descent.scale / descent.now.spent
    for penalty, theta in itertools.product((0.01 * unit, 0.03 * unit, 0.1 * unit), (1.0, 2.0, 4.0, None)):
        for _ in range(2):
            before = descent.objective(penalty, theta)
            gain = descent.sweep(penalty, descent.price_fraction(theta))
            after = descent.objective(penalty, theta)
            assert after <= before + 1e-12 * descent.scale
            assert before - after == pytest.approx(gain, abs=1e-9 * descent.scale)
        _check_counts(descent, problem)
    members = descent.droppable()[-1]
    descent.ban(members)
    _check_counts(descent, problem)
    assert not np.isin(problem.forest.feature[descent.now.state.status == 1], members).any()


def _check_counts(descent, problem):
    """Compare counts and price with those of a fresh count, and the price with the cost of the pruned forest."""
    counts, spent = descent.now.counts.copy(), descent.now.spent
    count_needs(descent, (0, problem.forest.n_nodes), -1)
    assert not descent.now.counts.any()
    fresh = count_needs(descent, (0, problem.forest.n_nodes), 1)
    assert np.array_equal(descent.now.counts, counts)
    assert spent == pytest.approx(fresh, abs=1e-9)
    keep, *_ = descent.decide(descent.now.state, problem)
    masks = sc.path.PackedMasks(np.packbits(keep)[None], problem.forest.n_nodes)
    assert problem.costs(masks)[0] == pytest.approx(spent, abs=1e-9)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_every_point_costs_what_the_meter_says_of_the_native_model(name, values):
    model, X, y = fitted(name)
    cost = FeatureCost(np.arange(X.shape[1]) % 3 + 0.5, {"lab": (2.0, [0, 2])})
    path = sc.prune_path(model, X, y, cost=cost, solver=CostDescent(penalties=6, values=values))
    assert (np.diff(path.table["cost"]) <= 1e-9).all()
    assert "anneal" in path.table["origin"]
    assert set(path.table["origin"][1:]) <= {"anneal", "eliminate"}
    for point in np.unique(np.linspace(0, len(path) - 1, 6).astype(int)).tolist():
        native = path[point].to_model()
        assert type(native) is type(model)
        assert cost.mean_price(native, X) == pytest.approx(path.table["cost"][point], abs=1e-9)
        np.testing.assert_array_equal(native.predict(X), path[point].predict(X))


def test_the_rows_of_the_solver_are_those_of_the_native_model():
    for name in MODELS:
        model, X, y = fitted(name)
        problem = problem_of(model, X, y, FeatureCost())
        descent = descent_of(problem)
        descent.descend(0.3 * descent.scale / descent.now.spent)
        risk = loss_of(descent.ensemble, descent.now.state)
        decision = kept_decision(problem.forest, *decide(descent.ensemble, descent.now.state))
        raw = problem.sample.scores(problem.forest, decision)
        loss = (
            problem.loss
            if not descent.ensemble.objective.quadratic or not problem.forest.n_classes
            else sc.losses.Brier()
        )
        measured = np.mean(loss.rows(problem.forest, raw, problem.sample.y))
        assert risk == pytest.approx(measured, rel=1e-9)


@pytest.mark.parametrize("share", [0.03, 0.1, 0.25, 0.5, 0.8])
@pytest.mark.parametrize("name", ["forest", "boosted yes or no"])
def test_budgets_are_met_and_used_up(name, share):
    model, X, y = fitted(name)
    cost = FeatureCost(np.linspace(0.2, 1.0, X.shape[1]))
    budget = share * cost.mean_price(model, X)
    path = sc.prune_path(model, X, y, cost=cost, solver=CostDescent(max_cost=budget, penalties=8))
    met = path.table["cost"][path.table["origin"] == "budget"]
    assert len(met)
    assert (met <= budget).all()
    assert met.max() >= budget - 1.0  # the price of the dearest feature
    small = sc.prune(model, X[::2], y[::2], cost=cost, validation=(X[1::2], y[1::2]), max_cost=budget)
    assert cost.mean_price(small, X[::2]) <= budget


def test_prices_by_row_are_paid_by_row():
    model, X, y = fitted("forest")
    by_row = np.random.default_rng(0).uniform(0, 2, X.shape)
    cost = FeatureCost(row_prices=by_row, groups={"lab": (1.0, [3, 4])})
    problem = problem_of(model, X, y, cost)
    descent = descent_of(problem)
    descent.descend(0.05 * descent.scale / descent.now.spent)
    _check_counts(descent, problem)
    forest = problem.forest
    kept = {v for v in range(forest.n_nodes) if descent.now.state.status[v] > 0}
    paid = 0.0
    for i in range(0, len(X), 40):
        met = rows_needs(forest, kept, X[i].astype(np.float32))
        original = sum(by_row[i, k] for k in met) + (1.0 if met & {3, 4} else 0.0)
        bought = descent.now.counts[i] > 0
        assert original == pytest.approx(float(descent.purchases.prices[i][bought].sum()))
        paid += original
    assert paid > 0
    same = descent_of(problem_of(model, X, y, FeatureCost(row_prices=np.ones(X.shape))))
    plain = descent_of(problem_of(model, X, y, FeatureCost()))
    for one in (same, plain):
        one.descend(0.1 * one.scale / one.now.spent)
    assert np.array_equal(same.now.state.status, plain.now.state.status)


@pytest.mark.parametrize(("values", "unused"), [("free", 1.0), ("refit", 1.5)])  # one update may drop two features
def test_several_budgets_are_met_on_one_path(values, unused):
    model, X, y = fitted("forest")
    whole = FeatureCost().mean_price(model, X)
    budgets = tuple(whole * np.arange(1, 10) / 10)
    solver = CostDescent(max_cost=budgets, penalties=8, values=values)
    path = sc.prune_path(model, X, y, cost=FeatureCost(), solver=solver)
    for budget in budgets:
        within = path.table["cost"][path.table["cost"] <= budget]
        assert within.max() >= budget - unused


def test_elimination_takes_the_useless_feature_first_and_ends_with_a_constant():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    model = RandomForestClassifier(10, max_depth=5, max_features=None, random_state=0).fit(X, y)
    path = sc.prune_path(model, X, y, cost=FeatureCost(), solver=CostDescent(penalties=2))
    used = [set(path[k].forest.features_used.tolist()) for k in range(1, len(path))]
    assert {0, 1} in used
    assert {0, 2} not in used
    assert used[-1] == set()


def test_a_path_of_many_values_is_that_of_states_that_are_not_packed(monkeypatch):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(X, y)
    cost = FeatureCost(dict(enumerate([1.0, 2.0, 4.0, 8.0])))
    expected = sc.prune_path(forest, X, y, solver=CostDescent(penalties=6), cost=cost)
    monkeypatch.setattr(mean_state, "_LARGE", 0)
    found = sc.prune_path(forest, X, y, solver=CostDescent(penalties=6), cost=cost)
    np.testing.assert_array_equal(found.table["n_nodes"], expected.table["n_nodes"])
    np.testing.assert_allclose(found.table["risk"], expected.table["risk"], rtol=1e-9)


def test_free_features_stay_when_nothing_may_be_spent():
    model, X, y = fitted("forest")
    prices = np.ones(X.shape[1])
    prices[[20, 21, 22, 23]] = 0.0
    small = sc.prune(model, X, y, cost=FeatureCost(prices), validation=(X, y), max_cost=0.0)
    used = sc.as_forest(small).features_used
    assert len(used)
    assert set(used) <= {20, 21, 22, 23}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": -1.0}, "ridge"),
        ({"values": "guess"}, "values"),
        ({"anneal": (0.0,)}, "anneal"),
        ({"penalties": 0}, "penalties"),
        ({"max_cost": -1.0}, "max_cost"),
        ({"max_sweeps": 0}, "max_sweeps"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CostDescent(**settings)


def test_node_costs_are_refused():
    model, X, y = fitted("numbers")
    with pytest.raises(ValueError, match="'nodes' is a sum over nodes"):
        sc.prune_path(model, X, y, cost="nodes", solver=CostDescent())


def test_the_definition_of_the_price_agrees_with_the_one_used_for_minimum_cuts():
    rng = np.random.default_rng(3)
    problem, X = random_problem(rng)
    everything = [set(range(*problem.forest.tree_start[t : t + 2])) for t in range(problem.forest.n_trees)]
    forest = problem.forest
    total = sum(
        w * price_of(problem.cost, rows_needs(forest, set().union(*everything), x))
        for w, x in zip(problem.sample.weight, X, strict=True)
    )
    assert slow_price(problem, X, everything, None) == pytest.approx(total / problem.sample.weight.sum())


def test_progress_is_reported_and_ctrl_c_keeps_the_points_found():
    model, X, y = fitted("forest")
    calls = []
    sc.prune_path(model, X, y, cost=FeatureCost(), solver=CostDescent(), progress=lambda *call: calls.append(call))
    shares = [done / total for done, total, _ in calls]
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] <= 1

    def stop(done, total, what):
        if done > 0.3 * total:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning):
        path = sc.prune_path(model, X, y, cost=FeatureCost(), solver=CostDescent(), progress=stop)
    assert 3 < len(path) < 40
    assert path.info.interrupted


@pytest.mark.parametrize("values", ["refit", "keep"])
def test_a_mean_of_trees_keeps_counts_and_predictions_and_lowers_its_objective(values):
    model, X, y = fitted("forest")
    problem = problem_of(model, X, y, FeatureCost())
    descent = PricedMean(additive(problem), problem, CostDescent(values=values).settings)
    before = descent.objective(0.0)
    for penalty in (1e-3, 1e-2, 1e-1):
        start = descent.objective(penalty)
        descent.descend(penalty, anneal=False)
        assert descent.objective(penalty) <= start + 1e-9
        _check_counts(descent, problem)
        keep, value, risk = descent.decide(descent.now.state, problem)
        decision = kept_decision(problem.forest, keep, value)
        raw = problem.sample.scores(problem.forest, decision)
        assert risk == pytest.approx(np.mean(problem.loss.rows(problem.forest, raw, problem.sample.y)))
        leaf = keep & ~np.append(keep[1:] & problem.forest.is_split[:-1], False)
        assert decision.value[leaf].min() >= 0
        np.testing.assert_allclose(decision.value[leaf].sum(axis=1), problem.forest.unit)
    assert before > 0


@pytest.mark.parametrize("solver", [CostDescent(ridge=2.0), BlockDescent()])
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_the_unit_of_the_target_decides_nothing(solver, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=60)
    cost, paths = FeatureCost() if isinstance(solver, CostDescent) else None, []
    # Powers of two are exact in every step.
    for unit in (2.0**-20, 1.0, 2.0**20):
        model = GradientBoostingRegressor(n_estimators=6, max_depth=2, learning_rate=0.5, loss=loss, random_state=2)
        paths.append(sc.prune_path(model.fit(X, unit * y), X, unit * y, solver=solver, cost=cost))
    kept = [[point.decision.keep.tobytes() for point in path] for path in paths]
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) > 4
