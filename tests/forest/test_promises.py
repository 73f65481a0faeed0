"""The range of a mean of trees is that of all combinations of their leaves."""

from itertools import product

import numpy as np
import pytest

from secateur.forest.promises import PredictionRange


@pytest.mark.parametrize("seed", range(20))
def test_means_within_a_range_are_those_of_all_combinations(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, rng.integers(1, 5))
    tree = np.repeat(np.arange(len(sizes)), sizes)
    value = rng.normal(0.6, 0.5, (len(tree), 1))
    leaves = [value[tree == t, 0] for t in range(len(sizes))]
    means = [float(np.mean(combination)) for combination in product(*leaves)]
    for found in (PredictionRange(False, 0.0, np.inf), PredictionRange(False, 0.0, 1.0)):
        expected = min(means) >= found.low and max(means) <= found.high
        assert found.contains_means(value, tree, ()) == expected


def test_probabilities_must_be_valid_leaf_by_leaf():
    simplex, tree = PredictionRange(True, 0.0, 1.0 + 1e-6), np.array([0, 0, 1])
    valid = np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]])
    assert simplex.contains_means(valid, tree, (2,))
    assert simplex.contains_means(np.hstack([valid, valid]), tree, (2, 2))
    for change in ([0.1, 0.0], [-0.3, 0.3]):
        other = valid.copy()
        other[0] += change
        assert not simplex.contains_means(other, tree, (2,))
    assert str(simplex) == "class probabilities"
    assert str(PredictionRange(False, 0.0, 1.0)) == "numbers from 0 to 1"
