"""Scores that are no means over rows: the jackknife is compared with means over blocks, and its errors are counted."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import balanced_accuracy_score, log_loss, make_scorer, r2_score

import secateur as sc
from secateur.api import prune_point
from secateur.errors import NothingPrunedWarning, UnsupportedProblemError
from secateur.path.guarantee import certify
from secateur.path.score_columns import PointScores
from secateur.path.score_test import ScoredParts

N = 600


def classes(n_rows=3 * N, **options):
    X, y = make_classification(n_rows, 12, n_informative=6, flip_y=0.1, random_state=0, **options)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def boosted():
    X, y = classes(8_000)
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X[:N], y[:N])
    return sc.prune_path(model, X[:N], y[:N], solver=sc.solvers.BlockDescent(penalties=12)), X[N:], y[N:]


def parts_of(path):
    unpruned = path.on_rows(0, path.validation_rows)
    return ScoredParts(PointScores(path.scorer, unpruned, len(path)))


def test_pseudo_values_of_a_mean_are_the_means_of_blocks(boosted):
    path, X, y = boosted
    path = path.evaluate(X[:500], y[:500], scoring="neg_log_loss")
    parts, point = parts_of(path), path.on_rows(len(path) - 2, path.validation_rows)
    found = parts.pseudo_values(point)

    def losses(point):
        proba = path[point].to_model().predict_proba(X[:500])
        return np.array([log_loss(y[[i]], proba[[i]], labels=["no", "yes"]) for i in range(500)])

    drops = losses(len(path) - 2) - losses(0)
    assert parts.n_blocks == 50
    assert found.mean() == pytest.approx(drops.mean())
    # Rows were put into blocks of ten at random; any partition has their mean, and the spread of means of ten.
    assert found.std(ddof=1) == pytest.approx(drops.std(ddof=1) / np.sqrt(10), rel=0.3)
    blocks = [np.flatnonzero(parts._block_of == block) for block in range(50)]
    by_hand = [drops[parts._drawn[block]].mean() for block in blocks]
    np.testing.assert_allclose(found, by_hand, atol=1e-9)


def test_the_score_without_a_block_is_that_of_the_native_model_on_the_other_rows(boosted):
    path, X, y = boosted
    path = path.evaluate(X[:400], y[:400], scoring="balanced_accuracy")
    parts = parts_of(path)
    rows, predicted = parts._rows
    models = [path[0].to_model(), path[len(path) // 2].to_model()]
    labels = [models[0].predict(X[rows]), models[1].predict(X[predicted])]
    expected = []
    for part in parts._parts():
        before, after = (balanced_accuracy_score(y[rows][part], one[part]) for one in labels)
        expected.append(before - after)
    without, n_blocks = np.array(expected[1:]), parts.n_blocks
    by_hand = expected[0] - (n_blocks - 1) * (without - without.mean())
    found = parts.pseudo_values(path.on_rows(len(path) // 2, path.validation_rows))
    np.testing.assert_allclose(found, by_hand, atol=1e-9)


def test_added_rows_are_wrong_where_it_costs_most(boosted):
    path, X, y = boosted
    rows = np.sort(np.append(np.flatnonzero(y == "no")[:300], np.flatnonzero(y == "yes")[:30]))
    path = path.evaluate(X[rows], y[rows], scoring="balanced_accuracy")
    added, predicted = (one[len(rows) :] for one in parts_of(path)._rows)
    model = path[0].to_model()
    assert list(y[rows][added]) == list(model.predict(X[rows][added])) == ["yes"] * 3
    assert list(model.predict(X[rows][predicted])) == ["no"] * 3
    # Known scores of probabilities change a little with every row.
    assert parts_of(path.evaluate(X[rows], y[rows], scoring="roc_auc"))._rows[0].shape == (330,)


def youden(estimator, X, y):
    flagged, positive = estimator.predict_proba(X)[:, 1] > 0.4, y == "yes"
    return float(flagged[positive].mean() - flagged[~positive].mean())


def test_the_true_score_of_the_chosen_model_is_within_the_limit(boosted):
    """Of 25 draws of validation rows, the limit is exceeded in at most about as many as the confidence says."""
    path, X, y = boosted
    path = path.thin(8)
    truth = path.evaluate(X, y, scoring=youden).table["score"]
    # One point is slightly beyond the limit, so that it is the one to be chosen if the rows do not tell.
    drop = 0.99 * (truth[0] - np.sort(truth)[2])
    rng, exceeded, pruned, without = np.random.default_rng(0), 0, 0, 0
    for _ in range(25):
        rows = rng.choice(len(y), 300, replace=False)
        evaluated = path.evaluate(X[rows], y[rows], scoring=youden)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = evaluated.select(max_score_drop=drop, confidence=0.8)
        exceeded += truth[0] - truth[chosen.point] > drop
        pruned += chosen.point > 0
        without += truth[0] - truth[evaluated.select(max_score_drop=drop).point] > drop
    assert exceeded <= 10  # more has a probability below 1 % if each draw exceeds it in 20 %
    assert without > exceeded
    assert pruned


def test_labels_that_did_not_change_on_few_rows_certify_nothing():
    X, y = classes()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:N], y[:N])
    path = sc.prune_path(model, X[:N], y[:N], solver="weakest_link").take(np.array([0, 1]))
    rows = np.flatnonzero(path[1].to_model().predict(X) == model.predict(X))
    few = path.evaluate(X[rows[:40]], y[rows[:40]], scoring="f1_macro")
    assert few.table["score"][0] == few.table["score"][1]
    assert not certify(few, {"max_score_drop": 0.01}, 0.95).certified[1]
    many = path.evaluate(X[rows], y[rows], scoring="f1_macro")
    assert certify(many, {"max_score_drop": 0.02}, 0.95).certified[1]


def test_classes_with_few_rows_are_named(boosted):
    path, X, y = boosted
    no, yes = np.flatnonzero(y == "no")[:100], np.flatnonzero(y == "yes")
    for n_rows, text in [(1, "Of 101 validation rows, only 1 have the class"), (4, "only 4 have the class 'yes'")]:
        rows = np.append(no, yes[:n_rows])
        with pytest.warns(NothingPrunedWarning, match=text):
            path.evaluate(X[rows], y[rows], scoring="f1_macro").select(max_score_drop=0.01, confidence=0.95)


def test_scores_that_cannot_be_resampled_are_refused(boosted):
    path, X, y = boosted
    given = y[:300]

    def closure(estimator, X, y):
        return float((estimator.predict(X) == given).mean())

    with pytest.raises(UnsupportedProblemError, match="uses no other rows"):
        path.evaluate(X[:300], given, scoring=closure).select(max_score_drop=0.1, confidence=0.9)
    X, y = make_friedman1(2 * N, random_state=0)
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X[:N], y[:N])
    evaluated = sc.prune_path(model, X[:N], y[:N]).thin(4).evaluate(X[N:], y[N:], scoring="neg_max_error")
    with pytest.raises(UnsupportedProblemError, match="depends on a single row"):
        evaluated.select(max_score_drop=0.1, confidence=0.9)


def test_prune_certifies_r2_and_own_scores_of_numbers():
    X, y = make_friedman1(6 * N, noise=1.0, random_state=0)
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X[:N], y[:N])
    options = {"validation": (X[2 * N :], y[2 * N :]), "max_score_drop": 0.02, "confidence": 0.95}
    options["solver"] = sc.solvers.BlockDescent(penalties=12)
    known = prune_point(model, X[N : 2 * N], y[N : 2 * N], scoring="r2", **options)
    assert known.guarantee["text"] == "With 95 % confidence, the score r2 drops by at most 0.02, by 2,400 rows."
    assert known.row["n_nodes"] < known.source.forest.n_nodes / 2
    # Of a score that is not known, single rows may matter more.
    own = prune_point(model, X[N : 2 * N], y[N : 2 * N], scoring=make_scorer(r2_score), **options)
    assert known.row["n_nodes"] <= own.row["n_nodes"] < known.source.forest.n_nodes


def test_weighted_rows_are_scored_with_their_weights(boosted):
    path, X, y = boosted
    weight = np.random.default_rng(0).integers(1, 3, 400).astype(float)
    path = path.evaluate(X[:400], y[:400], sample_weight=weight, scoring="f1_macro")
    parts = parts_of(path)
    rows, predicted = parts._rows
    before, after = path[0].to_model().predict(X[rows]), path[3].to_model().predict(X[predicted])
    from sklearn.metrics import f1_score

    whole = [f1_score(y[rows], one, average="macro", sample_weight=weight[rows]) for one in (before, after)]
    assert parts.pseudo_values(path.on_rows(3, path.validation_rows)).mean() == pytest.approx(whole[0] - whole[1])
