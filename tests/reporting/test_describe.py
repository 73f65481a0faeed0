"""The dict of a report holds the numbers of the path, and what it measures is what the model does."""

import json
import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from secateur.path.rules import certificate
from secateur.reporting import describe


def test_the_table_is_that_of_the_path(single):
    description = describe(single.path)
    for name, column in single.path.table.items():
        assert description["table"][name] == [None if x != x else x for x in column.tolist()]
    assert description["summary"] == single.path[description["point"]].summary()


def test_it_is_plain_json(single, ensemble, priced):
    for made in (single, ensemble, priced):
        description = describe(made.path, *made.choose, cost=getattr(made, "cost", None))
        assert json.loads(json.dumps(description, allow_nan=False)) == description


def test_monotonic_constraints_are_described_with_the_model(single):
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = RandomForestRegressor(3, monotonic_cst=[0, -1, 1], random_state=0).fit(X[:40], X[:40, 2])
    description = describe(sc.prune_path(model, X[40:], X[40:, 2]))
    assert description["model"]["monotone"] == [{"feature": 1, "sign": -1}, {"feature": 2, "sign": 1}]
    assert "monotone" not in describe(single.path)["model"]


def test_limits_choose_as_select_does(ensemble):
    assert describe(ensemble.path, max_nodes=60)["point"] == ensemble.path.select(max_nodes=60).point
    assert describe(ensemble.path)["point"] == ensemble.path.select(rule="one_percent").point
    assert describe(ensemble.path, point=-1)["point"] == len(ensemble.path) - 1
    with pytest.raises(ValueError, match="No point of the path satisfies"):
        describe(ensemble.path, max_nodes=0)


def test_a_path_that_was_not_evaluated_is_evaluated_on_the_rows_passed(single):
    path = sc.prune_path(single.model, *single.prune)
    assert "loss" not in describe(path)["table"]
    description = describe(path, *single.choose)
    assert description["table"]["loss"] == path.evaluate(*single.choose).table["loss"].tolist()


def test_bytes_of_the_chosen_and_of_the_unpruned_model_are_measured(ensemble):
    description = describe(ensemble.path, max_nodes=100)
    chosen = ensemble.path.source.n_bytes(ensemble.path[description["point"]].to_model())
    assert description["table"]["bytes"][0] == ensemble.path.source.n_bytes(ensemble.model)
    assert description["table"]["bytes"][description["point"]] == chosen


def test_points_within_one_standard_error_are_counted(ensemble):
    table, sure = ensemble.path.table, describe(ensemble.path)["sure"]
    best = min(range(len(ensemble.path)), key=lambda k: table["loss"][k])
    bound = table["loss"][best] + table["loss_se"][best]
    within = [k for k in range(len(ensemble.path)) if table["loss"][k] <= bound]
    assert (sure["best"], sure["within"]) == (best, len(within))
    assert table["cost"][sure["cheapest"]] == min(table["cost"][k] for k in within)


def test_the_gap_of_every_point_is_the_certified_one(priced):
    gaps = describe(priced.path)["sure"]["gap"]
    for point, gap in enumerate(gaps):
        assert gap == certificate(priced.path.table, point, None)["gap"]


def test_calibration_is_the_difference_of_accuracy_and_probability(ensemble):
    X, y = ensemble.choose
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    measured = describe(ensemble.path, X, y, sample_weight=weight)["measured"]
    for point, found in zip(measured["points"], measured["calibration"], strict=True):
        probabilities = ensemble.path[point].predict_proba(X)
        gaps = np.zeros(10)
        for row, label, w in zip(probabilities, y, weight, strict=True):
            gaps[max(min(math.floor(row.max() * 10), 9), 0)] += w * ((row.argmax() == label) - row.max())
        assert found == pytest.approx(np.abs(gaps).sum() / weight.sum(), abs=1e-12)


def test_models_without_probabilities_have_no_calibration():
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = RandomForestRegressor(3, random_state=0).fit(X[:40], X[:40, 0])
    description = describe(sc.prune_path(model, X[40:], X[40:, 0]), X[40:], X[40:, 0])
    assert set(description["measured"]["calibration"]) == {None}


