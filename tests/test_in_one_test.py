"""Tests that loop over values: every value is used, and a failure names its value."""

import inspect

import pytest
from tests.in_one_test import for_each


def test_every_value_is_used_and_other_parameters_are_passed_on():
    used = []

    @for_each("seed", range(3))
    @for_each("kind", ("a", "b"))
    def test(kind, seed, other):
        used.append((seed, kind, other))

    assert list(inspect.signature(test).parameters) == ["other"]
    test(other=7)
    assert used == [(seed, kind, 7) for seed in range(3) for kind in ("a", "b")]


def test_a_failure_names_its_value():
    @for_each("seed", range(3))
    def test(seed):
        assert seed < 2

    with pytest.raises(AssertionError) as failure:
        test()
    assert failure.value.__notes__ == ["seed=2"]


def test_no_values_are_refused():
    with pytest.raises(AssertionError, match="no values for seed"):
        for_each("seed", [])
