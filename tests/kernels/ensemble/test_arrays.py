"""The order of nodes in which block descent visits the leaves before the splits."""

import numpy as np
from hypothesis import given
from tests.strategies import generators, random_forest

from secateur.kernels import leaves_then_splits


@given(generators)
def test_leaves_come_before_splits_each_in_reverse_preorder(rng):
    forest = random_forest(rng, n_trees=int(rng.integers(1, 5)), max_splits=8)
    order = leaves_then_splits(forest.tree_start, forest.right)
    for start, stop in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        nodes = range(stop - start - 1, -1, -1)
        leaves = [v for v in nodes if forest.right[start + v] == -1]
        assert order[start:stop].tolist() == leaves + [v for v in nodes if forest.right[start + v] != -1]
        # The kernels find the first split by this number.
        assert len(leaves) == (stop - start + 1) // 2


def test_a_forest_without_trees_has_no_order():
    assert len(leaves_then_splits(np.zeros(1, np.int64), np.empty(0, np.int32))) == 0
