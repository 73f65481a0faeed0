"""PrunedClassifier and PrunedRegressor: scikit-learn's own checks, and the promises of the docstrings."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_diabetes, make_multilabel_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.sklearn_checks import run_check

import secateur as sc
from secateur.errors import TrainingRowsWarning
from secateur.estimators import PrunedClassifier, PrunedRegressor
from secateur.path import Path

BY_ROW = (
    "rows are held out one by one: a row of weight 2 is on one side, two copies of it may be on both. scikit-learn "
    "expects the same of its own estimators that draw rows, random forests among them"
)
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": BY_ROW for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        PrunedClassifier(),
        PrunedRegressor(),
        PrunedClassifier(RandomForestClassifier(n_estimators=5)),
        PrunedRegressor(RandomForestRegressor(n_estimators=5)),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learn_accepts_the_estimators(estimator, check):
    run_check(estimator, check)


@pytest.fixture(scope="module")
def cancer():
    return train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.4, random_state=0)


@pytest.fixture(scope="module")
def diabetes():
    return train_test_split(*load_diabetes(return_X_y=True), test_size=0.4, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        BaggingClassifier(n_estimators=5),
        GradientBoostingClassifier(n_estimators=10),
        HistGradientBoostingClassifier(max_iter=10),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=5),
        make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_every_kind_of_model_is_trained_and_pruned(cancer, estimator):
    X, X_test, y, y_test = cancer
    model = PrunedClassifier(estimator, max_loss_increase=1.0, random_state=0).fit(X, y)
    assert isinstance(model.estimator_, DecisionTreeClassifier if estimator is None else type(estimator))
    assert sc.as_forest(model.estimator_).n_nodes < model.path_.forest.n_nodes
    assert np.array_equal(model.predict(X_test), model.estimator_.predict(X_test))
    assert np.array_equal(model.predict_proba(X_test), model.estimator_.predict_proba(X_test))
    assert model.score(X_test, y_test) > 0.85
    assert model.n_features_in_ == X.shape[1]


def test_the_rows_that_judge_are_not_the_rows_that_train(cancer, monkeypatch):
    X, _, y, _ = cancer
    X = np.column_stack([np.arange(len(X)), X])
    seen = {}
    fit, evaluate = DecisionTreeClassifier.fit, Path.evaluate_sample

    def spy_fit(self, X, y, **options):
        seen["training"] = X[:, 0]
        return fit(self, X, y, **options)

    def spy_evaluate(self, sample, **options):
        seen["held out"] = sample.rows[:, 0]
        return evaluate(self, sample, **options)

    monkeypatch.setattr(DecisionTreeClassifier, "fit", spy_fit)
    monkeypatch.setattr(Path, "evaluate_sample", spy_evaluate)
    model = PrunedClassifier(validation=0.3, random_state=0).fit(X, y)
    assert len(seen["held out"]) == round(0.3 * len(X)) == model.path_.info.evaluated_rows
    assert len(seen["training"]) == model.path_.info.made_on_rows
    assert sorted([*seen["training"], *seen["held out"]]) == list(range(len(X)))
    share = y[seen["held out"].astype(int)].mean()
    assert share == pytest.approx(y.mean(), abs=1 / len(seen["held out"]))


def test_its_own_proper_use_gives_no_warning_and_prints_nothing(cancer, diabetes, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrunedClassifier(random_state=0).fit(cancer[0], cancer[2])
        PrunedRegressor(RandomForestRegressor(5), max_nodes=100, random_state=0).fit(diabetes[0], diabetes[2])
        tree = DecisionTreeRegressor(random_state=0).fit(diabetes[0], diabetes[2])
        PrunedRegressor(tree, prefit=True).fit(diabetes[1], diabetes[3])
    assert capsys.readouterr() == ("", "")


def test_without_limits_the_cheapest_point_within_one_per_cent_is_taken(diabetes):
    X, X_test, y, y_test = diabetes
    model = PrunedRegressor(random_state=0).fit(X, y)
    chosen = model.path_.select(rule="one_percent")
    assert model.estimator_.tree_.node_count == chosen.row["n_nodes"]
    assert model.score(X_test, y_test) > DecisionTreeRegressor(random_state=0).fit(X, y).score(X_test, y_test)


@pytest.mark.parametrize(
    ("limit", "value", "column"),
    [
        ("max_nodes", 60, "n_nodes"),
        ("max_leaves", 30, "n_leaves"),
        ("max_depth", 2, "depth"),
        ("max_features", 4, "n_features"),
        ("max_cost", 70.5, "cost"),
        ("max_trees", 10, "n_trees"),
    ],
)
def test_limits_are_obeyed(cancer, limit, value, column):
    X, _, y, _ = cancer
    cost = "nodes" if limit == "max_cost" else None
    model = PrunedClassifier(RandomForestClassifier(10), cost=cost, random_state=0, **{limit: value}).fit(X, y)
    chosen = model.path_.select(**{limit: value})
    assert chosen.row[column] <= value
    assert sc.as_forest(model.estimator_).n_nodes == chosen.row["n_nodes"]


def test_solver_cost_and_loss_reach_the_path(cancer):
    X, _, y, _ = cancer
    solver = sc.solvers.WeakestLink()
    model = PrunedClassifier(solver=solver, cost="leaves", loss="zero_one", rule="one_se", random_state=0).fit(X, y)
    assert model.path_.solver == repr(solver)
    assert (model.path_.info.cost, model.path_.info.loss) == ("leaves", "zero_one")
    assert model.estimator_.get_n_leaves() == model.path_.select(rule="one_se").row["n_leaves"]


def test_a_fitted_estimator_is_pruned_on_all_rows_and_not_changed(cancer):
    X, X_val, y, y_val = cancer
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    before = pickle.dumps(forest)
    model = PrunedClassifier(forest, prefit=True, max_nodes=100).fit(X_val, y_val)
    assert pickle.dumps(forest) == before
    assert model.path_.info.made_on_rows == model.path_.info.evaluated_rows == len(X_val)
    assert sc.as_forest(model.estimator_).n_nodes <= 100


def test_a_fitted_estimator_and_its_own_training_rows_give_a_warning(cancer):
    X, _, y, _ = cancer
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.warns(TrainingRowsWarning, match="rows the model was trained on"):
        PrunedClassifier(forest, prefit=True).fit(X, y)


def test_a_frozen_estimator_stays_fitted_through_a_search(cancer):
    X, X_val, y, y_val = cancer
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    search = GridSearchCV(PrunedClassifier(FrozenEstimator(forest)), {"max_nodes": [40, 200]}, cv=3)
    search.fit(X_val, y_val)
    assert type(search.best_estimator_.estimator_) is RandomForestClassifier
    assert search.best_estimator_.path_.source.model is forest


def test_prefit_weights_are_repetitions(diabetes):
    X, X_val, y, y_val = diabetes
    tree = DecisionTreeRegressor(random_state=0).fit(X, y)
    weight = np.arange(len(X_val)) % 3
    weighted = PrunedRegressor(tree, prefit=True).fit(X_val, y_val, sample_weight=weight)
    repeated = PrunedRegressor(tree, prefit=True).fit(X_val.repeat(weight, axis=0), y_val.repeat(weight))
    assert np.array_equal(weighted.predict(X_val), repeated.predict(X_val))


def test_rows_of_weight_zero_are_not_there(cancer):
    X, X_test, y, _ = cancer
    weight = (np.arange(len(X)) % 4 > 0) * 1.5
    there = weight > 0
    model = PrunedClassifier(max_leaves=5, random_state=0)
    some = clone(model).fit(X[there], y[there], sample_weight=weight[there])
    assert np.array_equal(some.predict_proba(X_test), model.fit(X, y, weight).predict_proba(X_test))


def test_the_seed_decides_everything_and_an_estimator_keeps_its_own(cancer):
    X, X_test, y, _ = cancer
    model = PrunedClassifier(RandomForestClassifier(5), random_state=3)
    first, second = (clone(model).fit(X, y).predict_proba(X_test) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, clone(model).set_params(random_state=4).fit(X, y).predict_proba(X_test))
    seeded = PrunedClassifier(RandomForestClassifier(5, random_state=7), random_state=3).fit(X, y)
    assert seeded.estimator_.random_state == 7


@pytest.mark.parametrize("as_labels", [np.array, list, lambda y: np.array(y, object)], ids=["array", "list", "object"])
def test_string_labels(cancer, as_labels):
    X, X_test, y, y_test = cancer
    names = np.array(["malignant", "benign"])
    model = PrunedClassifier(random_state=0).fit(X, as_labels(names[y]))
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert set(model.predict(X_test)) <= set(names)
    assert model.score(X_test, names[y_test]) > 0.85


def test_frames_with_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=300), "colour": pd.Categorical(rng.choice(["red", "blue"], 300))})
    y = pd.Series(np.where(X["colour"] == "red", "hot", "cold"), index=rng.permutation(300))
    X.loc[::9, "x"] = np.nan
    model = PrunedClassifier(HistGradientBoostingClassifier(max_iter=5), random_state=0).fit(X, y)
    assert model.feature_names_in_.tolist() == ["x", "colour"]
    assert model.score(X, y) == 1.0


def test_tags_are_those_of_the_estimator():
    assert get_tags(PrunedClassifier()).input_tags.allow_nan
    assert get_tags(PrunedClassifier()).target_tags.multi_output
    assert not get_tags(PrunedClassifier(GradientBoostingClassifier())).input_tags.allow_nan
    assert not get_tags(PrunedClassifier(AdaBoostClassifier())).target_tags.multi_output
    assert is_classifier(PrunedClassifier(AdaBoostClassifier()))
    assert is_regressor(PrunedRegressor())


def test_rows_the_estimator_would_refuse_are_refused_wherever_they_fall(diabetes):
    X, _, y, _ = diabetes
    for row in range(12):
        bad = X.copy()
        bad[row, 0] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            PrunedRegressor(random_state=0).fit(bad, y)


def test_several_targets():
    X, y = make_regression(200, 5, n_targets=2, random_state=0)
    assert PrunedRegressor(max_depth=4, random_state=0).fit(X, y).predict(X).shape == (200, 2)
    X, y = make_multilabel_classification(200, n_labels=2, n_classes=3, random_state=0)
    model = PrunedClassifier(max_depth=4, random_state=0).fit(X, y)
    assert len(model.classes_) == len(model.predict_proba(X)) == 3


def test_a_class_of_one_row_is_trained_on():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 39, X[:, 0] >= 20, 2).astype(int)
    for seed in range(10):
        assert PrunedClassifier(random_state=seed).fit(X, y).classes_.tolist() == [0, 1, 2]


def test_inside_search_cross_validation_pipeline_and_stack(cancer):
    X, X_test, y, y_test = cancer
    search = GridSearchCV(PrunedClassifier(random_state=0), {"max_nodes": [3, 7, 15]}, cv=3).fit(X, y)
    assert search.best_estimator_.estimator_.tree_.node_count <= search.best_params_["max_nodes"]
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert cross_val_score(PrunedClassifier(random_state=0), X, y, cv=3).min() > 0.85
    pipeline = make_pipeline(StandardScaler(), PrunedClassifier(random_state=0)).fit(X, y)
    assert pipeline.score(X_test, y_test) > 0.85
    members = [(str(leaves), PrunedClassifier(max_leaves=leaves, random_state=0)) for leaves in (3, 6)]
    assert StackingClassifier(members, cv=3).fit(X, y).score(X_test, y_test) > 0.85


def test_a_parameter_of_the_inner_estimator_can_be_searched(cancer):
    X, _, y, _ = cancer
    model = PrunedClassifier(DecisionTreeClassifier(), random_state=0)
    search = GridSearchCV(model, {"estimator__criterion": ["gini", "entropy"]}, cv=2).fit(X, y)
    assert search.best_estimator_.estimator_.criterion == search.best_params_["estimator__criterion"]


def test_pickling_keeps_the_pruned_model_alone_unless_the_path_is_to_be_kept(cancer):
    X, X_test, y, _ = cancer
    forest = RandomForestClassifier(20, random_state=0)
    for estimator, prefit in ((forest, False), (FrozenEstimator(clone(forest).fit(X, y)), False), (forest, True)):
        estimator = clone(forest).fit(X, y) if prefit else estimator
        model = PrunedClassifier(estimator, prefit=prefit, max_nodes=40, random_state=0).fit(X_test, _)
        stored = pickle.dumps(model)
        assert len(stored) < len(pickle.dumps(model.estimator_)) + 4000 < len(pickle.dumps(model.path_.source.model))
        again = pickle.loads(stored)
        assert np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
        assert again.get_params().keys() == model.get_params().keys()
        with pytest.raises(AttributeError, match="'path_'; it is pickled only with keep_path=True"):
            again.path_.select()
        kept = pickle.loads(pickle.dumps(model.set_params(keep_path=True)))
        assert np.array_equal(kept.path_.table["loss"], model.path_.table["loss"])
    with pytest.raises(AttributeError, match=r"has no attribute 'path_'$"):
        PrunedClassifier().path_.select()


def test_copies_keep_the_path_and_unfitted_estimators_are_pickled_as_they_are(cancer):
    X, X_test, y, y_test = cancer
    fitted = RandomForestClassifier(5, random_state=0).fit(X, y)
    for again in (copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
        unfitted = again(PrunedClassifier(FrozenEstimator(fitted), max_nodes=40))
        copied = unfitted.fit(X_test, y_test)
        assert np.array_equal(again(copied).predict(X_test), copied.predict(X_test))
    for again in (copy.copy, copy.deepcopy):
        assert np.array_equal(again(copied).path_.table["loss"], copied.path_.table["loss"])


def test_shap_explains_the_pruned_model_inside(cancer):
    shap = pytest.importorskip("shap")
    X, X_test, y, _ = cancer
    model = PrunedClassifier(RandomForestClassifier(5), max_nodes=60, random_state=0).fit(X, y)
    explainer = shap.TreeExplainer(model.estimator_)
    total = explainer.shap_values(X_test).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict_proba(X_test), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validation": 0.0}, "between 0 and 1"),
        ({"validation": 1}, "between 0 and 1"),
        ({"validation": "auto"}, "between 0 and 1"),
        ({"max_nodes": 0}, "nearest"),
        ({"solver": "magic"}, "weakest_link"),
        ({"rule": "luck"}, "one_se"),
        ({"estimator": DecisionTreeRegressor()}, "PrunedRegressor"),
        ({"estimator": DecisionTreeClassifier(), "prefit": True}, "not fitted"),
    ],
)
def test_bad_parameters_get_a_clear_error(cancer, change, message):
    with pytest.raises(ValueError, match=message):
        PrunedClassifier(**change).fit(cancer[0], cancer[2])


def test_too_few_rows_get_a_clear_error():
    with pytest.raises(ValueError, match="more rows"):
        PrunedClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="zero for every row"):
        PrunedRegressor().fit([[0.0], [1.0]], [0, 1], sample_weight=[0, 0])
