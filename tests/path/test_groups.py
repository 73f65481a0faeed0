"""Groups of rows stay together, errors count groups, and rankings are scored by query."""

import lightgbm
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, ndcg_score

import secateur as sc
from secateur.api import prune_point
from secateur.data.row_provider import row_provider
from secateur.errors import InvalidInputError
from secateur.libraries import adapt
from secateur.path.guarantee import certify
from secateur.path.ranking_scores import ndcg
from secateur.path.score_columns import PointScores
from secateur.path.score_test import ScoredParts
from secateur.selection.validation import split_rows

N = 600


@pytest.fixture(scope="module")
def boosted():
    X, y = make_classification(3 * N, 12, n_informative=6, flip_y=0.1, random_state=0)
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:N], y[:N])
    path = sc.prune_path(model, X[:N], y[:N], solver=sc.solvers.BlockDescent(penalties=10))
    return path, X[N : 2 * N], y[N : 2 * N]


@pytest.fixture(scope="module")
def ranked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 6)).round(1)
    y = np.clip(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=1600), 0, 4).astype(int)
    groups = np.repeat(np.arange(160), 10)
    model = lightgbm.LGBMRanker(n_estimators=20, num_leaves=15, verbose=-1, n_jobs=1)
    model.fit(X[:800], y[:800], group=np.full(80, 10))
    return model, X, y, groups


def ndcg_by_hand(y, score, groups, k=None):
    """Return the mean over queries of DCG / best DCG; equal scores share the mean discount of their ranks."""
    found = []
    for group in np.unique(groups):
        relevance, predicted = y[groups == group], score[groups == group]
        discounts = [1 / np.log2(rank + 2) if k is None or rank < k else 0.0 for rank in range(len(relevance))]
        ranks = np.argsort(-predicted, kind="stable")
        gain = 0.0
        for value in np.unique(predicted):
            tied = [place for place, row in enumerate(ranks) if predicted[row] == value]
            discount = sum(discounts[place] for place in tied) / len(tied)
            gain += discount * relevance[predicted == value].sum()
        best = sum(discount * one for discount, one in zip(discounts, sorted(relevance, reverse=True), strict=True))
        if best:
            found.append(gain / best)
    return sum(found) / len(found)


@pytest.mark.parametrize("k", [None, 1, 3])
def test_ndcg_is_the_sum_by_hand_and_that_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 12, 80))
    y, score = rng.integers(0, 4, 80), rng.integers(0, 6, 80) / 4  # many ties
    y[groups == 3] = 0
    order = rng.permutation(80)
    found = ndcg(y[order], score[order], groups[order], k)
    assert found == pytest.approx(ndcg_by_hand(y, score, groups, k))
    theirs = [ndcg_score(y[None, groups == one], score[None, groups == one], k=k) for one in range(12) if one != 3]
    assert found == pytest.approx(np.mean(theirs))


@pytest.mark.parametrize(("scoring", "k"), [("ndcg", None), ("ndcg@3", 3)])
def test_a_ranker_is_scored_by_the_ndcg_of_its_queries(ranked, scoring, k):
    model, X, y, groups = ranked
    path = sc.prune_path(model, X[:800], y[:800]).thin(6)
    path = path.evaluate(X[800:], y[800:], groups=groups[800:], scoring=scoring)
    for point, score in zip(path, path.table["score"], strict=True):
        expected = ndcg_by_hand(y[800:], point.to_model().predict(X[800:]), groups[800:], k)
        assert score == pytest.approx(expected)
    assert (path.table["score_se"][1:] > 0).all()
    chosen = path.select(max_score_drop=0.02)
    assert chosen.row["score"] >= path.table["score"][0] - 0.02
    sure = path.select(max_score_drop=0.1, confidence=0.9)
    assert sure.guarantee["text"] == (
        f"With 90 % confidence, the score {scoring} drops by at most 0.1, by 800 rows in 80 groups."
    )


def test_prune_chooses_by_ndcg_and_holds_out_whole_queries(ranked):
    model, X, y, groups = ranked
    chosen = prune_point(
        model, X[800:], y[800:], groups=groups[800:], validation=0.5, scoring="ndcg@5", max_score_drop=0.05
    )
    assert chosen.row["n_nodes"] < chosen.source.forest.n_nodes
    assert chosen.info.scoring == "ndcg@5"
    assert chosen.info.evaluated_rows == 400


def test_ndcg_needs_queries(ranked):
    model, X, y, _ = ranked
    path = sc.prune_path(model, X, y).thin(3)
    with pytest.raises(InvalidInputError, match="Pass groups="):
        path.evaluate(X, y, scoring="ndcg")
    with pytest.raises(InvalidInputError, match="not the sizes of the groups"):
        path.evaluate(X, y, groups=np.full(160, 10), scoring="ndcg")
    with pytest.raises(InvalidInputError, match="'ndcg'"):
        path.evaluate(X, y, scoring="ndgc")


def test_a_function_gets_the_groups_of_the_rows(boosted):
    path, X, y = boosted
    groups = np.repeat(np.arange(150), 4)
    order = np.random.default_rng(0).permutation(N)
    sizes = []

    def first_of_each(estimator, X, y, groups):
        sizes.append(set(np.bincount(groups)))
        _, first = np.unique(groups, return_index=True)
        return float((estimator.predict(X)[first] == y[first]).mean())

    found = path.evaluate(X[order], y[order], groups=groups[order], scoring=first_of_each)
    assert all(size == {4} for size in sizes)  # also in drawn rows, where a group drawn twice is two groups
    assert len(sizes) > 10 * len(path)
    _, first = np.unique(groups[order], return_index=True)
    expected = (path[2].to_model().predict(X[order][first]) == y[order][first]).mean()
    assert found.table["score"][2] == pytest.approx(expected)


