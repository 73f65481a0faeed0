"""Fewer trees: the greedy order against a slow one made of native predictions, the tail against staged predictions."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case
from tests.strategies import random_forest, random_rows

import secateur as sc
from secateur.solvers import FewerTrees

DIABETES = load_diabetes(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
TWO_TARGETS = (DIABETES[0], np.column_stack([DIABETES[1], DIABETES[0][:, 2] * 1000 + DIABETES[1]]))


def trees_kept(path, point):
    return set(np.flatnonzero(path.masks.keep(point)[path.forest.root]).tolist())


def chosen_slowly(predictions, target, weight):
    """Return all trees in the order in which each lowers the weighted squared error of the mean the most."""
    chosen, left = [], list(range(len(predictions)))
    while left:
        errors = [
            weight @ ((np.mean([predictions[t] for t in [*chosen, tree]], axis=0) - target) ** 2).sum(axis=1)
            for tree in left
        ]
        chosen.append(left.pop(int(np.argmin(errors))))
    return chosen


MEANS = {
    "random forest regressor": (RandomForestRegressor(12, random_state=0), DIABETES),
    "random forest regressor, two targets": (RandomForestRegressor(9, max_depth=6, random_state=0), TWO_TARGETS),
    "bagging regressor": (BaggingRegressor(DecisionTreeRegressor(), n_estimators=9, random_state=0), DIABETES),
    "random forest classifier": (RandomForestClassifier(12, max_depth=4, random_state=0), CANCER),
    "extra trees classifier": (ExtraTreesClassifier(8, max_depth=3, random_state=0), IRIS),
}


@pytest.mark.parametrize("name", list(MEANS))
def test_best_first_is_greedy_selection_by_the_trees_own_predictions(name):
    model, (X, y) = MEANS[name]
    model.fit(X[::2], y[::2])
    rows, y = X[1::2], y[1::2]
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    classes = getattr(model, "classes_", None)
    if classes is None:
        predictions = [tree.predict(rows).reshape(len(rows), -1) for tree in model.estimators_]
        target = y.reshape(len(y), -1)
    else:
        predictions = [tree.predict_proba(rows) for tree in model.estimators_]
        target = (y[:, None] == classes).astype(float)
    order = chosen_slowly(predictions, target, weight)
    path = sc.prune_path(model, rows, y, solver=FewerTrees("best_first"), sample_weight=weight)
    assert [trees_kept(path, point) for point in range(len(path))] == [set(order[:k]) for k in range(len(order), 0, -1)]


def test_a_smaller_forest_is_the_mean_of_its_own_trees():
    X, y = DIABETES
    forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=FewerTrees())
    for point in range(len(path)):
        kept = [forest.estimators_[tree].predict(X) for tree in sorted(trees_kept(path, point))]
        small = path[point].to_model()
        np.testing.assert_allclose(small.predict(X), np.mean(kept, axis=0), rtol=1e-12)
        assert len(small.estimators_) == len(kept) == 10 - point
        assert path.table["risk"][point] == pytest.approx(np.mean((small.predict(X) - y) ** 2))


STAGED = {
    "boosted regressor": (GradientBoostingRegressor(n_estimators=8, random_state=0), DIABETES, "staged_predict"),
    "boosted classifier": (GradientBoostingClassifier(n_estimators=8, random_state=0), CANCER, "staged_predict_proba"),
    "boosted classifier, three classes": (
        GradientBoostingClassifier(n_estimators=8, random_state=0),
        IRIS,
        "staged_predict_proba",
    ),
    "histogram classifier, three classes": (
        HistGradientBoostingClassifier(max_iter=8, random_state=0),
        IRIS,
        "staged_predict_proba",
    ),
    "adaboost classifier": (
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=0),
        CANCER,
        "staged_predict_proba",
    ),
    "adaboost regressor": (
        AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=8, random_state=0),
        DIABETES,
        "staged_predict",
    ),
}


@pytest.mark.parametrize("name", list(STAGED))
def test_dropping_the_tail_gives_the_stages_of_boosting(name):
    model, (X, y), method = STAGED[name]
    model.fit(X, y)
    path = sc.prune_path(model, X, y, solver=FewerTrees())
    stages = list(getattr(model, method)(X))
    assert len(path) == len(stages) == 8
    per_iteration = path.forest.n_trees // 8
    for point, stage in enumerate(reversed(stages)):
        small = path[point].to_model()
        predicted = getattr(small, method.removeprefix("staged_"))(X)
        np.testing.assert_allclose(predicted, stage, rtol=1e-12)
        assert path.table["n_trees"][point] == per_iteration * (8 - point)


def test_a_random_order_follows_the_seed_and_drops_one_tree_at_a_time():
    X, y = DIABETES
    forest = RandomForestRegressor(10, max_depth=3, random_state=0).fit(X, y)
    paths = [sc.prune_path(forest, X, y, solver=FewerTrees("random", seed=seed)) for seed in (0, 0, 1)]
    kept = [[trees_kept(path, point) for point in range(10)] for path in paths]
    assert kept[0] == kept[1] != kept[2]
    for before, after in zip(kept[0][:-1], kept[0][1:], strict=True):
        assert after < before
        assert len(before) - len(after) == 1


def test_the_first_trees_of_a_forest_stay_when_the_tail_goes():
    X, y = DIABETES
    forest = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, y)
    path = sc.prune_path(forest, X, y, solver=FewerTrees("tail"))
    assert [trees_kept(path, point) for point in range(5)] == [set(range(k)) for k in range(5, 0, -1)]


def test_a_forest_of_one_tree_has_one_point():
    c = case("tree regressor, several targets")
    assert len(sc.prune_path(c.model, c.X, c.y, solver=FewerTrees())) == 1


def test_there_is_no_penalty():
    c = case("random forest regressor")
    assert np.isnan(sc.prune_path(c.model, c.X, c.y, solver=FewerTrees()).table["penalty"]).all()


@pytest.mark.parametrize("name", ["gradient boosting regressor", "adaboost regressor", "isolation forest"])
def test_best_first_is_refused_where_trees_are_not_averaged_predictions(name):
    c = case(name)
    with pytest.raises(
        ValueError, match=r"FewerTrees cannot prune this: order='best_first' needs a mean of trees .* Use order='auto'"
    ):
        sc.prune_path(c.model, c.X, c.y, solver=FewerTrees("best_first"))


def test_best_first_is_refused_for_a_mean_with_a_base():
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=4, aggregation="mean")
    object.__setattr__(forest, "base", np.array([1.0]))
    X = random_rows(rng, 20, forest.n_features)
    with pytest.raises(ValueError, match="cannot prune this"):
        sc.prune_path(forest, X, rng.normal(size=20), solver=FewerTrees("best_first"))
    path = sc.prune_path(forest, X, rng.normal(size=20), solver=FewerTrees())
    assert [trees_kept(path, point) for point in range(4)] == [set(range(k)) for k in range(4, 0, -1)]


def test_random_order_is_refused_for_boosted_trees():
    c = case("hist boosting regressor")
    with pytest.raises(
        ValueError, match=r"FewerTrees cannot prune this: .* corrects those before it.* Use order='tail'"
    ):
        sc.prune_path(c.model, c.X, c.y, solver=FewerTrees("random"))


def test_an_unknown_order_is_named():
    with pytest.raises(ValueError, match=r"order='best'.*'auto', 'random', 'best_first', 'tail'"):
        FewerTrees("best")


@pytest.mark.parametrize("order", ["best_first", "random", "tail"])
def test_the_risk_of_the_path_is_that_of_the_ensemble(order):
    forest = random_forest(np.random.default_rng(0), n_trees=4, aggregation="mean")
    X = random_rows(np.random.default_rng(1), 30, forest.n_features)
    path = sc.prune_path(forest, X, np.arange(30.0), solver=FewerTrees(order))
    assert path.info.judges == "ensemble"
    assert np.allclose(path.table["risk"], path.evaluate(X, np.arange(30.0)).table["loss"])
