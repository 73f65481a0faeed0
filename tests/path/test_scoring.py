"""Scores are those of scikit-learn's scorers for the native pruned models, and points are chosen by them."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, get_scorer, make_scorer, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from tests.cases import RECIPES, adapter_of, case

import secateur as sc
from secateur.api import prune_point
from secateur.errors import InvalidInputError, NoisyChoiceWarning, NoPruningWithinLimitsError
from secateur.path.score_columns import MOST_DRAWS

LABELS = ["accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss"]
BINARY = [*LABELS, "roc_auc", "average_precision", "neg_brier_score"]
NUMBERS = ["r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_median_absolute_error"]


def scorers_for(adapter):
    forest = adapter.forest
    if not adapter.supervised or len(forest.n_classes) > 1:
        return []
    if not forest.n_classes:
        return NUMBERS
    if forest.n_classes != (2,):
        return [*LABELS, "roc_auc_ovr"]
    # Scorers whose positive label is 1 refuse other labels, also for the native model.
    return BINARY if adapter.labels()[1] == 1 else [*LABELS, "roc_auc"]


def short_path(recipe, n_points=4):
    model = case(recipe)
    return model, sc.prune_path(
        model.model, model.X, model.y, sample_weight=model.sample_weight, solver="weakest_link"
    ).thin(n_points)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.filterwarnings("ignore")
def test_scores_are_those_of_the_native_models(recipe):
    for scoring in scorers_for(adapter_of(recipe)):
        model, path = short_path(recipe)
        found = path.evaluate(model.X, model.y, scoring=scoring)
        for point in range(len(path)):
            expected = get_scorer(scoring)(path[point].to_model(), model.X, model.y)
            assert found.table["score"][point] == pytest.approx(expected, rel=1e-6, abs=1e-9), (scoring, point)
        assert found.info.scoring == scoring
        assert found.info.unpruned_score == found.table["score"][0]


BOOSTERS = [
    "lightgbm classifier",
    "lightgbm classifier, table",
    "lightgbm regressor",
    "xgboost_classifier_two",
    "xgboost_classifier_three",
    "xgboost_classifier_labels",
    "xgboost_classifier_stopped",
    "xgboost_regressor",
    "catboost classifier",
    "catboost classifier, threshold",
    "catboost classes",
    "catboost regressor",
]


@pytest.mark.parametrize("recipe", BOOSTERS)
@pytest.mark.filterwarnings("ignore")
def test_scores_of_boosters_are_those_of_the_native_models(recipe):
    model = case(recipe)
    path = sc.prune_path(model.model, model.X, model.y, solver="weakest_link").thin(3)
    for scoring in scorers_for(adapter_of(recipe)):
        found = path.evaluate(model.X, model.y, scoring=scoring).table["score"]
        expected = [get_scorer(scoring)(path[point].to_model(), model.X, model.y) for point in range(len(path))]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7, err_msg=scoring)


@pytest.mark.parametrize("recipe", ["lightgbm booster, binary", "xgboost_booster_logistic", "spark_tree_classes"])
def test_models_without_scikit_learns_methods_predict_labels_for_a_scorer(recipe):
    model, adapter = case(recipe), adapter_of(recipe)
    path = sc.prune_path(model.model, model.X, model.y, solver="weakest_link").thin(3)
    found = path.evaluate(model.X, model.y, scoring="accuracy", loss="zero_one")
    np.testing.assert_allclose(found.table["score"], 1 - found.table["loss"], rtol=1e-12)
    assert adapter.forest.n_classes


@pytest.fixture(scope="module")
def forest_path():
    """A path of a forest for two classes, and rows to evaluate it on."""
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(X[:200], y[:200])
    return sc.prune_path(model, X[:200], y[:200], solver="weakest_link").thin(12), X[200:], y[200:]


@pytest.mark.parametrize(
    "scorer",
    [
        make_scorer(roc_auc_score, response_method="predict_proba"),
        make_scorer(fbeta_score, beta=2),
        make_scorer(accuracy_score, greater_is_better=False),
        lambda estimator, X, y: float((estimator.predict(X) == y).mean()),
        lambda estimator, X, y: f1_score(y[:50], estimator.predict(X[:50])),
        lambda estimator, X, y: -np.abs(estimator.predict_proba(X)[:, list(estimator.classes_).index(1)] - y).max(),
    ],
)
def test_scorer_objects_and_functions_are_called_as_for_the_native_model(forest_path, scorer):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring=scorer).table["score"]
    expected = [scorer(path[point].to_model(), X, y) for point in range(len(path))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_weights_reach_scorers_that_take_them(forest_path):
    path, X, y = forest_path
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    for scoring in ("roc_auc", "accuracy"):
        found = path.evaluate(X, y, sample_weight=weight, scoring=scoring)
        expected = [get_scorer(scoring)(p.to_model(), X, y, sample_weight=weight) for p in path]
        np.testing.assert_allclose(found.table["score"], expected, rtol=1e-12)
    with pytest.raises(InvalidInputError, match=r"rows have weights, but scoring='<lambda>'.*leave them out"):
        path.evaluate(X, y, sample_weight=weight, scoring=lambda estimator, X, y: 1.0)
    path.evaluate(X, y, sample_weight=np.full(len(y), 2.0), scoring=lambda estimator, X, y: 1.0)


def test_the_highest_score_is_chosen_as_by_brute_force(forest_path):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring="f1")
    score = np.array([f1_score(y, point.to_model().predict(X)) for point in path])
    best = np.flatnonzero(score == score.max())
    assert found.select(rule="lowest").point == best[path.table["cost"][best].argmin()]
    for drop in (0.0, 0.02, 0.1):
        good = np.flatnonzero(score >= score[0] - drop)
        chosen = found.select(max_score_drop=drop, guard=0.0)
        assert chosen.row["cost"] == path.table["cost"][good].min()
        assert found.select(max_score_drop=drop, guard=1.0).row["cost"] >= chosen.row["cost"]
    small = np.flatnonzero(path.table["n_nodes"] <= 60)
    assert found.select(max_nodes=60).row["score"] == score[small].max()
    near = np.flatnonzero(score >= score.max() - 0.01 * abs(score.max()))
    assert found.select(rule="one_percent").row["cost"] == path.table["cost"][near].min()
    near = np.flatnonzero(score >= score.max() - found.table["score_se"])
    assert found.select(rule="one_se").row["cost"] == path.table["cost"][near].min()


def test_a_drop_that_no_point_stays_within_names_the_nearest(forest_path):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring="roc_auc")
    with pytest.raises(NoPruningWithinLimitsError, match=r"score at most 0\.001 below .*nearest, point \d+, has score"):
        found.select(max_score_drop=0.001, max_nodes=10)


def test_the_error_of_draws_is_near_the_closed_form(forest_path):
    path, X, y = forest_path
    closed = path.evaluate(X, y, scoring="accuracy").table["score_se"]
    # A function is not known to be a mean over rows.
    drawn = path.evaluate(X, y, scoring=lambda estimator, X, y: np.mean(estimator.predict(X) == y)).table["score_se"]
    assert (closed[3:] > 0).all()
    np.testing.assert_allclose(drawn[3:], closed[3:], rtol=4 / np.sqrt(2 * MOST_DRAWS))
    assert closed[0] == drawn[0] == 0


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "neg_brier_score"])
def test_the_error_of_a_mean_is_that_of_the_rows_differences(forest_path, scoring):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring=scoring).table["score_se"]
    losses = {
        "accuracy": lambda p: p.argmax(axis=1) != y,
        "neg_log_loss": lambda p: -np.log(np.maximum(p[np.arange(len(y)), y], np.finfo(float).eps)),
        "neg_brier_score": lambda p: (p[:, 1] - y) ** 2,
    }[scoring]
    rows = np.array([losses(point.to_model().predict_proba(X)) for point in path], float)
    np.testing.assert_allclose(found, (rows - rows[0]).std(axis=1) / np.sqrt(len(y)), rtol=1e-9, atol=1e-12)


def test_many_rows_are_drawn_in_part_and_the_error_is_that_of_all():
    X, y = make_classification(9000, 6, n_informative=4, flip_y=0.2, random_state=0)
    tree = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0).fit(X[:1000], y[:1000])
    path = sc.prune_path(tree, X[:1000], y[:1000]).thin(4)
    closed = path.evaluate(X[1000:], y[1000:], scoring="accuracy").table["score_se"]
    drawn = path.evaluate(X[1000:], y[1000:], scoring=make_scorer(accuracy_score)).table["score_se"]
    np.testing.assert_allclose(drawn, closed, rtol=4 / np.sqrt(2 * MOST_DRAWS))


def test_the_error_of_an_auc_is_that_of_delong(forest_path):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring="roc_auc").table["score_se"]
    second = y == 1
    placements = []
    for point in path:
        score = point.to_model().predict_proba(X)[:, 1]
        wins = (score[second][:, None] > score[~second]) + 0.5 * (score[second][:, None] == score[~second])
        placements.append((wins.mean(axis=1), wins.mean(axis=0)))
    for point in range(1, len(path)):
        variances = [np.var(placements[point][k] - placements[0][k]) / len(placements[0][k]) for k in (0, 1)]
        assert found[point] == pytest.approx(np.sqrt(sum(variances)), rel=1e-9)


def test_a_function_that_scores_no_other_rows_has_no_error(forest_path):
    path, X, y = forest_path
    groups = np.arange(len(y)) % 3

    def worst_group(estimator, X, y):
        right = estimator.predict(X) == y
        return min(right[groups == group].mean() for group in range(3))

    found = path.evaluate(X, y, scoring=worst_group)
    assert np.isnan(found.table["score_se"][1:]).all()
    assert found.select(max_score_drop=0.05, guard=1.0).row["score"] >= found.table["score"][0] - 0.05


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("balanced_acuracy", r"'balanced_acuracy' is unknown.*Did you mean balanced_accuracy"),
        (3, r"scoring=3 is not a scorer.*Pass one metric"),
        (["accuracy"], r"is not a scorer"),
        (lambda estimator, X, y: np.nan, r"'<lambda>' returned NaN or infinity"),
        (lambda estimator, X, y: estimator.predict(X), r"'<lambda>' returned ndarray.*one finite number is needed"),
        (lambda estimator, X, y: {}["no"], r"'<lambda>' raised KeyError"),
        (lambda estimator, X, y: estimator.predict_log_proba(X), r"raised AttributeError.*no predict_log_proba"),
    ],
)
def test_a_scorer_that_does_not_score_is_named(forest_path, scoring, message):
    path, X, y = forest_path
    with pytest.raises(InvalidInputError, match=message):
        path.evaluate(X, y, scoring=scoring)


def test_prune_says_no_before_it_starts(monkeypatch):
    model = case("tree regressor")
    X, y = model.X[:100], model.y[:100]
    monkeypatch.setattr("secateur.selection.evaluated_path.fit", None)
    with pytest.raises(InvalidInputError, match=r"scoring='f1' raised"):
        sc.prune(model.model, X, y, scoring="f1", validation=0.5)
    with pytest.raises(InvalidInputError, match=r"no scorer was given\. Pass scoring="):
        sc.prune(model.model, X, y, max_score_drop=0.1)
    with pytest.raises(InvalidInputError, match=r"max_score_drop=-1 is not a difference"):
        sc.prune(model.model, X, y, scoring="r2", max_score_drop=-1)
    with pytest.raises(TypeError, match=r"'tolerance'\. Pass it to evaluate"):
        sc.prune_path(model.model, X, y).select(tolerance=1.0)


def test_a_function_of_the_groups_of_the_validation_rows_ranks_them():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X[:200], y[:200])
    groups = np.arange(len(y) - 350) // 10

    def hits(estimator, X, y):
        second = estimator.predict_proba(X)[:, 1]
        return np.mean([y[groups == group][second[groups == group].argmax()] for group in np.unique(groups)])

    small = sc.prune(model, X[200:350], y[200:350], validation=(X[350:], y[350:]), scoring=hits, max_score_drop=0.05)
    assert hits(small, X[350:], y[350:]) >= hits(model, X[350:], y[350:]) - 0.05


@pytest.mark.filterwarnings("ignore::secateur.errors.TrainingRowsWarning", "ignore::secateur.errors.NoisyChoiceWarning")
@pytest.mark.parametrize("validation", [0.5, "cv", "refit", "oob"])
def test_prune_keeps_the_score_of_its_validation_rows(validation):
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["benign", "malignant"])[y]
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X[::2], labels[::2])
    solver = "weakest_link" if validation == "oob" else "auto"
    options = {"validation": validation, "solver": solver, "scoring": "roc_auc"}
    found = prune_point(model, X[::2], labels[::2], max_score_drop=0.02, **options)
    summary = found.summary()["score"]
    assert summary["name"] == "roc_auc"
    assert summary["after"] >= summary["before"] - 0.02
    assert found.row["n_nodes"] < sc.as_forest(model).n_nodes
    unlimited = prune_point(model, X[::2], labels[::2], **options)
    assert unlimited.row["score"] >= found.row["score"]


def test_a_mean_over_folds_is_weighted_by_their_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    found = prune_point(model, X, y, validation="cv", scoring="accuracy", loss="zero_one", max_nodes=40)
    # The mean over all rows is the weighted mean over folds.
    assert found.row["score"] == pytest.approx(1 - found.row["loss"], abs=1e-12)
    assert found.row["score_se"] == pytest.approx(found.row["increase_se"], rel=1e-9)


def test_a_noisy_score_warns():
    X, y = make_classification(400, 6, flip_y=0.2, random_state=0)
    tree = DecisionTreeClassifier(random_state=0, max_depth=5).fit(X[:200], y[:200])
    X, y = X[300:], y[300:]
    with pytest.warns(NoisyChoiceWarning, match="score accuracy may drop by 0.0001"):
        sc.prune(tree, X, y, scoring="accuracy", max_score_drop=0.0001, validation=None)


def test_the_estimator_is_a_classifier_or_a_regressor():
    seen = []

    def look(estimator, X, y):
        seen.append((is_classifier(estimator), hasattr(estimator, "predict_proba"), hasattr(estimator, "classes_")))
        return 0.0

    for recipe in ("tree classifier", "tree regressor", "random forest classifier, several targets"):
        model = case(recipe)
        sc.prune_path(model.model, model.X, model.y).thin(2).evaluate(model.X, model.y, scoring=look)
    assert set(seen) == {(True, True, True), (False, False, False)}


def test_outlier_detectors_are_scored_by_known_outliers():
    model = case("isolation forest")
    y = np.where(np.arange(len(model.X)) % 10, 1, -1)
    path = sc.prune_path(model.model, model.X, solver="weakest_link").thin(3)
    found = path.evaluate(model.X, y, scoring="roc_auc").table["score"]
    expected = [get_scorer("roc_auc")(point.to_model(), model.X, y) for point in path]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    with pytest.raises(InvalidInputError, match=r"y is missing\. Pass y"):
        path.evaluate(model.X, scoring="roc_auc")


def test_the_estimator_of_a_point_can_be_copied(forest_path):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring=lambda estimator, X, y: np.mean(deepcopy(estimator).predict(np.array(X)) == y))
    np.testing.assert_allclose(found.table["score"], path.evaluate(X, y, scoring="accuracy").table["score"])


def test_a_path_keeps_its_scores_in_a_file_and_drops_them_when_evaluated_again(forest_path, tmp_path):
    path, X, y = forest_path
    found = path.evaluate(X, y, scoring="f1")
    loaded = sc.Path.load(found.save(tmp_path / "path.npz"))
    assert loaded.info == found.info
    assert np.array_equal(loaded.table["score"], found.table["score"])
    assert loaded.select(max_score_drop=0.01).point == found.select(max_score_drop=0.01).point
    again = found.evaluate(X, y)
    assert "score" not in again.table
    assert again.info.scoring is None
    assert again.select().summary()["score"] is None


def test_files_of_paths_without_scores_load(tmp_path):
    files = sorted((Path(__file__).parents[1] / "models").glob("secateur-0.1.0-*.npz"))
    assert files
    for file in files:
        loaded = sc.Path.load(file)
        assert (loaded.info.scoring, loaded.info.unpruned_score, loaded.info.tolerance) == (None, None, None)
        with pytest.raises(InvalidInputError, match=r"has not been evaluated|Pass scoring= as well"):
            loaded.select(max_score_drop=0.1)


def test_prunings_of_retrained_clones_are_scored_as_their_models():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X[:300], y[:300])
    path = sc.prune_path(model, X[:300], y[:300], cost=sc.costs.FeatureCost(), regrow=True, solver="min_cut")
    path = path.take(np.arange(0, len(path), 8))
    found = path.evaluate(X[300:], y[300:], scoring="roc_auc")
    expected = [get_scorer("roc_auc")(point.to_model(), X[300:], y[300:]) for point in path]
    np.testing.assert_allclose(found.table["score"], expected, rtol=1e-12)


def test_rows_read_in_batches_are_scored_by_their_predictions(forest_path):
    path, X, y = forest_path
    batches = sc.Batches(X.shape, lambda: iter([X[:100], X[100:]]))
    found = path.evaluate(batches, y, scoring="accuracy").table["score"]
    assert np.array_equal(found, path.evaluate(X, y, scoring="accuracy").table["score"])
    with pytest.raises(InvalidInputError, match=r"'<lambda>' raised TypeError"):
        path.evaluate(batches, y, scoring=lambda estimator, X, y: float(X[0].mean()))


def test_a_function_gets_the_rows_as_they_were_passed():
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    model = DecisionTreeClassifier(random_state=0).fit(data.data[::2], labels[::2])
    seen = set()

    def look(estimator, X, y):
        seen.add((type(X), X.columns[0], y.dtype.kind))
        return float((estimator.predict(X) == y).mean())

    sc.prune(model, data.data[1::2], labels[1::2], scoring=look, max_score_drop=0.05, validation=0.5)
    assert seen == {(type(data.data), "mean radius", labels.dtype.kind)}


def test_estimators_choose_by_a_scorer():
    X, y = load_breast_cancer(return_X_y=True)
    model = sc.PrunedClassifier(scoring="balanced_accuracy", max_score_drop=0.02, random_state=0).fit(X, y)
    table = model.path_.table
    likely = table["score"] - 0.84 * table["score_se"] >= table["score"][0] - 0.02
    far = table["score"] - 3 * table["score_se"] >= 0.9 * table["score"][0] - 0.02
    good = likely & far
    assert sc.as_forest(model.estimator_).n_nodes == table["n_nodes"][good].min()


def test_at_most_a_fraction_of_the_predictions_changes(forest_path):
    path, X, y = forest_path
    found = path.evaluate(X, y)
    before = path[0].predict(X)
    changed = np.array([(point.predict(X) != before).mean() for point in path])
    for limit in (0.0, 0.01, 0.1, 1.0):
        chosen = found.select(max_changed=limit)
        assert chosen.row["cost"] == path.table["cost"][changed <= limit].min()
    with pytest.raises(NoPruningWithinLimitsError, match="max_changed=0"):
        found.select(max_changed=0.0, max_nodes=5)
    with pytest.raises(InvalidInputError, match="not a fraction"):
        found.select(max_changed=5)
    with pytest.raises(InvalidInputError, match="has not been evaluated"):
        path.select(max_changed=0.1)


@pytest.mark.parametrize("tolerance", [0.0, 5.0, 50.0])
def test_numbers_change_if_they_move_by_more_than_the_tolerance(tolerance):
    model = case("random forest regressor")
    path = sc.prune_path(model.model, model.X, model.y, solver="weakest_link").thin(10)
    found = path.evaluate(model.X, model.y, tolerance=tolerance)
    before = path[0].predict(model.X)
    expected = [(np.abs(point.predict(model.X) - before) > tolerance).mean() for point in path]
    np.testing.assert_allclose(found.table["changed"], expected)
    assert found.info.tolerance == (tolerance or None)


def test_prune_changes_at_most_a_fraction():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[::2], y[::2])
    small = sc.prune(tree, X[1::2], y[1::2], max_changed=0.1, validation=None)
    assert (small.predict(X[1::2]) != tree.predict(X[1::2])).mean() <= 0.1
    assert small.tree_.node_count < tree.tree_.node_count


def test_a_tolerance_is_a_number_for_models_of_numbers():
    regressor, classifier = case("tree regressor"), case("tree classifier")
    path = sc.prune_path(regressor.model, regressor.X, regressor.y)
    with pytest.raises(InvalidInputError, match=r"tolerance=-1 is not a number from 0 on"):
        path.evaluate(regressor.X, regressor.y, tolerance=-1)
    with pytest.raises(InvalidInputError, match=r"predicts labels.*Leave out tolerance"):
        sc.prune(classifier.model, classifier.X, classifier.y, tolerance=0.5)


def test_select_scores_the_points_on_the_rows_of_evaluate():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(X[::3], y[::3])
    path = sc.prune_path(model, X[1::3], y[1::3])
    by_evaluate = path.evaluate(X[2::3], y[2::3], scoring="balanced_accuracy").select(max_score_drop=0.02)
    by_select = path.evaluate(X[2::3], y[2::3]).select(scoring="balanced_accuracy", max_score_drop=0.02)
    assert by_select.point == by_evaluate.point
    assert by_select.summary()["score"] == by_evaluate.summary()["score"]
    with pytest.raises(InvalidInputError, match="needs validation rows"):
        path.select(scoring="balanced_accuracy")
