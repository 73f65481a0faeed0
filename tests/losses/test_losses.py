"""Losses that are not sums over rows, and their parameters."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import get_scorer_names, log_loss, roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from tests.cases import case

import secateur as sc
from secateur.errors import InvalidInputError
from secateur.losses import ALIASES, LogLoss, RankCorrelation, loss_named


@pytest.mark.parametrize("seed", range(5))
def test_ranking_error_is_one_minus_auc_of_the_native_model(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (60, 3)), rng.integers(0, 2, 60)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:30], y[:30])
    path = sc.prune_path(tree, X[:30], y[:30], loss="auc").evaluate(X[30:], y[30:])
    for point in range(len(path)):
        score = path[point].to_model().predict_proba(X[30:])[:, 1]
        assert path.table["loss"][point] == pytest.approx(1 - roc_auc_score(y[30:], score))


def test_a_pruning_set_with_one_class_cannot_be_ranked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    path = sc.prune_path(DecisionTreeClassifier(random_state=0).fit(X, y), X, y, solver="max_heap", loss="auc")
    with pytest.raises(ValueError, match=r"All 60 rows are of one class.*AUC is undefined.*Pass rows of both classes"):
        path.evaluate(X, np.zeros(60, int))


def test_ranking_is_for_two_classes():
    three = case("tree classifier")
    with pytest.raises(ValueError, match="auc"):
        sc.prune_path(three.model, three.X, three.y, loss="auc")


@pytest.mark.parametrize("text", ["quantile:nan", "quantile:1", "huber:0", "pseudo_huber:-1", "tweedie:2", "tweedie:1"])
def test_numbers_without_meaning_are_refused(text):
    with pytest.raises(InvalidInputError, match=r"but it must be greater than .*Pass such a number"):
        loss_named(text)


def test_rank_correlation_is_that_of_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50, 1))
    assert RankCorrelation().of(a, b).mean() == pytest.approx(1 - spearmanr(a[:, 0], b[:, 0])[0])


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_a_name_of_scikit_learn_is_that_of_the_loss(alias, name):
    assert alias in [*get_scorer_names(), "neg_mean_pinball_loss"]
    assert loss_named(alias).text == loss_named(name).text


def test_an_alias_takes_the_number_of_its_loss():
    assert loss_named("neg_mean_pinball_loss").text == "quantile:0.5"
    assert loss_named("neg_mean_pinball_loss:0.9").text == "quantile:0.9"


@pytest.mark.parametrize(
    ("alias", "name", "recipe"),
    [
        ("neg_log_loss", "log_loss", "tree classifier"),
        ("neg_brier_score", "brier", "random forest classifier, missing values"),
        ("accuracy", "zero_one", "random forest classifier"),
        ("roc_auc", "auc", "gradient boosting classifier"),
        ("neg_mean_squared_error", "squared_error", "tree regressor"),
        ("r2", "squared_error", "tree regressor"),
        ("neg_mean_absolute_error", "absolute_error", "random forest regressor"),
        ("neg_mean_poisson_deviance", "poisson", "hist boosting regressor, poisson"),
    ],
)
def test_an_alias_chooses_the_same_point(alias, name, recipe):
    model = case(recipe)
    points = []
    for loss in (alias, name):
        path = sc.prune_path(model.model, model.X[:100], model.y[:100], solver="weakest_link", loss=loss)
        chosen = path.evaluate(model.X[100:], model.y[100:], loss=loss).select(max_loss_increase=0.05)
        points.append((chosen.point, chosen.row["loss"], chosen.info.loss))
    assert points[0] == points[1]
    assert points[0][2] == name


def test_an_unknown_loss_names_near_ones():
    with pytest.raises(InvalidInputError, match=r"'neg_logloss' is unknown.*Did you mean neg_log_loss or log_loss"):
        loss_named("neg_logloss")


@pytest.mark.parametrize(
    ("loss", "advice"),
    [
        (log_loss, "pass it as scoring="),
        (LogLoss, r"Pass loss=LogLoss\(\) or loss='log_loss'"),
        (3, "one of the names"),
    ],
)
def test_what_is_no_loss_is_refused_with_advice(loss, advice):
    model = case("tree classifier")
    with pytest.raises(InvalidInputError, match=advice):
        sc.prune_path(model.model, model.X, model.y, loss=loss)
