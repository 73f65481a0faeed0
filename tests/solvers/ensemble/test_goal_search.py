"""Searches for a goal: compared with predictions of the written model, the whole path and brute force."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss, mean_squared_error

import secateur as sc
from secateur.api import prune_point
from secateur.costs import NodeCost
from secateur.data.rows import read_sample
from secateur.forest.subforest import kept_decision
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.path.guard import NO_GUARD
from secateur.problem import Problem
from secateur.selection.choice import choose_point
from secateur.selection.evaluated_path import evaluated_path
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble._fold_search import RunSettings
from secateur.solvers.ensemble._goal_search import Visit
from secateur.solvers.ensemble._loss_search import LossSearch
from secateur.solvers.ensemble._ridge_averaging import average_ridges
from secateur.solvers.ensemble.additive_model import additive
from secateur.solvers.ensemble.descent_path import distinct

MODELS = {
    "boosted numbers": (GradientBoostingRegressor(n_estimators=30, random_state=0), load_diabetes),
    "boosted classes": (GradientBoostingClassifier(n_estimators=8, random_state=0), load_wine),
    "boosted yes or no": (HistGradientBoostingClassifier(max_iter=20, random_state=0), load_breast_cancer),
    "forest of numbers": (RandomForestRegressor(10, random_state=0), load_diabetes),
    "forest of classes": (RandomForestClassifier(10, random_state=0), load_wine),
    "forest of yes or no": (RandomForestClassifier(10, random_state=0), load_breast_cancer),
}


def fitted(name):
    model, load = MODELS[name]
    X, y = load(return_X_y=True)
    return model.fit(X[::3], y[::3]), (X[::3], y[::3]), (X[1::3], y[1::3])


def problem_of(model, X, y):
    adapter = adapt(model)
    return Problem(adapter.forest, read_sample(adapter, X, y), default_loss(adapter.forest), NodeCost())


@pytest.mark.parametrize("values", ["refit", "keep"])
@pytest.mark.parametrize("name", MODELS)
def test_a_state_predicts_other_rows_as_the_written_model_does(name, values):
    model, train, validation = fitted(name)
    problem = problem_of(model, *train)
    others = read_sample(adapt(model), *validation)
    descent = BlockDescent(penalties=6, smallest=1e-4).descent(additive(problem), problem, values, 5.0)
    for _, state in distinct(descent.run()):
        decision = kept_decision(problem.forest, *descent.decide(state))
        native = adapt(adapt(model).write(decision))
        expected = read_sample(native, *validation).scores(native.forest)
        np.testing.assert_allclose(descent.predict(state, others), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_a_dropped_tree_enters_at_its_entry_penalty(name):
    model, train, _ = fitted(name)
    problem = problem_of(model, *train)
    descent = BlockDescent(values="free").descent(additive(problem), problem, "refit", 5.0)
    descent.step(0.5 * descent.scale)
    entry = descent.state.entry
    known = np.flatnonzero(np.isfinite(entry) & ~descent.used())
    assert len(known)
    for tree in known[:4]:
        only = np.arange(len(entry)) == tree
        for factor, enters in ((0.9, True), (1.1, False)):
            if enters and entry[tree] <= 0.05 * descent.scale * 1.0001:
                continue  # the lower end of the interval in which penalties are estimated
            before = descent.state
            descent.state = before.copy()
            descent.sweep(factor * entry[tree], only, 0, False)
            assert descent.used()[tree] == enters
            descent.state = before


def test_the_entry_penalty_is_the_largest_gain_per_price_over_all_subtrees():
    model, train, _ = fitted("boosted numbers")
    problem = problem_of(model, *train)
    descent = BlockDescent().descent(additive(problem), problem, "refit", 5.0)
    descent.step(0.9 * descent.scale)
    forest, ensemble = problem.forest, descent.ensemble
    residual = descent.state.neg_gradient[0]
    for tree in (0, 1):
        start, stop = forest.tree_start[tree], forest.tree_start[tree + 1]
        leaf = start + ensemble.leaves[tree].astype(np.intp)
        below = np.array([(leaf >= node) & (leaf < forest.end[node]) for node in range(start, stop)])
        gain = (below @ residual) ** 2 / (below @ ensemble.weight + descent.ridge)

        def subtrees(node, start=start, gain=gain, forest=forest):
            """Yield the gain and the number of nodes of every subtree at a node."""
            yield gain[node - start], 1
            if forest.right[node] != -1:
                for a, n_left in subtrees(node + 1):
                    for b, n_right in subtrees(forest.right[node]):
                        yield a + b, n_left + n_right + 1

        best = max(value / n for value, n in subtrees(start))
        lower = 0.1 * 0.9 * descent.scale
        assert descent.state.entry[tree] <= max(best, lower) * (1 + 1e-9)
        assert descent.state.entry[tree] >= 0.95 * max(best, lower)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("limit", [{"max_nodes": 40}, {"max_loss_increase": 0.1}, {}])
def test_a_search_reports_the_loss_of_the_model_it_returns(name, limit):
    model, train, validation = fitted(name)
    chosen = prune_point(model, *train, validation=validation, **limit)
    small, (X, y) = chosen.to_model(), validation
    if not hasattr(small, "predict_proba"):
        expected = mean_squared_error(y, small.predict(X))
    elif chosen.info.loss == "log_loss":
        expected = log_loss(y, small.predict_proba(X))
    else:
        expected = ((np.eye(y.max() + 1)[y] - small.predict_proba(X)) ** 2).sum(axis=1).mean()
    assert chosen.row["loss"] == pytest.approx(expected, rel=1e-6)
    if "max_nodes" in limit:
        assert chosen.row["n_nodes"] <= 40
    if "max_loss_increase" in limit:
        assert chosen.row["loss"] <= 1.1 * chosen.info.unpruned_loss


@pytest.mark.parametrize("name", ["boosted numbers", "forest of numbers", "forest of yes or no"])
def test_a_search_is_about_as_good_as_the_whole_path(name):
    model, train, validation = fitted(name)
    for limit in ({"max_nodes": 60}, {"max_loss_increase": 0.1}):
        found = prune_point(model, *train, validation=validation, **limit)
        whole = evaluated_path(model, *train, validation=validation, **limit).select(**limit)
        if "max_nodes" in limit:
            assert found.row["loss"] <= 1.05 * whole.row["loss"]
        else:
            assert found.row["n_nodes"] <= 1.3 * whole.row["n_nodes"] + 10


@pytest.mark.parametrize("limit", [{"max_loss_increase": 0.05}, {"max_nodes": 100}])
def test_a_search_visits_a_small_part_of_the_path(limit, monkeypatch):
    X, y = make_friedman1(600, random_state=0)
    model = GradientBoostingRegressor(n_estimators=100, random_state=0).fit(X[:300], y[:300])
    updates = []
    from secateur.solvers.ensemble._descent import Descent

    sweep = Descent.sweep

    def counted(self, penalty, trees, first, frozen):
        updates.append(int(trees.sum()))
        return sweep(self, penalty, trees, first, frozen)

    monkeypatch.setattr(Descent, "sweep", counted)
    evaluated_path(model, X[:300], y[:300], validation=(X[300:], y[300:]))
    whole = sum(updates)
    updates.clear()
    evaluated_path(model, X[:300], y[:300], validation=(X[300:], y[300:]), search=True, **limit)
    assert sum(updates) < whole / 4


def test_ridges_are_averaged_by_their_likelihood():
    losses = {(5.0, False): 1.00, (25.0, False): 0.98, (100.0, False): 1.02, (0.0, True): 1.5}
    weight = np.array([1.00, 0.98, 1.02]) ** (-0.25 * 200 / 2)
    expected = np.exp(np.average(np.log([5, 25, 100]), weights=weight))
    assert average_ridges(losses, 200) == pytest.approx(expected, rel=1e-2)
    assert average_ridges({**losses, (0.0, True): 0.5}, 200) is None


def test_the_search_of_several_folds_is_repeatable():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    first, second = (sc.prune(model, X, y, max_loss_increase=0.05) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert sc.as_forest(first).n_nodes < sc.as_forest(model).n_nodes


@pytest.mark.parametrize("name", ["boosted numbers", "forest of classes"])
def test_the_number_of_threads_does_not_change_the_result(name):
    model, (X, y), _ = fitted(name)
    for n_jobs in (2, -1):
        one, several = (sc.prune_path(model, X, y, n_jobs=n) for n in (1, n_jobs))
        assert one.table.keys() == several.table.keys()
        for column in one.table:
            np.testing.assert_array_equal(one.table[column], several.table[column])
    for limit in ({"max_nodes": 30}, {"max_loss_increase": 0.1}, {}):
        one, several = (prune_point(model, X, y, validation="cv", n_jobs=n, **limit) for n in (None, 2))
        assert {**one.row, "penalty": 0} == {**several.row, "penalty": 0}
        np.testing.assert_array_equal(one.predict(X), several.predict(X))


@pytest.mark.parametrize("name", MODELS)
def test_clones_of_training_rows_choose_a_pruning_that_uses_up_the_budget(name):
    model, (X, y), _ = fitted(name)
    chosen = prune_point(model, X, y, validation="cv", max_nodes=60)
    assert 0.9 * 60 <= chosen.row["n_nodes"] <= 60
    assert chosen.row["loss"] != chosen.info.unpruned_loss


@pytest.mark.parametrize("limit", [{"max_nodes": 40}, {"max_loss_increase": 0.1}, {}])
@pytest.mark.parametrize("name", ["boosted numbers", "forest of classes"])
def test_the_curve_of_a_search_has_more_points_and_the_same_choice(name, limit):
    model, (X, y), _ = fitted(name)
    path, curve = (evaluated_path(model, X, y, validation="cv", search=True, curve=c, **limit) for c in (False, True))
    assert len(curve) >= len(path)
    chosen, same = choose_point(path, **limit), choose_point(curve, **limit)
    np.testing.assert_array_equal(chosen.predict(X), same.predict(X))
    assert chosen.row["loss"] == pytest.approx(same.row["loss"], rel=1e-12)
    assert curve[same.point].row["n_nodes"] == chosen.row["n_nodes"]


@pytest.mark.parametrize(("noise", "seed", "uses_budget"), [(5.0, 0, True), (20.0, 1, False)])
def test_a_budget_is_used_up_unless_a_smaller_pruning_is_clearly_better(noise, seed, uses_budget):
    X, y = make_friedman1(900, noise=noise, random_state=seed)
    model = GradientBoostingRegressor(n_estimators=100, random_state=0).fit(X[:300], y[:300])
    chosen = prune_point(model, X[:300], y[:300], validation=(X[300:], y[300:]), max_nodes=600)
    assert (chosen.row["n_nodes"] >= 0.95 * 600) == uses_budget


def walk_of(losses, visits=(), **attributes):
    """Return what a walk along penalties with these losses returns, without any descent."""
    search, found = object.__new__(LossSearch), iter(losses)
    settings = {"folds": [], "ridges": [5.0], "runs": [RunSettings(5.0)], "n_outputs": 1, "unpruned": 100.0}
    settings |= {"bound": 10.0, "guard": NO_GUARD, "penalties": np.geomspace(1, 1e-3, len(losses)), "n_regular": 6}
    settings |= {"visit": lambda penalty, run: Visit(penalty, run, 1000, next(found), 0.0, [object()])}
    for name, value in (settings | attributes).items():
        setattr(search, name, value)
    return search.walk(list(visits), 0, 0)


def test_a_walk_goes_on_beyond_the_last_penalty_only_if_the_loss_is_close_to_its_bound():
    visits, k, _, near = walk_of(np.linspace(14, 9, 20))
    assert near
    assert k > 6
    assert visits[-1].loss <= 10 + 0.02 * 100 < visits[-2].loss
    visits, k, _, near = walk_of(np.linspace(30, 9, 20))
    assert k < 6
    assert not near
    assert walk_of(np.linspace(14, 9, 20), bound=-np.inf)[1:] == (5, 0, False)


def test_the_states_that_a_walk_stores_are_its_last():
    before = [Visit(1.0, RunSettings(5.0), 1000, 50.0, 0.0, [object()]) for _ in range(12)]
    visits, *_ = walk_of([49.0, 48.0], before, n_regular=2)
    assert [bool(visit.states) for visit in visits] == [False] * (len(visits) - 8) + [True] * 8
