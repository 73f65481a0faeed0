"""Certified numbers of changed predictions: against sums over all outcomes, bisection, and known populations."""

from itertools import product
from math import comb

import numpy as np
import pytest

from secateur.errors import InvalidInputError
from secateur.path.changed_rows import certify_changed, rows_for_changed, upper_bound


def certify(n_changed, n_rows=500, runs=None, order=None, max_changed=0.05, confidence=0.95):
    runs = np.zeros(len(n_changed)) if runs is None else runs
    order = -np.arange(len(n_changed)) if order is None else order
    return certify_changed(n_changed, n_rows, runs, order, max_changed, confidence)


def at_most(k, n, q):
    """Return P(Binomial(n, q) ≤ k), term by term."""
    return sum(comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(k + 1))


@pytest.mark.parametrize("max_changed", [0.1, 0.35])
def test_p_values_are_the_share_of_all_outcomes(max_changed):
    n_rows = 8
    expected = np.zeros(n_rows + 1)
    for outcome in product([0, 1], repeat=n_rows):
        k = sum(outcome)
        expected[k:] += max_changed**k * (1 - max_changed) ** (n_rows - k)
    found = certify(np.arange(n_rows + 1), n_rows, max_changed=max_changed)
    np.testing.assert_allclose(found.p_value, expected)


@pytest.mark.parametrize(("true", "n_rows"), [(0.1001, 40), (0.11, 100), (0.2, 7)])
def test_the_probability_of_a_wrong_certificate_is_at_most_one_minus_the_confidence(true, n_rows):
    # Summed over all outcomes: no simulation. One run of one point.
    certified = [certify([k], n_rows, max_changed=0.1).certified[0] for k in range(n_rows + 1)]
    wrong = sum(comb(n_rows, k) * true**k * (1 - true) ** (n_rows - k) for k in range(n_rows + 1) if certified[k])
    assert wrong <= 0.05


def test_the_rate_holds_for_many_points_of_several_runs():
    rng = np.random.default_rng(0)
    n_rows, shares = 300, np.concatenate([np.linspace(0.01, 0.2, 40)] * 3)
    runs, order, n_draws = np.repeat([0, 1, 2], 40), np.tile(-np.arange(40), 3), 400
    wrong, some = 0, 0
    for _ in range(n_draws):
        # A row that changes at a point changes at all smaller points of its run.
        strength = rng.uniform(size=(3, n_rows))
        found = certify((strength[runs] < shares[:, None]).sum(axis=1), n_rows, runs, order).certified
        wrong += found[shares > 0.05].any()
        some += found.any()
    assert wrong <= 0.05 * n_draws + 3 * np.sqrt(0.05 * 0.95 * n_draws)
    assert some > 0.9 * n_draws


def test_a_sequence_ends_at_the_first_point_that_fails():
    assert certify([5, 6, 40, 7]).certified.tolist() == [True, True, False, False]


def test_runs_do_not_wait_for_each_other():
    assert certify([5, 40, 6, 7], runs=["a", "b", "a", "b"]).certified.tolist() == [True, False, True, False]


def test_each_run_has_its_part_of_the_error():
    k = next(k for k in range(50) if at_most(k, 500, 0.05) > 0.05 / 2) - 1
    both = certify([k, k], runs=[0, 1])
    assert both.certified.all()
    assert not certify([k, k, k], runs=[0, 1, 2]).certified.any() or at_most(k, 500, 0.05) <= 0.05 / 3
    assert not certify([k + 1, k + 1], runs=[0, 1]).certified.any()


def test_points_are_tested_from_the_largest_down_wherever_they_are_on_the_path():
    assert certify([40, 5, 6], order=[1, 30, 20]).certified.tolist() == [False, True, True]
    assert certify([5, 40, 6], order=[1, 30, 20]).certified.tolist() == [False] * 3


