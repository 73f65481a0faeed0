"""Limits with confidence: compared with tests of losses computed from the native models' predictions."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import secateur as sc
from secateur.api import prune_point
from secateur.errors import InvalidInputError, NothingPrunedWarning, UnsupportedProblemError
from secateur.path.changed_rows import certify_changed
from secateur.path.confidence import certify_mean
from secateur.path.guarantee import certify

N = 600


def classes(seed=0):
    X, y = make_classification(3 * N, 12, n_informative=6, flip_y=0.1, random_state=seed)
    return X, np.array(["no", "yes"])[y]


def numbers():
    return make_friedman1(3 * N, noise=1.0, random_state=0)


@pytest.fixture(scope="module")
def boosted():
    X, y = classes()
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X[:N], y[:N])
    path = sc.prune_path(model, X[N : 2 * N], y[N : 2 * N], solver=sc.solvers.BlockDescent(penalties=20))
    return model, path, X[2 * N :], y[2 * N :]


def log_losses(model, X, y):
    column = np.searchsorted(model.classes_, y)
    return -np.log(np.clip(model.predict_proba(X)[np.arange(len(y)), column], 1e-15, 1))


def expected(path, losses, X, y, share, confidence=0.95, **options):
    """Return which points are certified, from the losses of the native models."""
    before = losses(path[0].to_model(), X, y)
    differences = [losses(point.to_model(), X, y) - (1 + share) * before for point in path][1:]
    test = certify_mean(differences, confidence, np.random.default_rng(0), **options)
    return np.append(True, test.certified)


def test_certified_points_are_those_of_the_native_losses(boosted):
    _, path, X, y = boosted
    evaluated = path.evaluate(X, y)
    certified = expected(path, log_losses, X, y, 0.2)
    assert 1 < certified.sum() < len(path)
    np.testing.assert_array_equal(certify(evaluated, {"max_loss_increase": 0.2}, 0.95).certified, certified)
    chosen = evaluated.select(max_loss_increase=0.2, confidence=0.95)
    assert chosen.point == np.flatnonzero(certified)[path.table["n_nodes"][certified].argmin()]
    assert chosen.guarantee["text"] == (
        "With 95 % confidence, the loss log_loss increases by at most 20 %, by 600 rows."
    )
    assert chosen.summary()["guarantee"] == chosen.guarantee


def test_weighted_rows_are_certified_by_weighted_means(boosted):
    _, path, X, y = boosted
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    evaluated = path.evaluate(X, y, sample_weight=weight)
    certified = expected(path, log_losses, X, y, 0.2, weight=weight)
    np.testing.assert_array_equal(certify(evaluated, {"max_loss_increase": 0.2}, 0.95).certified, certified)


def test_errors_are_certified_with_rows_for_those_not_seen(boosted):
    _, path, X, y = boosted

    def errors(model, X, y):
        return (model.predict(X) != y).astype(float)

    evaluated = path.evaluate(X, y, loss="zero_one")
    certified = expected(path, errors, X, y, 0.25, largest=1.0)
    assert certified.sum() > 1
    np.testing.assert_array_equal(certify(evaluated, {"max_loss_increase": 0.25}, 0.95).certified, certified)
    assert certified.sum() < expected(path, errors, X, y, 0.25).sum()


@pytest.mark.parametrize(("scoring", "drop"), [("accuracy", 0.03), ("neg_log_loss", 0.05)])
def test_a_drop_of_a_mean_score_is_certified(boosted, scoring, drop):
    _, path, X, y = boosted
    evaluated = path.evaluate(X, y, scoring=scoring)

    if scoring == "accuracy":
        found, largest = np.array([point.to_model().predict(X) == y for point in path], float), 1 - drop
    else:
        found, largest = -np.array([log_losses(point.to_model(), X, y) for point in path]), None
    test = certify_mean(found[0] - found[1:] - drop, 0.9, np.random.default_rng(0), largest=largest)
    guarantee = certify(evaluated, {"max_score_drop": drop}, 0.9)
    np.testing.assert_array_equal(guarantee.certified[1:], test.certified)
    assert test.certified.any()


def test_changed_predictions_are_certified_by_binomial_tests(boosted):
    _, path, X, y = boosted
    before = path[0].to_model().predict(X)
    n_changed = [int((point.to_model().predict(X) != before).sum()) for point in path][1:]
    runs = path.table["ridge"][1:]
    test = certify_changed(n_changed, len(y), runs, path.table["n_nodes"][1:], 0.15, 0.95)
    assert 0 < test.certified.sum() < len(path) - 1
    chosen = path.evaluate(X, y).select(max_changed=0.15, confidence=0.95)
    best = 1 + np.flatnonzero(test.certified)
    assert chosen.row["n_nodes"] == path.table["n_nodes"][best].min()


def test_several_limits_share_the_probability_of_error(boosted):
    _, path, X, y = boosted
    evaluated = path.evaluate(X, y)
    both = certify(evaluated, {"max_loss_increase": 0.3, "max_changed": 0.1}, 0.95)
    loss = certify(evaluated, {"max_loss_increase": 0.3}, 0.975)
    changed = certify(evaluated, {"max_changed": 0.1}, 0.975)
    np.testing.assert_array_equal(both.certified, loss.certified & changed.certified)
    assert both.confidence == 0.95
    text = both.summary(evaluated.info)["text"]
    assert "the loss log_loss increases by at most 30 % and at most 10 % of the predictions change" in text


def test_prune_returns_the_certified_point_of_a_complete_path():
    X, y = numbers()
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X[:N], y[:N])
    options = {"validation": (X[2 * N :], y[2 * N :]), "max_loss_increase": 0.1}
    sure = prune_point(model, X[N : 2 * N], y[N : 2 * N], confidence=0.95, **options)
    usual = prune_point(model, X[N : 2 * N], y[N : 2 * N], **options)
    assert sure.guarantee["limits"] == {"max_loss_increase": 0.1}
    assert usual.guarantee is None
    assert usual.row["n_nodes"] < sure.row["n_nodes"] < sure.source.forest.n_nodes


def test_the_true_loss_of_the_chosen_model_is_within_the_limit():
    """Of 40 draws of validation rows, the limit is exceeded in about as many as the confidence says, or fewer."""
    X, y = numbers()
    model = RandomForestRegressor(10, max_depth=5, random_state=0).fit(X[:N], y[:N])
    path = sc.prune_path(model, X[N : 2 * N], y[N : 2 * N], solver=sc.solvers.BlockDescent(penalties=15))
    pool, targets = make_friedman1(20_000, noise=1.0, random_state=1)
    truth = np.array([((point.predict(pool) - targets) ** 2).mean() for point in path])
    exceeded, rng = 0, np.random.default_rng(0)
    for _ in range(40):
        rows = rng.choice(len(targets), 200, replace=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = path.evaluate(pool[rows], targets[rows]).select(max_loss_increase=0.1, confidence=0.8)
        exceeded += truth[chosen.point] > 1.1 * truth[0]
    assert exceeded <= 14  # more has a probability below 1 % if each draw exceeds it in 20 %


def test_too_few_rows_return_the_model_and_say_how_many_would_do(boosted):
    _, path, X, y = boosted
    with pytest.warns(NothingPrunedWarning, match=r"30 validation rows cannot show .* max_loss_increase=0.0001"):
        chosen = path.evaluate(X[:30], y[:30]).select(max_loss_increase=1e-4, confidence=0.99)
    assert (chosen.point, chosen.guarantee) == (0, None)
    with pytest.warns(NothingPrunedWarning, match=r"Pass about [\d,]+ rows as validation"):
        path.evaluate(X[:30], y[:30]).select(max_changed=0.1, confidence=0.95)


def test_what_cannot_be_certified_is_refused(boosted):
    _, path, X, y = boosted
    evaluated = path.evaluate(X, y)
    with pytest.raises(InvalidInputError, match="without a limit"):
        evaluated.select(confidence=0.95)
    with pytest.raises(InvalidInputError, match="no rows, or read from a file"):
        path.select(max_loss_increase=0.1, confidence=0.95)
    with pytest.raises(UnsupportedProblemError, match="auc compares rows"):
        path.evaluate(X, y, loss="roc_auc").select(max_loss_increase=0.1, confidence=0.95)
    with pytest.raises(InvalidInputError, match=r"0\.999"):
        evaluated.select(max_loss_increase=0.1, confidence=1.0)
    copy = pickle.loads(pickle.dumps(evaluated))
    assert copy.validation_rows is None
    with pytest.raises(InvalidInputError, match="read from a file"):
        copy.select(max_loss_increase=0.1, confidence=0.95)


@pytest.mark.filterwarnings("ignore::secateur.errors.TrainingRowsWarning")
@pytest.mark.parametrize("validation", ["auto", "cv", "oob", 0.25, None])
def test_training_rows_certify_nothing(validation):
    X, y = classes()
    model = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X[:N], y[:N])
    options = {"max_loss_increase": 0.1, "confidence": 0.95, "validation": validation}
    with pytest.raises(InvalidInputError, match="confidence holds for rows"):
        sc.prune(model, X[:N], y[:N], **options)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_summary_says_what_is_not_guaranteed():
    X, y = classes()
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:N], y[:N])

    def text(X, y, **options):
        return prune_point(model, X, y, max_loss_increase=0.1, **options).summary()["no_guarantee"]

    training, new = (X[:N], y[:N]), (X[N:], y[N:])
    assert "5 clones of the model, trained without the rows" in text(*training, validation="cv")
    assert "a clone of the model, trained without the rows" in text(*training, validation="refit")
    assert f"that of the {N:,} rows the pruning was fitted on" in text(*training, validation=None)
    assert f"the {N // 2:,} held-out rows" in text(*new)
    assert f"kept on {2 * N:,} rows" in text(*training, validation=new)
    sure = prune_point(model, *training, validation=new, max_loss_increase=0.1, confidence=0.9).summary()
    assert "no_guarantee" not in sure
    assert sure["guarantee"]["rows"] == 2 * N
    path = sc.prune_path(model, *new).evaluate(*new).with_info(clones=5)
    with pytest.raises(InvalidInputError, match="evaluated on no new rows"):
        replace(path, validation_rows=None).select(max_loss_increase=0.1, confidence=0.9)


def test_a_share_of_new_rows_is_held_out_from_the_pruning():
    X, y = classes()
    model = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X[:N], y[:N])
    chosen = prune_point(model, X[N:], y[N:], max_loss_increase=0.2, confidence=0.9)
    assert chosen.guarantee["rows"] == chosen.info.evaluated_rows == N // 2
    assert chosen.info.made_on_rows == 3 * N // 2


def test_an_estimator_keeps_its_limits_with_confidence():
    X, y = numbers()
    estimator = RandomForestRegressor(10, max_depth=5)
    model = sc.PrunedRegressor(estimator, max_loss_increase=0.2, confidence=0.9, random_state=0).fit(X, y)
    sure = model.path_.select(max_loss_increase=0.2, confidence=0.9)
    assert sc.as_forest(model.estimator_).n_nodes == sure.row["n_nodes"]
