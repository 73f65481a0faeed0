"""Models are pruned and judged by the loss they were trained for, or by their own scores."""

import warnings

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, IsolationForest
from tests.in_one_test import for_each

import secateur as sc
from secateur.errors import UnknownObjectiveWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 5))
MEAN = np.exp(0.5 * X[:, 0] + 0.5 * np.abs(X[:, 1]))
SPREAD = MEAN + X[:, 2].clip(0) * RNG.normal(size=len(X)) + 0.3 * RNG.normal(size=len(X))
TRAIN, REST, TEST = np.split(np.arange(len(X)), [1200, 2000])
XGB = {"n_estimators": 60, "max_depth": 3, "learning_rate": 0.2, "n_jobs": 1}
LGB = {"n_estimators": 60, "num_leaves": 8, "verbose": -1, "n_jobs": 1}
CAT = {"iterations": 60, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def quantile_models(level):
    return {
        "gradient boosting": GradientBoostingRegressor(loss="quantile", alpha=level, n_estimators=60, random_state=0),
        "histograms": HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=60),
        "xgboost": xgboost.XGBRegressor(objective="reg:quantileerror", quantile_alpha=level, **XGB),
        "lightgbm": lightgbm.LGBMRegressor(objective="quantile", alpha=level, **LGB),
        "catboost": catboost.CatBoostRegressor(loss_function=f"Quantile:alpha={level}", **CAT),
    }


