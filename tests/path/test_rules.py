from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from secateur import prune_path
from secateur.path import PathInfo
from secateur.path.guard import guard_for
from secateur.path.rules import certificate, choose

TABLE = {
    "n_nodes": np.array([9, 7, 5, 3, 1]),
    "n_leaves": np.array([5, 4, 3, 2, 1]),
    "n_trees": np.array([1, 1, 1, 1, 1]),
    "depth": np.array([4, 3, 2, 1, 0]),
    "n_features": np.array([3, 3, 2, 1, 0]),
    "cost": np.array([9.0, 7.0, 5.0, 3.0, 1.0]),
    "risk": np.array([0.1, 0.1, 0.2, 0.3, 0.9]),
}
INFO = PathInfo(loss="zero_one", cost="nodes", made_on_rows=100)
LOSSES = {"loss": np.array([1.0, 0.8, 0.85, 1.01, 3.0]), "loss_se": np.full(5, 0.06), "increase_se": np.zeros(5)}
EVALUATED = {**TABLE, **LOSSES}


NEAR = {**EVALUATED, "loss": np.array([1.0, 0.8, 0.807, 0.9, 3.0])}


def test_without_limits_the_cheapest_within_one_per_cent_of_the_lowest_loss_wins():
    assert choose(NEAR, INFO, {}) == 2
    assert choose(NEAR, INFO, {}, "lowest") == 1


def test_a_measured_increase_is_guarded_against_luck():
    table = {**EVALUATED, "increase_se": np.array([0.0, 0.1, 0.1, 0.1, 0.1])}
    clones = replace(INFO, clones=5)
    # Point 3 has a loss of 1.01 and a standard error of 0.1; 3 of them may not exceed the limit by more than 0.1.
    for margin, guard, info in ((0.2, None, INFO), (0.2, None, clones), (0.05, 0.5, INFO), (0.3, 3.0, clones)):
        assert choose(table, info, {"max_loss_increase": margin + 0.011}, guard=guard) == 3
        assert choose(table, info, {"max_loss_increase": margin + 0.009}, guard=guard) == 2
    few = {**table, "increase_se": np.full(5, 0.01)}
    for margin, info in ((0.0084, INFO), (0.01, clones)):
        assert choose(few, info, {"max_loss_increase": margin + 0.0101}) == 3
        assert choose(few, info, {"max_loss_increase": margin + 0.0099}) == 2


def test_the_rows_needed_would_let_the_guard_pass():
    guard, loss, error = guard_for(None), np.array([0.9, 1.2]), np.array([0.5, 0.5])
    needed = guard.rows_needed(loss, error, 1.0, 1.02, 50)
    assert guard.upper(loss, error, 1.0).min() > 1.02
    enough = guard.upper(loss, error * np.sqrt(50 / needed), 1.0)
    assert enough[0] <= 1.02 < enough[1]
    assert guard.rows_needed(loss[1:], error[1:], 1.0, 1.02, 50) is None


def test_without_evaluation_the_risk_decides_and_ties_go_to_the_smaller():
    assert choose(TABLE, INFO, {}) == 1


def test_limits_filter_before_the_lowest_loss_wins():
    assert choose(EVALUATED, INFO, {"max_nodes": 6}) == 2
    assert choose(EVALUATED, INFO, {"max_depth": 1, "max_features": 1}) == 3


def test_with_a_loss_increase_the_smallest_wins():
    assert choose(EVALUATED, INFO, {"max_loss_increase": 0.01}) == 3
    assert choose(EVALUATED, INFO, {"max_loss_increase": 0.0}) == 2
    assert choose(EVALUATED, INFO, {"max_loss_increase": 5.0}) == 4


def test_one_standard_error_is_counted_from_the_lowest_loss():
    assert choose(EVALUATED, INFO, {}, "one_se") == 2


def test_one_per_cent_is_counted_from_the_lowest_loss():
    assert choose(EVALUATED, INFO, {}, "one_percent") == 1
    assert choose(NEAR, INFO, {}, "one_percent") == 2


def test_a_limit_nothing_satisfies_names_the_nearest_point():
    with pytest.raises(ValueError, match=r"max_nodes=0.*nearest, point 4, has n_nodes = 1"):
        choose(EVALUATED, INFO, {"max_nodes": 0})
    with pytest.raises(ValueError, match=r"nearest, point 4, has loss 3 and 1 nodes"):
        choose(EVALUATED, INFO, {"max_nodes": 1, "max_loss_increase": 0.01})


def test_a_loss_increase_needs_an_evaluated_path():
    with pytest.raises(ValueError, match=r"Call path\.evaluate"):
        choose(TABLE, INFO, {"max_loss_increase": 0.01})
    with pytest.raises(ValueError, match=r"Call path\.evaluate"):
        choose(TABLE, INFO, {}, "one_se")


def test_an_unknown_rule_names_the_known_ones():
    with pytest.raises(ValueError, match="one_se"):
        choose(EVALUATED, INFO, {}, "guess")


def test_fullest_takes_the_largest_of_each_ridge_and_of_these_the_best():
    table = {
        "n_nodes": np.array([90, 48, 47, 30, 20, 50]),
        "ridge": np.array([0.0, 5.0, 25.0, 25.0, 5.0, 0.0]),
        "kept": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
        "cost": np.arange(6.0),
        "loss": np.array([0.0, 0.4, 0.3, 0.1, 0.05, 0.5]),
    }
    runs = replace(INFO, runs=("ridge", "kept"))
    assert choose(table, runs, {"max_nodes": 50}) == 4
    assert choose(table, runs, {"max_nodes": 50}, "fullest") == 2
    assert choose(table, runs, {"max_nodes": 40}, "fullest") == 4
    assert choose(table, replace(INFO, runs=("ridge",)), {"max_nodes": 50}, "fullest") == 2
    assert choose(table, INFO, {"max_nodes": 50}, "fullest") == 5


def test_a_certificate_holds_for_all_of_the_budget_not_only_for_what_was_spent():
    cost, risk = np.array([2.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.6])  # of all prunings; the path misses the last
    penalty = np.array([0.0, 0.5])
    bound = (risk + penalty[:, None] * cost).min(axis=1)
    proof = certificate({"cost": cost[:2], "risk": risk[:2], "penalty": penalty, "bound": bound}, 1, max_cost=1.0)
    assert proof["max_cost"] == 1.0
    assert proof["least_risk"] <= risk[cost <= 1.0].min()
    assert proof["gap"] >= 1.0 - risk[cost <= 1.0].min()


def test_the_smallest_point_within_a_risk_is_the_same_after_evaluating_on_other_rows():
    X, y = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 4.0])
    path = prune_path(DecisionTreeRegressor(random_state=0).fit(X, y), X, y)
    judged = path.evaluate(X, y + 100)
    for risk in path.table["risk"]:
        within = path.table["risk"] <= risk
        assert judged.smallest(risk).row["n_nodes"] == path.table["n_nodes"][within].min()
