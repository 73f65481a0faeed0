"""Mistakes in arguments: each ends in a message that says what was found, what is needed and what to do."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score

import secateur as sc
from secateur.errors import FewRowsWarning, InvalidInputError, SecateurError, UnusualArgumentWarning


@pytest.fixture(scope="module")
def forest():
    X, y = load_breast_cancer(return_X_y=True)
    return RandomForestClassifier(5, random_state=0).fit(X[:300], y[:300]), X[300:], y[300:]


WRONG = {
    "number as text": ({"max_nodes": "100"}, r"max_nodes='100' is text.*Pass max_nodes=100"),
    "fraction as text": ({"max_loss_increase": "0.05"}, r"is text.*Pass max_loss_increase=0.05"),
    "percentage": ({"max_changed": "5%"}, r"max_changed='5%' is text.*Pass max_changed=0.01"),
    "list": ({"max_leaves": [8]}, r"max_leaves=\[8\] is of type list, but a number is needed"),
    "bool": ({"max_trees": True}, r"max_trees=True is of type bool, but a number"),
    "NaN": ({"max_cost": np.nan}, r"max_cost=nan is not a number"),
    "size": ({"max_bytes": "5 apples"}, r"max_bytes='5 apples' is not a size.*'5MB'"),
    "solver class": (
        {"solver": sc.solvers.BlockDescent},
        r"is a class.*Pass solver=BlockDescent\(\) or solver='block_d",
    ),
    "cost class": ({"cost": sc.costs.FeatureCost}, r"cost=FeatureCost is a class.*Pass cost=FeatureCost\(\)"),
    "loss class": ({"loss": sc.losses.Brier}, r"loss=Brier is a class.*Pass loss=Brier\(\)"),
    "solver of another kind": ({"solver": sc.losses.Brier()}, r"is of type Brier, but a Solver or one of the names"),
    "solver misspelt": ({"solver": "weakest_lnik"}, r"Did you mean weakest_link\?"),
    "solver by its class": ({"solver": "WeakestLink"}, r"Did you mean weakest_link\?"),
    "cost misspelt": ({"cost": "node"}, r"cost='node' is unknown.*Did you mean nodes\?"),
    "cost of another type": ({"cost": 3}, r"cost=3 is of type int, but a Cost or one of the names nodes"),
    "loss misspelt": ({"loss": "log_los"}, r"Did you mean log_loss"),
    "scoring misspelt": ({"scoring": "acuracy"}, r"Did you mean accuracy"),
    "metric instead of scorer": ({"scoring": accuracy_score}, r"Pass scoring=make_scorer\(accuracy_score\)"),
    "max_cost alone": ({"max_cost": 10}, r"max_cost=10 limits a cost, but no cost was given.*max_nodes"),
    "prices of some features": ({"cost": {0: 1.0}, "max_cost": 1}, r"prices has no entry for '1'"),
    "validation misspelt": ({"validation": "obb"}, r"validation='obb' is unknown.*Did you mean oob\?"),
    "validation as text": ({"validation": "0.25"}, r"Pass validation=0.25"),
    "number of folds": ({"validation": 5}, r"validation=5 is not valid.*'cv'"),
    "threads as text": ({"n_jobs": "2"}, r"n_jobs='2', but a number of threads"),
    "no threads": ({"n_jobs": 0}, r"n_jobs=0, but a number of threads"),
    "seed as text": ({"random_state": "a"}, r"random_state='a', but a whole number"),
    "confidence in per cent": (
        {"confidence": 95, "max_loss_increase": 0.1},
        r"confidence=95, but a number from 0 to 0.9",
    ),
    "confidence as text": ({"confidence": "0.95", "max_loss_increase": 0.1}, r"confidence='0.95', but a number"),
    "regrow as text": ({"regrow": "yes"}, r"regrow='yes', but True or False is needed"),
    "progress as text": ({"progress": "yes"}, r"progress='yes', but True, False or a function"),
    "suffix without dot": ({"saved_as": "onnx", "max_bytes": 1e5}, r"saved_as='onnx', but the suffix.*'.onnx'"),
    "tolerance as text": ({"tolerance": "0.1"}, r"tolerance='0.1' is not a number"),
    "weights by name": ({"sample_weight": "balanced"}, r"sample_weight='balanced' is not one number per row"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_explained(forest, mistake):
    model, X, y = forest
    given, message = WRONG[mistake]
    with pytest.raises(InvalidInputError, match=message):
        sc.prune(model, X, y, **given)


def test_validation_rows_without_targets_are_refused(forest):
    pandas = pytest.importorskip("pandas")
    model, X, y = forest
    for validation in (X, pandas.DataFrame(X), (X,), (X, None), [X, y]):
        with pytest.raises(InvalidInputError, match=r"validation is a .*Pass validation=\(X_val, y_val\)"):
            sc.prune(model, X, y, validation=validation)


def test_a_mask_may_be_a_list_or_a_series(forest):
    pandas = pytest.importorskip("pandas")
    model, X, y = forest
    mask = np.arange(len(y)) % 3 == 0
    expected = sc.prune(model, X, y, max_nodes=50, validation=mask).predict_proba(X)
    for same in (mask.tolist(), pandas.Series(mask)):
        assert np.array_equal(sc.prune(model, X, y, max_nodes=50, validation=same).predict_proba(X), expected)


def test_a_dict_or_list_of_prices_is_a_feature_cost(forest):
    model, X, y = forest
    prices = np.arange(1.0, 31.0)
    cost = sc.costs.FeatureCost(prices)
    expected = sc.prune(model, X, y, cost=cost, max_cost=20).predict_proba(X)
    for same in (dict(enumerate(prices.tolist())), prices, prices.tolist()):
        assert np.array_equal(sc.prune(model, X, y, cost=same, max_cost=20).predict_proba(X), expected)
    path = sc.prune_path(model, X, y, cost=prices.tolist(), solver="min_cut")
    assert path.info.cost == "features"


def test_sizes_of_files_are_understood(forest):
    model, X, y = forest
    expected = sc.prune(model, X, y, max_bytes=30_000, return_pruned=True)
    for size in ("30kB", "30 KB", "0.03MB", "30000"):
        assert sc.prune(model, X, y, max_bytes=size, return_pruned=True).row == expected.row
    assert expected.path.select(max_bytes="30kB").point == expected.point
    assert expected.n_bytes <= 30_000


def test_the_order_of_model_rows_and_targets_is_explained(forest):
    pandas = pytest.importorskip("pandas")
    model, X, y = forest
    with pytest.raises(SecateurError, match=r"The model comes first: pass \(model, X, y\)"):
        sc.prune(X, y, model)
    for target in (y, pandas.Series(y)):
        with pytest.raises(InvalidInputError, match=r"of shape \(269,\), but a table or matrix.*Pass X first, then y"):
            sc.prune(model, target, X)
    with pytest.raises(InvalidInputError, match="X is None"):
        sc.prune(model, None, y)
    with pytest.raises(SecateurError, match="RandomForestClassifier is a class, but a fitted model is needed"):
        sc.prune(RandomForestClassifier, X, y)


def test_a_misspelt_keyword_suggests_the_nearest(forest):
    model, X, y = forest
    for call, name, nearest in (
        (lambda **given: sc.prune(model, X, y, **given), "max_node", "max_nodes"),
        (lambda **given: sc.prune(model, X, y, **given), "sovler", "solver"),
        (lambda **given: sc.prune_path(model, X, y, **given), "sovler", "solver"),
        (sc.PrunedClassifier, "max_leafs", "max_leaves"),
    ):
        with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}'. Did you mean '{nearest}'\?"):
            call(**{name: 1})
    with pytest.raises(InvalidInputError, match=r"rule='one_sd' is unknown.*Did you mean one_se"):
        sc.prune_path(model, X, y, solver="weakest_link").select(rule="one_sd")
    with pytest.raises(TypeError, match=r"argument 'max_nodes'. Pass it to prune or path.select"):
        sc.prune_path(model, X, y, max_nodes=10)


def test_a_loss_increase_of_one_and_more_is_questioned(forest):
    model, X, y = forest
    with pytest.warns(UnusualArgumentWarning, match=r"=5 means 500 %; for 5 % pass 0.05") as found:
        sc.prune(model, X, y, max_loss_increase=5)
    assert len([w for w in found if w.category is UnusualArgumentWarning]) == 1
    assert {w.filename for w in found} == {__file__}
    path = sc.prune_path(model, X, y).evaluate(X, y)
    with pytest.warns(UnusualArgumentWarning):
        path.select(max_loss_increase=1)


def test_few_rows_to_choose_by_are_questioned_and_very_few_refused(forest):
    model, X, y = forest
    with pytest.raises(InvalidInputError, match=r"chosen by 2 row\(s\): a random 25 % of the rows.*at least 5"):
        sc.prune(model, X[:8], y[:8], max_nodes=20)
    with pytest.raises(InvalidInputError, match=r"chosen by 4 row\(s\): the validation rows"):
        sc.prune(model, X, y, validation=(X[:4], y[:4]))
    with pytest.warns(FewRowsWarning, match="chosen by 49 rows: the validation rows"):
        sc.prune(model, X, y, validation=(X[:49], y[:49]), max_nodes=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewRowsWarning)
        sc.prune(model, X, y, validation=(X[:50], y[:50]), max_nodes=20)


def test_an_estimator_checks_its_arguments_before_it_trains(forest):
    _, X, y = forest

    class Untrainable(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError

    for given in ({"max_nodes": "10"}, {"solver": "weakest"}, {"n_jobs": "2"}, {"max_loss_increase": "5%"}):
        with pytest.raises(InvalidInputError):
            sc.PrunedClassifier(Untrainable(), **given).fit(X, y)


def test_the_error_handling_of_numpy_changes_nothing(forest):
    model, X, y = forest
    options = {"validation": (X[::2], y[::2]), "max_loss_increase": 0.5, "loss": "log_loss"}

    def run():
        small = sc.prune(model, X, y, **options)
        path = sc.prune_path(model, X, y).evaluate(X, y, loss="log_loss")
        estimator = sc.PrunedClassifier(max_nodes=15, random_state=0).fit(X, y)
        chosen = path.select(max_nodes=30)
        return [m.predict_proba(X) for m in (small, chosen, estimator)], path.table["loss"]

    expected, losses = run()
    with np.errstate(all="raise"):
        found, same = run()
    assert np.array_equal(losses, same)
    for before, after in zip(expected, found, strict=True):
        assert np.array_equal(before, after)