def test_the_chosen_the_first_and_the_last_point_are_always_measured(ensemble, monkeypatch):
    monkeypatch.setattr("secateur.reporting.description.MOST_MEASURED", 4)
    monkeypatch.setattr("secateur.reporting.description.MOST_TIMED", 4)
    measured = describe(ensemble.path, *ensemble.choose, point=5)["measured"]
    last = len(ensemble.path) - 1
    for points in (measured["points"], measured["timed"]):
        assert {0, 5, last} <= set(points)
        assert len(points) <= 4


def test_a_model_that_does_not_accept_the_rows_is_timed_by_secateur(single):
    path = sc.prune_path(sc.as_forest(single.model), single.prune[0].to_numpy(), _codes(single.prune[1]))
    description = describe(path, single.choose[0].to_numpy(), _codes(single.choose[1]))
    assert {model["engine"] for model in description["measured"]["latency"]["models"]} == {"secateur"}


def test_the_prunings_of_the_timed_points_are_timed_with_one_row_and_with_a_batch(ensemble):
    X, _ = ensemble.choose
    measured = describe(ensemble.path, X)["measured"]
    models = measured["latency"]["models"]
    assert [model["name"] for model in models] == [f"point {point}" for point in measured["timed"]]
    for model in models:
        assert (model["engine"], model["one_row"]["rows"], model["batch"]["rows"]) == ("sklearn", 1, len(X))
        assert all(0 < model[key]["q05"] <= model[key]["median"] <= model[key]["q95"] for key in ("one_row", "batch"))


def test_rows_without_targets_give_times_and_prices_but_no_calibration(priced):
    X, y = priced.choose
    measured = describe(priced.path, X, cost=priced.cost)["measured"]
    whole = describe(priced.path, X, y, cost=priced.cost)["measured"]
    assert "calibration" not in measured
    assert measured["bills"] == whole["bills"]
    assert "loss" not in describe(sc.prune_path(priced.model, *priced.prune), X)["table"]


def test_risk_is_marked_as_loss_only_if_it_is_the_same_quantity(single, ensemble, priced):
    assert describe(single.path)["risk_is_loss"]  # one tree: its own loss is the model's
    assert describe(ensemble.path)["risk_is_loss"]
    assert not describe(priced.path)["risk_is_loss"]  # the mean of the trees' losses
    other = single.path.evaluate(*single.choose, loss=sc.losses.LogLoss())
    assert not describe(other)["risk_is_loss"]


def test_baselines_must_be_evaluated(ensemble):
    other = sc.prune_path(ensemble.model, *ensemble.prune, solver="fewer_trees")
    with pytest.raises(ValueError, match="Baseline 'fewer' has not been evaluated"):
        describe(ensemble.path, baselines={"fewer": other})
    other = other.evaluate(*ensemble.choose)
    baseline = describe(ensemble.path, baselines={"fewer": other})["baselines"]["fewer"]
    assert baseline["loss"] == other.table["loss"].tolist()


def test_prunings_of_clones_are_described_without_trees():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import RandomForestClassifier

    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(4, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(model, X[1::2], y[1::2], cost=sc.costs.FeatureCost([1, 2, 3, 4]), regrow=True)
    description = describe(path, X[1::2], y[1::2])
    assert description["trees"] == []
    for point in range(0, len(path), 5):
        feature = path[point].forest.feature
        for number, steps in zip(description["features"]["number"], description["features"]["steps"], strict=True):
            assert [count for start, count in steps if start <= point][-1] == (feature == number).sum()


def _codes(names):
    return np.unique(names, return_inverse=True)[1]


def test_warnings_of_a_library_about_feature_names_are_suppressed(single, recwarn):
    X, y = single.choose  # the model knows the names of columns, and is timed on rows without
    describe(single.path, X.to_numpy(), y)
    assert not [str(one.message) for one in recwarn if "feature names" in str(one.message)]


def test_a_report_has_the_scores_of_the_path(single):
    path = sc.prune_path(single.model, *single.prune, solver="weakest_link").evaluate(
        *single.choose, scoring="f1_macro"
    )
    description = describe(path)
    assert description["table"]["score"] == path.table["score"].tolist()
    assert description["facts"]["scoring"] == description["summary"]["score"]["name"] == "f1_macro"
    assert describe(single.path)["summary"]["score"] is None
    assert "f1_macro" in path._repr_html_()
    assert "f1_macro" in path.select()._repr_html_()
    assert "f1_macro" in repr(path.select())