@pytest.mark.parametrize("level", [0.1, 0.9])
@pytest.mark.parametrize("name", quantile_models(0.5))
def test_a_pruned_quantile_is_a_quantile(name, level):
    model = quantile_models(level)[name].fit(X[TRAIN], SPREAD[TRAIN])
    assert sc.as_forest(model).objective == f"quantile:{level}"
    path = sc.prune_path(model, X[TRAIN], SPREAD[TRAIN]).evaluate(X[REST], SPREAD[REST])
    before = abs(np.mean(SPREAD[TEST] <= model.predict(X[TEST])) - level)
    # The standard error of the difference of two coverages on the same number of rows.
    error = np.sqrt(2 * level * (1 - level) / len(TEST))
    for factor in (3, 10, 30):
        pruned = path.select(max_nodes=sc.as_forest(model).n_nodes // factor)
        after = abs(np.mean(SPREAD[TEST] <= pruned.to_model().predict(X[TEST])) - level)
        assert after <= before + 3 * error


COUNTS = RNG.poisson(MEAN).astype(float)
AMOUNTS = MEAN * RNG.gamma(2.0, 0.5, len(X))
ZEROS = COUNTS * RNG.gamma(2.0, 0.5, len(X))
LOSSES = {
    "lightgbm, poisson": (lightgbm.LGBMRegressor(objective="poisson", **LGB), COUNTS, "poisson"),
    "xgboost, poisson": (xgboost.XGBRegressor(objective="count:poisson", **XGB), COUNTS, "poisson"),
    "catboost, poisson": (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), COUNTS, "poisson"),
    "histograms, poisson": (HistGradientBoostingRegressor(loss="poisson", max_iter=60), COUNTS, "poisson"),
    "lightgbm, gamma": (lightgbm.LGBMRegressor(objective="gamma", **LGB), AMOUNTS, "gamma"),
    "xgboost, gamma": (xgboost.XGBRegressor(objective="reg:gamma", **XGB), AMOUNTS, "gamma"),
    "histograms, gamma": (HistGradientBoostingRegressor(loss="gamma", max_iter=60), AMOUNTS, "gamma"),
    "lightgbm, tweedie": (lightgbm.LGBMRegressor(objective="tweedie", **LGB), ZEROS, "tweedie:1.5"),
    "xgboost, tweedie": (xgboost.XGBRegressor(objective="reg:tweedie", **XGB), ZEROS, "tweedie:1.5"),
    "catboost, tweedie": (
        catboost.CatBoostRegressor(loss_function="Tweedie:variance_power=1.5", **CAT),
        ZEROS,
        "tweedie:1.5",
    ),
    "lightgbm, huber": (lightgbm.LGBMRegressor(objective="huber", **LGB), SPREAD, "huber:0.9"),
    "catboost, huber": (catboost.CatBoostRegressor(loss_function="Huber:delta=0.9", **CAT), SPREAD, "huber:0.9"),
    "xgboost, pseudo-huber": (
        xgboost.XGBRegressor(objective="reg:pseudohubererror", **XGB),
        SPREAD,
        "pseudo_huber:1",
    ),
    "gradient boosting, absolute error": (
        GradientBoostingRegressor(loss="absolute_error", n_estimators=60, random_state=0),
        SPREAD,
        "absolute_error",
    ),
    "lightgbm, absolute error": (lightgbm.LGBMRegressor(objective="l1", **LGB), SPREAD, "absolute_error"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_model_is_fitted_by_its_own_loss(name):
    model, y, loss = LOSSES[name]
    forest = sc.as_forest(model.fit(X[TRAIN], y[TRAIN]))
    assert forest.objective == loss
    small = sc.prune(model, X[TRAIN], y[TRAIN], validation=(X[REST], y[REST]), max_nodes=forest.n_nodes // 8)
    measure = sc.losses.loss_named(loss)
    after, before = (float(measure.of(m.predict(X[TEST])[:, None], y[TEST, None]).mean()) for m in (small, model))
    assert after < 1.15 * before


OWN_SCORES = {
    "cox": (xgboost.XGBRegressor(objective="survival:cox", **XGB), MEAN),
    "several quantiles": (
        xgboost.XGBRegressor(objective="reg:quantileerror", quantile_alpha=np.array([0.1, 0.9]), **XGB),
        SPREAD,
    ),
    "several quantiles, catboost": (
        catboost.CatBoostRegressor(loss_function="MultiQuantile:alpha=0.1,0.9", **CAT),
        SPREAD,
    ),
    "several labels, catboost": (
        catboost.CatBoostClassifier(loss_function="MultiLogloss", **CAT),
        (X[:, :2] > 0).astype(int),
    ),
}


def survival_times():
    """Return a booster of an accelerated failure time model."""
    rows = xgboost.DMatrix(X[TRAIN])
    rows.set_float_info("label_lower_bound", MEAN[TRAIN])
    rows.set_float_info("label_upper_bound", np.where(X[TRAIN, 4] > 1, np.inf, MEAN[TRAIN]))
    return xgboost.train({"objective": "survival:aft", "max_depth": 3, "nthread": 1}, rows, 40)


@for_each("name", [*OWN_SCORES, "aft"])
def test_a_model_without_a_usable_loss_is_compared_with_its_own_scores(name):
    model, y = OWN_SCORES.get(name, (None, None))
    model = survival_times() if model is None else model.fit(X[TRAIN], y[TRAIN])
    forest = sc.as_forest(model)
    assert forest.objective == "score_error"
    path = sc.prune_path(model, X[REST]).evaluate(X[TEST])
    chosen = path.select(max_loss_increase=0.05)
    assert chosen.row["n_nodes"] < 0.7 * forest.n_nodes
    assert path.table["loss"][0] == pytest.approx(0, abs=1e-9)
    before, after = path[0].raw(X[TEST]), chosen.raw(X[TEST])
    assert np.mean((after - before) ** 2) == pytest.approx(chosen.row["loss"], rel=1e-6)


def test_several_labels_are_pruned_by_log_loss():
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0, X[:, 3] > 1]).astype(int)
    model = xgboost.XGBClassifier(**XGB).fit(X[TRAIN], labels[TRAIN])
    small = sc.prune(model, X[REST], labels[REST], max_nodes=150, validation=0.3)
    assert sc.as_forest(small).n_nodes <= 150
    assert (small.predict(X[TEST]) == labels[TEST]).mean() > 0.8


def test_limits_mean_something_for_models_judged_by_their_own_scores():
    features, _ = load_breast_cancer(return_X_y=True)
    model = IsolationForest(n_estimators=50, random_state=0).fit(features[::2])
    sizes = []
    for increase in (0.01, 0.05, 0.2):
        small = sc.prune(model, features[::2], max_loss_increase=increase, validation=0.5)
        correlation = spearmanr(model.score_samples(features[1::2]), small.score_samples(features[1::2]))[0]
        assert correlation > 1 - 2 * increase
        sizes.append(sc.as_forest(small).n_nodes)
    assert sc.as_forest(model).n_nodes > sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize(
    "ranker", [lightgbm.LGBMRanker(**LGB), xgboost.XGBRanker(**XGB)], ids=lambda r: type(r).__name__
)
def test_rankers_are_pruned_within_a_fraction_of_the_variance_of_their_scores(ranker):
    relevance = np.clip(np.round(MEAN), 0, 4).astype(int)
    model = ranker.fit(X[TRAIN], relevance[TRAIN], group=[20] * (len(TRAIN) // 20))
    small = sc.prune(model, X[REST], max_loss_increase=0.05)
    assert sc.as_forest(small).n_nodes < 0.7 * sc.as_forest(model).n_nodes
    before, after = model.predict(X[TEST]), small.predict(X[TEST])
    assert np.mean((after - before - (after - before).mean()) ** 2) < 0.15 * before.var()


def asymmetric(y_true, y_pred):
    residual = y_pred - y_true
    return np.where(residual > 0, 0.2, 1.8) * residual, np.ones_like(residual)


@pytest.mark.parametrize(
    "model",
    [xgboost.XGBRegressor(objective=asymmetric, **XGB), lightgbm.LGBMRegressor(objective=asymmetric, **LGB)],
    ids=lambda model: type(model).__name__,
)
def test_a_custom_objective_is_noticed(model):
    model.fit(X[TRAIN], SPREAD[TRAIN])
    with pytest.warns(UnknownObjectiveWarning, match="custom objective"):
        path = sc.prune_path(model, X[REST], SPREAD[REST])
    assert path.info.loss == "score_error"


def test_a_booster_that_is_no_model_of_the_mean_is_noticed():
    rows = xgboost.DMatrix(X[TRAIN], SPREAD[TRAIN])
    options = {"max_depth": 3, "nthread": 1}
    honest = xgboost.train(options, rows, 30)
    sc.prune_path(honest, X[REST], SPREAD[REST])
    other = xgboost.train(options, rows, 30, obj=lambda p, data: asymmetric(data.get_label(), p))
    with pytest.warns(UnknownObjectiveWarning, match="standard errors on average"):
        sc.prune_path(other, X[REST], SPREAD[REST])


@pytest.mark.parametrize(
    ("model", "offset"),
    [
        (xgboost.XGBRegressor(n_estimators=5), "base_margin"),
        (lightgbm.LGBMRegressor(n_estimators=5, verbose=-1), "init_score"),
        (catboost.CatBoostRegressor(iterations=5, verbose=0, allow_writing_files=False), "baseline"),
    ],
)
def test_a_model_trained_with_offsets_is_noticed(model, offset):
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] + 50
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownObjectiveWarning)
        sc.prune_path(model.fit(X, y), X, y)
    model.fit(X, y, **{offset: np.full(100, 40.0)})
    with pytest.warns(UnknownObjectiveWarning, match=offset):
        sc.prune_path(model, X, y)