def test_the_order_of_the_points_does_not_matter():
    rng = np.random.default_rng(0)
    n_changed, runs, order = rng.integers(5, 25, 30), rng.integers(0, 3, 30), rng.permutation(30)
    moved = rng.permutation(30)
    found = certify(n_changed[moved], runs=runs[moved], order=order[moved]).certified
    np.testing.assert_array_equal(found, certify(n_changed, runs=runs, order=order).certified[moved])


def test_points_of_the_same_size_are_tested_in_the_order_of_the_path():
    assert certify([40, 5], order=[7, 7]).certified.tolist() == [False, False]
    assert certify([5, 40], order=[7, 7]).certified.tolist() == [True, False]


@pytest.mark.parametrize(("n_changed", "n_rows"), [(0, 200), (3, 50), (49, 50), (50, 50)])
def test_the_upper_bound_is_where_so_few_changes_become_improbable(n_changed, n_rows):
    bound = upper_bound(n_changed, n_rows, 0.95)
    assert bound == 1.0 or at_most(n_changed, n_rows, bound) == pytest.approx(0.05)
    assert (bound == 1.0) == (n_changed == n_rows)


@pytest.mark.parametrize("n_rows", [1, 10, 60])
@pytest.mark.parametrize("true", [0.001, 0.05, 0.3, 0.9])
def test_the_upper_bound_is_below_the_truth_with_at_most_the_stated_probability(true, n_rows):
    # Summed over all outcomes.
    below = [k for k in range(n_rows + 1) if upper_bound(k, n_rows, 0.95) < true]
    assert sum(comb(n_rows, k) * true**k * (1 - true) ** (n_rows - k) for k in below) <= 0.05


@pytest.mark.parametrize("n_changed", range(15))
def test_a_point_is_certified_where_the_upper_bound_is_within_the_limit(n_changed):
    assert certify([n_changed], 150).certified[0] == (upper_bound(n_changed, 150, 0.95) <= 0.05)


@pytest.mark.parametrize(("max_changed", "n_runs"), [(0.01, 4), (0.05, 1), (0.2, 3)])
def test_the_rows_needed_without_a_change_are_exact(max_changed, n_runs):
    needed = rows_for_changed(max_changed, 0.95, n_runs)
    runs = np.arange(n_runs)
    assert certify([0] * n_runs, needed, runs, max_changed=max_changed).certified.all()
    assert not certify([0] * n_runs, needed - 1, runs, max_changed=max_changed).certified.any()


@pytest.mark.parametrize("share", [0.002, 0.02, 0.04, 0.049])
def test_the_rows_needed_suffice_if_some_change(share):
    needed = rows_for_changed(0.05, 0.95, 2, share)
    assert certify([int(share * needed)] * 2, needed, [0, 1]).certified.all()


def test_no_rows_are_enough_if_the_share_is_above_the_limit():
    assert rows_for_changed(0.05, 0.95, 1, 0.05) is None


def test_the_shortfall_says_what_might_change_and_how_many_rows_would_do():
    found = certify([0, 2], 200, max_changed=0.01)
    assert not found.certified.any()
    assert found.shortfall() == (
        "200 rows cannot show with a confidence of 0.95 that at most 0.01 of the predictions change: with none "
        "changed, up to 0.0149 might. Pass about 299 rows as validation (targets are not needed), or allow a larger "
        "max_changed."
    )
    assert "Fewer changes are needed, not more rows" in certify([20], 200).shortfall()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_changed": [501]}, "of 500 rows are changed"),
        ({"n_changed": [-1]}, "of 500 rows are changed"),
        ({"n_changed": []}, "at least one point"),
        ({"n_changed": [1, 2], "runs": [0]}, "one number for each point"),
        ({"n_changed": [1], "max_changed": 0.0}, "max_changed=0.0"),
        ({"n_changed": [1], "confidence": 1.0}, "confidence=1.0"),
    ],
)
def test_arguments_are_checked(given, message):
    with pytest.raises(InvalidInputError, match=message):
        certify(**given)
