"""Out-of-bag rows, cross-validation and how many rows a choice needs."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import secateur as sc
from secateur.api import prune_point
from secateur.errors import EverythingPrunedWarning, TrainingRowsWarning
from secateur.selection.evaluated_path import evaluated_path


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


def test_the_unpruned_out_of_bag_loss_is_scikit_learns(cancer, diabetes):
    X, y = cancer
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, y)
    path = evaluated_path(forest, X, y, validation="oob", loss="zero_one")
    assert path.table["loss"][0] == pytest.approx(1 - forest.oob_score_)
    X, y = diabetes
    for model in (
        RandomForestRegressor(60, oob_score=True, random_state=0),
        BaggingRegressor(DecisionTreeRegressor(), n_estimators=60, oob_score=True, max_features=0.7, random_state=0),
    ):
        path = evaluated_path(model.fit(X, y), X, y, validation="oob")
        assert path.table["loss"][0] == pytest.approx(mean_squared_error(y, model.oob_prediction_))


def test_out_of_bag_losses_of_pruned_points_come_from_trees_that_have_not_seen_the_row(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(40, random_state=0).fit(X, y)
    path = evaluated_path(forest, X, y, validation="oob", max_nodes=500)
    small = path[5].to_model()
    drawn = np.array([np.bincount(rows, minlength=len(y)) for rows in forest.estimators_samples_])
    predicted = np.array([tree.predict(X) for tree in small.estimators_])
    mean = np.where(drawn == 0, predicted, 0).sum(axis=0) / (drawn == 0).sum(axis=0)
    seen_by_all = (drawn == 0).sum(axis=0) == 0
    assert path.table["loss"][5] == pytest.approx(((mean - y)[~seen_by_all] ** 2).mean())


def test_training_rows_of_a_random_forest_are_judged_out_of_bag_without_being_asked(diabetes):
    X, y = diabetes
    X_train, y_train, X_test, y_test = X[::2], y[::2], X[1::2], y[1::2]
    forest = RandomForestRegressor(100, random_state=0).fit(X_train, y_train)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        chosen = prune_point(forest, X_train, y_train, solver="weakest_link", max_loss_increase=0.05)
    assert "out-of-bag" in chosen.summary()["rows"]["chosen_on"]
    before, after = (mean_squared_error(y_test, m.predict(X_test)) for m in (forest, chosen.to_model()))
    assert chosen.row["n_nodes"] < sc.as_forest(forest).n_nodes / 5
    assert after < 1.1 * before


def test_out_of_bag_needs_training_rows_in_their_order_and_a_bagged_model(cancer):
    X, y = cancer
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    order = np.random.default_rng(0).permutation(len(y))
    for X_wrong, y_wrong in ((X[:-1], y[:-1]), (X[order], y[order])):
        with pytest.raises(ValueError, match="in their original order"):
            sc.prune(forest, X_wrong, y_wrong, validation="oob")
    with pytest.raises(ValueError, match="every tree was trained on every row"):
        sc.prune(ExtraTreesClassifier(5, random_state=0).fit(X, y), X, y, validation="oob")
    with pytest.raises(ValueError, match="every tree was trained on every row"):
        sc.prune(GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y), X, y, validation="oob")


def test_cross_validation_measures_clones_on_folds_they_have_not_seen(cancer):
    X, y = cancer
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    path = evaluated_path(tree, X, y, validation="cv", loss="zero_one", cost="leaves", random_state=1)
    fold_of = np.random.default_rng(1).permutation(len(y)) % 5
    wrong = np.zeros(len(y))
    for fold in range(5):
        clone = DecisionTreeClassifier(random_state=0).fit(X[fold_of != fold], y[fold_of != fold])
        wrong[fold_of == fold] = clone.predict(X[fold_of == fold]) != y[fold_of == fold]
    assert path.table["loss"][0] == pytest.approx(wrong.mean())
    assert path.info.evaluated_on.startswith("5-fold")
    # At one penalty, each clone's own cost-complexity pruning at that penalty.
    k = len(path) // 2
    alpha = math.sqrt(path.table["penalty"][k] * path.table["penalty"][k + 1])
    wrong[:] = 0
    for fold in range(5):
        inside = fold_of != fold
        theirs = sc.prune_path(
            DecisionTreeClassifier(random_state=0).fit(X[inside], y[inside]),
            X[inside],
            y[inside],
            loss="zero_one",
            cost="leaves",
        )
        small = theirs[int(np.searchsorted(theirs.table["penalty"], alpha, side="right")) - 1].to_model()
        wrong[~inside] = small.predict(X[~inside]) != y[~inside]
    assert path.table["loss"][k] == pytest.approx(wrong.mean())


def test_clones_for_cross_validation_are_trained_with_the_sample_weights(diabetes):
    X, y = diabetes
    weight = np.random.default_rng(0).uniform(0.1, 5, len(y))
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y, weight)
    path = evaluated_path(tree, X, y, validation="cv", sample_weight=weight, random_state=1)
    fold_of, predicted = np.random.default_rng(1).permutation(len(y)) % 5, np.zeros(len(y))
    for fold in range(5):
        inside = fold_of != fold
        predicted[~inside] = clone(tree).fit(X[inside], y[inside], weight[inside]).predict(X[~inside])
    assert path.table["loss"][0] == pytest.approx(mean_squared_error(y, predicted, sample_weight=weight))


def test_a_limit_does_not_change_what_cross_validation_measures(cancer):
    X, y = cancer
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    free = evaluated_path(tree, X, y, validation="cv")
    limited = evaluated_path(tree, X, y, validation="cv", max_nodes=15)
    kept = np.append(0, np.flatnonzero(free.table["n_nodes"] <= 15))
    assert limited.table["n_nodes"].tolist() == free.table["n_nodes"][kept].tolist()
    np.testing.assert_allclose(limited.table["loss"], free.table["loss"][kept])


@pytest.mark.contracts
@pytest.mark.parametrize("solver", sorted(sc.solvers.SOLVERS))
def test_every_solver_can_be_cross_validated(cancer, solver):
    X, y = cancer
    forest = RandomForestClassifier(6, random_state=0).fit(X, y)
    if sc.solvers.SOLVERS[solver].needs_unseen_rows:  # it finds few errors to reduce on the rows a clone was grown on
        with pytest.warns(TrainingRowsWarning, match="almost nothing is pruned"):
            path = evaluated_path(forest, X, y, validation="cv", solver=solver)
    else:
        path = evaluated_path(forest, X, y, validation="cv", solver=solver)
        assert path.select(max_loss_increase=1.0, guard=0.0).row["n_nodes"] < sc.as_forest(forest).n_nodes
    assert np.isfinite(path.table["loss"]).all()


def test_pipelines_and_searches_are_refitted_whole(diabetes):
    X, y = diabetes
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=0))
    search = GridSearchCV(pipeline, {"decisiontreeregressor__min_samples_leaf": [1, 3]}).fit(X, y)
    for model in (pipeline.fit(X, y), search):
        small = sc.prune(model, X, y, validation="cv", sample_weight=np.ones(len(y)))
        assert type(small) is type(model)
        assert sc.as_forest(small).n_nodes < sc.as_forest(model).n_nodes


def test_what_cannot_be_refitted_says_so(diabetes):
    X, y = diabetes
    forest = sc.as_forest(DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y))
    with pytest.raises(ValueError, match="cannot train another"):
        sc.prune(forest, X, y, validation="cv")
    with pytest.raises(ValueError, match=r"3 row\(s\): 5-fold"):
        sc.prune(DecisionTreeRegressor(random_state=0).fit(X, y), X[:3], y[:3], validation="cv")


def test_structural_risk_is_error_plus_the_root_of_size_over_rows(cancer):
    X, y = cancer
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    path = sc.prune_path(tree, X, y, solver="optimal_size")
    risk = path.table["risk"] + np.sqrt(path.table["n_nodes"] / len(y))
    assert path.select(rule="srm").point == risk.argmin()


def test_structural_risk_is_refused_for_losses_that_are_no_error_rate(cancer, diabetes):
    tree = DecisionTreeClassifier(random_state=0).fit(*cancer)
    brier = sc.prune_path(tree, *cancer, loss="brier")
    with pytest.raises(ValueError, match=r"'brier'.*loss='zero_one'"):
        brier.select(rule="srm")
    # The loss of other rows does not change what the risk is.
    with pytest.raises(ValueError, match="'brier'"):
        brier.evaluate(*cancer, loss="zero_one").select(rule="srm")
    regressor = DecisionTreeRegressor(random_state=0).fit(*diabetes)
    with pytest.raises(ValueError, match="'squared_error'"):
        sc.prune_path(regressor, *diabetes).select(rule="srm")


def test_a_constant_model_is_announced(diabetes):
    X, y = diabetes
    noise = np.random.default_rng(0).normal(size=len(y))
    tree = DecisionTreeRegressor(random_state=0).fit(X[::2], noise[::2])
    with pytest.warns(EverythingPrunedWarning, match="predicts a constant"):
        sc.prune(tree, X[1::2], noise[1::2], solver="reduced_error", validation=None, max_loss_increase=0.0)


def test_holdout_rows_are_enough_for_hoeffding_and_follow_the_formula():
    for epsilon, delta, n in [(0.1, 0.05, 10), (0.02, 0.01, 1000), (0.3, 0.5, 1)]:
        rows = sc.holdout_size(epsilon, delta, n)
        assert rows == math.ceil(math.log(n / delta) / epsilon**2)
        assert n == 1 or n * 2 * math.exp(-2 * rows * epsilon**2) <= delta


def test_the_choice_on_enough_rows_is_within_two_epsilon():
    rng = np.random.default_rng(0)
    errors = rng.uniform(0.1, 0.5, 30)
    epsilon, delta = 0.08, 0.1
    rows = sc.holdout_size(epsilon, delta, len(errors))
    failures = 0
    for _ in range(300):
        observed = rng.binomial(rows, errors) / rows
        failures += errors[observed.argmin()] > errors.min() + 2 * epsilon
    assert failures <= delta * 300


@pytest.mark.parametrize("wrong", [(0.0, 0.1, 5), (0.1, 1.0, 5), (0.1, 0.1, 0), (2.0, 0.1, 5)])
def test_impossible_wishes_are_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        sc.holdout_size(*wrong)


def test_a_refitted_clone_is_judged_on_rows_it_has_not_seen(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    solver = sc.solvers.BlockDescent(penalties=12, smallest=1e-3, ridge=(5.0, 50.0), values="both")
    path = evaluated_path(forest, X, y, validation="refit", solver=solver)
    held_out = np.random.default_rng(0).permutation(len(y)) % 4 == 0
    other = clone(forest).fit(X[~held_out], y[~held_out])
    theirs = sc.prune_path(other, X[~held_out], y[~held_out], solver=solver).evaluate(X[held_out], y[held_out])
    assert path.table["loss"][0] == pytest.approx(mean_squared_error(y[held_out], other.predict(X[held_out])))
    assert path.info.evaluated_rows == held_out.sum()
    for point in (1, len(path) // 2, len(path) - 1):  # the clone's point with the same values and the nearest penalty
        alike = [theirs.table[name] == path.table[name][point] for name in ("ridge", "kept")]
        apart = np.abs(np.log(theirs.table["penalty"] / path.table["penalty"][point]))
        nearest = np.nanargmin(np.where(alike[0] & alike[1], apart, np.nan))
        assert path.table["loss"][point] == pytest.approx(theirs.table["loss"][nearest], rel=1e-12)


@pytest.mark.parametrize("name", ["boosting", pytest.param("random forest", marks=pytest.mark.nightly)])
def test_training_rows_of_an_ensemble_keep_the_promise_on_other_rows(name):
    X, y = make_friedman1(4000, noise=1.0, random_state=0)
    model = {
        "random forest": RandomForestRegressor(30, random_state=0),
        "boosting": GradientBoostingRegressor(n_estimators=60, random_state=0),
    }[name]
    model.fit(X[:2000], y[:2000])
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        chosen = prune_point(model, X[:2000], y[:2000], max_loss_increase=0.05)
    assert "refitted clones" in chosen.summary()["rows"]["chosen_on"]
    before, after = (mean_squared_error(y[2000:], m.predict(X[2000:])) for m in (model, chosen.to_model()))
    assert chosen.row["n_nodes"] < sc.as_forest(model).n_nodes / 5
    assert after < 1.1 * before


def test_out_of_bag_trees_cannot_speak_where_trees_were_fitted_to_each_other(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="fits trees jointly"):
        sc.prune(forest, X, y, solver="block_descent", validation="oob")


def test_a_share_is_held_out_for_choosing_and_then_all_rows_are_used(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(20, random_state=0).fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    solver = sc.solvers.BlockDescent(penalties=12, smallest=1e-3)
    path = evaluated_path(forest, X, y, validation=0.25, solver=solver)
    whole = sc.prune_path(forest, X, y, solver=solver)
    np.testing.assert_array_equal(path.table["risk"], whole.table["risk"])
    order = np.random.default_rng(0).permutation(len(y))
    held_out, others = np.sort(order[: round(len(y) / 4)]), np.sort(order[round(len(y) / 4) :])
    trial = sc.prune_path(forest, X[others], y[others], solver=solver).evaluate(X[held_out], y[held_out])
    assert path.info.evaluated_rows == len(held_out)
    assert path.table["loss"][0] == pytest.approx(trial.table["loss"][0], rel=1e-12)
    for point in (1, len(path) // 2, len(path) - 1):
        nearest = np.nanargmin(np.abs(np.log(trial.table["penalty"] / path.table["penalty"][point])))
        assert path.table["loss"][point] == pytest.approx(trial.table["loss"][nearest], rel=1e-12)


def test_marked_rows_are_held_out_for_choosing_and_then_all_rows_are_used(diabetes):
    X, y = diabetes
    forest = RandomForestRegressor(20, random_state=0).fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    solver = sc.solvers.BlockDescent(penalties=12, smallest=1e-3)
    marked = np.arange(len(y)) % 3 == 0
    path = evaluated_path(forest, X, y, validation=marked, solver=solver)
    whole = sc.prune_path(forest, X, y, solver=solver)
    np.testing.assert_array_equal(path.table["risk"], whole.table["risk"])
    assert path.info.evaluated_rows == marked.sum()
    assert path.table["loss"][0] == pytest.approx(np.mean((forest.predict(X[marked]) - y[marked]) ** 2))
    alone = evaluated_path(forest, X, y, validation=marked, solver="weakest_link")
    apart = sc.prune_path(forest, X[~marked], y[~marked], solver="weakest_link").evaluate(X[marked], y[marked])
    np.testing.assert_allclose(alone.table["loss"][[0, -1]], apart.table["loss"][[0, -1]])


@pytest.mark.parametrize("mask", [np.ones(9, bool), np.zeros(30, bool), np.ones(30, bool), np.arange(30)])
def test_a_mask_marks_some_of_the_rows(diabetes, mask):
    X, y = diabetes
    forest = RandomForestRegressor(3, random_state=0).fit(X[30:], y[30:])
    with pytest.raises(ValueError, match="some true and some false"):
        sc.prune(forest, X[:30], y[:30], validation=mask)


def aimed():
    """Return a forest, rows that it has not seen, and which of them choose."""
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(10, max_depth=6, random_state=0).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2], np.arange(len(y) // 2) % 3 == 0


def test_where_nodes_are_aimed_at_points_of_the_same_size_stand_for_each_other():
    model, X, y, mask = aimed()
    solver = sc.solvers.BlockDescent(ridge=25.0, max_nodes=60)
    judged = evaluated_path(model, X, y, solver=solver, validation=mask, max_nodes=60)
    table = judged.table
    assert judged.info.fills_budget
    trial = sc.prune_path(model, X[~mask], y[~mask], solver=solver)
    for point in range(1, len(judged)):
        apart = np.abs(np.log(table["n_nodes"][point] / trial.table["n_nodes"]))
        apart += 1e-3 * np.abs(np.log(table["penalty"][point] / trial.table["penalty"]))
        twin = int(np.nan_to_num(apart, nan=np.inf).argmin())
        losses = (trial[twin].to_model().predict(X[mask]) - y[mask]) ** 2
        assert table["loss"][point] == pytest.approx(losses.mean())


@pytest.mark.parametrize("max_nodes", [20, 60])
def test_within_a_number_of_nodes_rows_held_out_weigh_the_ridges(max_nodes):
    model, X, y, mask = aimed()
    several = sc.solvers.BlockDescent(values="both", ridge=(2.0, 20.0, 200.0))
    path = evaluated_path(model, X, y, solver=several, validation=mask, max_nodes=max_nodes, search=True)
    (ridge,) = set(path.table["ridge"][1:])
    assert 2.0 < ridge < 200.0
    assert (path.table["kept"] == 0).all()
    taken = prune_point(model, X, y, solver=several, validation=mask, max_nodes=max_nodes)
    assert taken.row["n_nodes"] == max(size for size in path.table["n_nodes"] if size <= max_nodes)


def test_clones_weigh_the_ridges_together():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(8, max_depth=5, random_state=0).fit(X, y)
    several = sc.solvers.BlockDescent(ridge=(2.0, 200.0))
    path = evaluated_path(model, X, y, solver=several, validation="cv", max_nodes=40, search=True, curve=True)
    (ridge,) = set(path.table["ridge"][1:])
    assert 2.0 <= ridge <= 200.0
    assert path.info.clones == 5
    again = sc.solvers.BlockDescent(ridge=ridge)
    same = evaluated_path(model, X, y, solver=again, validation="cv", max_nodes=40)
    np.testing.assert_array_equal(path.table["n_nodes"], same.table["n_nodes"])
    np.testing.assert_array_equal(path.table["risk"], same.table["risk"])


@pytest.mark.parametrize("validation", [0.25, "cv", None])
def test_fewer_nodes_than_any_model_has_are_refused(validation):
    X, y = load_diabetes(return_X_y=True)
    y = np.digitize(y, [100, 200])
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"No point of the path satisfies max_nodes=2\. .* n_nodes = 3"):
        sc.prune(model, X[::2], y[::2], max_nodes=2, validation=validation)


def test_values_stay_if_that_is_likelier_than_all_ridges_together():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0).fit(X[:400], y[:400])
    several = sc.solvers.BlockDescent(values="both", ridge=(1e4, 1e5))
    path = evaluated_path(model, X[400:], y[400:], solver=several, validation=0.5, max_nodes=60, search=True)
    assert (path.table["kept"][1:] == 1).all()