def repeated(X, y, times=3):
    """Return every row several times in a random order, each row with its copies as a group."""
    index = np.random.default_rng(0).permutation(np.repeat(np.arange(len(y)), times))
    return X[index], y[index], index


def test_copies_of_a_row_in_a_group_count_as_one_row(boosted):
    path, X, y = boosted
    X3, y3, groups = repeated(X, y)
    once, grouped = path.evaluate(X, y), path.evaluate(X3, y3, groups=groups)
    for name in ("loss", "loss_se", "changed", "increase_se"):
        np.testing.assert_allclose(grouped.table[name], once.table[name], rtol=1e-9, atol=1e-12)
    alone = path.evaluate(X3, y3)
    np.testing.assert_allclose(alone.table["increase_se"], once.table["increase_se"] / np.sqrt(3), atol=1e-12)
    # Point 7 is 1.4 standard errors below the limit by 600 rows, and would be 2.4 by 1800 independent ones.
    loss, error = once.table["loss"], once.table["increase_se"]
    limits = {"max_loss_increase": (loss[7] + 1.4 * error[7]) / loss[0] - 1}
    certified = certify(once, limits, 0.95).certified
    np.testing.assert_array_equal(certify(grouped, limits, 0.95).certified, certified)
    assert certify(alone, limits, 0.95).certified.sum() > certified.sum()
    text = certify(grouped, limits, 0.95).summary(grouped.info)["text"]
    assert text.endswith(" %, by 1,800 rows in 600 groups.")


def test_changed_predictions_of_groups_are_no_binomial_number(boosted):
    path, X, y = boosted
    X3, y3, groups = repeated(X, y)
    limits = {"max_changed": 0.2}
    n_alone = certify(path.evaluate(X3, y3), limits, 0.95).certified.sum()
    n_grouped = certify(path.evaluate(X3, y3, groups=groups), limits, 0.95).certified.sum()
    n_once = certify(path.evaluate(X, y), limits, 0.95).certified.sum()
    assert 1 < n_grouped <= n_once <= n_alone


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
def test_scores_of_copies_in_groups_have_the_error_of_single_rows(boosted, scoring):
    path, X, y = boosted
    X3, y3, groups = repeated(X, y)
    once = path.evaluate(X, y, scoring=scoring)
    grouped = path.evaluate(X3, y3, groups=groups, scoring=scoring)
    np.testing.assert_allclose(grouped.table["score_se"], once.table["score_se"], rtol=1e-6, atol=1e-12)
    values = []
    for evaluated in (once, grouped):
        rows = evaluated.validation_rows
        parts = ScoredParts(PointScores(evaluated.scorer, evaluated.on_rows(0, rows), len(path)))
        values.append(parts.pseudo_values(evaluated.on_rows(4, rows)))
    np.testing.assert_allclose(values[0], values[1], atol=1e-9)


@pytest.mark.parametrize("validation", [0.3, "cv", "refit"])
def test_groups_are_not_split(boosted, validation):
    path, X, y = boosted
    groups = np.random.default_rng(0).integers(0, 60, N)
    rows = row_provider(X, y, None, groups)
    adapter = adapt(path.source.model)
    split = split_rows(
        adapter, rows, rows.sample(adapter), validation, trees_interact=True, rng=np.random.default_rng(0)
    )
    n_validated = 0
    for fold in split.folds:
        inside, outside = groups[fold.fit_rows.row_index], groups[fold.validation_rows.row_index]
        assert len(inside) + len(outside) == N
        assert not set(inside) & set(outside)
        np.testing.assert_array_equal(np.unique(outside, return_inverse=True)[1], fold.validation_rows.units)
        n_validated += len(outside)
    assert n_validated == N if validation == "cv" else 0.15 * N < n_validated < 0.45 * N


def test_groups_that_would_be_split_or_are_missing_are_refused():
    X, y = make_classification(N, random_state=0)
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    groups, mask = np.arange(N) // 2, np.arange(N) < 301
    with pytest.raises(InvalidInputError, match="some but not all rows of 1 groups"):
        sc.prune(model, X, y, groups=groups, validation=mask)
    with pytest.raises(InvalidInputError, match="none for the groups of its rows"):
        sc.prune(model, X, y, groups=groups, validation=(X, y))
    with pytest.raises(InvalidInputError, match="other rows of the same groups"):
        sc.prune(model, X, y, groups=groups, validation="oob", solver="weakest_link")
    with pytest.raises(InvalidInputError, match="contains NaN"):
        sc.prune(model, X, y, groups=np.where(mask, 1.0, np.nan))
    with pytest.raises(InvalidInputError, match="split off 1 group"):
        sc.prune(model, -X, y, groups=np.zeros(N), validation=0.3)


def test_an_estimator_holds_out_whole_groups():
    X, y = make_classification(N, random_state=0)
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(100), 6))
    model = sc.PrunedClassifier(RandomForestClassifier(5), random_state=0, scoring="balanced_accuracy")
    model.fit(X, y, groups=groups)
    held_out = model.path_.validation_rows
    assert len(held_out) == 150
    assert (np.bincount(held_out.groups) == 6).all()
    assert accuracy_score(y, model.predict(X)) > 0.7
    with pytest.raises(InvalidInputError, match="All rows are of one group"):
        model.fit(X, y, groups=np.zeros(N))
