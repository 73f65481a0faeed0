"""Losses that are not sums over rows, and their parameters."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from tests.cases import case

import secateur as sc
from secateur.errors import InvalidInputError
from secateur.losses import RankCorrelation, loss_named


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
