"""The kernel that grows budget trees agrees with a search over all features and thresholds."""

from itertools import permutations

import numpy as np
import pytest

from secateur.kernels.training.budget_tree import (
    FeaturePrices,
    Growth,
    SortedRows,
    best_split,
    drawn_in_order,
    grow_budget_tree,
    threshold_pairs,
)

NO_LIMIT = np.iinfo(np.int32).max


class Node:
    """A small random problem: values with ties and gaps, weights, prices with groups, some resources bought."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n, n_features, self.n_classes = rng.integers(2, 15), rng.integers(1, 5), int(rng.integers(2, 5))
        self.X = rng.integers(0, rng.integers(2, 9), (n, n_features)).astype(np.float32)
        if seed % 3 == 0:
            self.X[rng.random(self.X.shape) < 0.2] = np.nan
        self.label = rng.integers(0, self.n_classes, n).astype(np.int32)
        self.weight = rng.integers(1, 4, n).astype(np.float64)
        resources = np.column_stack(
            [np.arange(n_features), np.where(rng.random(n_features) < 0.5, n_features, -1)]
        ).astype(np.int32)
        prices = rng.integers(0, 4, n_features + 1).astype(np.float64)
        self.bought = rng.random(n_features + 1) < 0.4
        self.prices = FeaturePrices(resources, prices, float(rng.choice([0.0, 0.5, 1.0])))
        self.alpha = float(rng.choice([0.0, 0.5, 1.0, 2.0]))
        self.min_leaf = int(rng.choice([1, 1, 2, 3]))

    @property
    def sorted(self):
        order = np.argsort(self.X.T, axis=1, kind="stable").astype(np.int32)
        drawn = drawn_in_order(np.ascontiguousarray(self.X.T), order, self.weight)
        return SortedRows(*drawn, self.label, self.weight)


def impurity(counts, alpha):
    """F as it is defined, over ordered pairs of classes."""
    excess = [max(count - alpha, 0.0) for count in counts]
    return sum(max(a * b - alpha**2, 0.0) for a, b in permutations(excess, 2))


def class_counts(node, rows):
    return np.bincount(node.label[rows], weights=node.weight[rows], minlength=node.n_classes)


def price_of(node, k, bought):
    needs = [resource for resource in node.prices.resources[k] if resource != -1]
    return sum(node.prices.prices[resource] * (node.prices.reuse if resource in bought else 1.0) for resource in needs)


def searched_split(node, rows, bought, features=None):
    """Return (feature, threshold, missing go left, left rows) of the best split, found by trying all; None if none."""
    node_impurity, best, found = impurity(class_counts(node, rows), node.alpha), None, None
    for k in sorted(range(node.X.shape[1]) if features is None else features):
        x = node.X[rows, k].astype(np.float64)
        present = np.unique(x[~np.isnan(x)])
        gaps = [*((present[:-1] + present[1:]) / 2), *([np.inf] if np.isnan(x).any() and len(present) else [])]
        for missing_left in (False, True) if np.isnan(x).any() else (False,):
            for threshold in gaps:
                left = np.where(np.isnan(x), missing_left, x <= threshold)
                if min(left.sum(), (~left).sum()) < node.min_leaf:
                    continue
                sides = [impurity(class_counts(node, rows[side]), node.alpha) for side in (left, ~left)]
                progress = node_impurity - max(sides)
                if progress <= 0:
                    continue
                rank = (price_of(node, k, bought) / progress, -progress)
                if best is None or rank < best:
                    best, found = rank, (k, threshold, missing_left, rows[left])
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
def test_impurity_is_its_definition(alpha):
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.integers(0, 9, rng.integers(1, 6)).astype(np.float64)
        assert threshold_pairs(counts, alpha) == impurity(counts, alpha)


def test_two_equal_classes_have_impurity_above_twice_alpha():
    assert threshold_pairs(np.array([6.0, 6.0]), 3.0) == 0
    assert threshold_pairs(np.array([7.0, 7.0]), 3.0) > 0


def test_the_split_is_the_one_a_full_search_finds():
    n_splits, n_leaves, n_missing_left = 0, 0, 0
    for seed in range(600):
        node = Node(seed)
        order, values, *_ = node.sorted
        rows = np.arange(len(node.label))
        expected = searched_split(node, rows, set(np.flatnonzero(node.bought)))
        k, cut, nan_left = split_of(node, rows, len(order), np.arange(len(order)), 0)
        if expected is None:
            assert k == -1, seed
            n_leaves += 1
            continue
        missing = np.isnan(values[k])
        left = np.concatenate([order[k, :cut], order[k, missing] if nan_left else []])
        assert (k, nan_left) == (expected[0], expected[2]), seed
        assert sorted(left) == sorted(expected[3]), seed
        n_splits, n_missing_left = n_splits + 1, n_missing_left + nan_left
    assert min(n_splits, n_leaves, n_missing_left) > 15


def split_of(node, rows, n_candidates, candidates, seed):
    """Return the split of all rows that the kernel finds."""
    growth, random = Growth(node.alpha, NO_LIMIT, node.min_leaf, n_candidates), np.array([2 * seed + 1], np.uint64)
    counts, left = class_counts(node, rows), np.empty(node.n_classes)
    return best_split(node.sorted, 0, len(rows), counts, node.prices, node.bought, growth, candidates, random, left)


def is_constant(x):
    return np.isnan(x).all() or (x == x[0]).all()


def test_the_best_drawn_feature_is_split_and_more_are_drawn_if_none_makes_progress():
    drawn_first = set()
    for seed in range(300):
        node = Node(seed)
        rows, n_features = np.arange(len(node.label)), node.X.shape[1]
        candidates, n_wanted = np.arange(n_features), 1 + seed % 2
        k, *_ = split_of(node, rows, n_wanted, candidates, seed)
        for n_drawn in range(1, n_features + 1):
            drawn = candidates[:n_drawn]
            found = searched_split(node, rows, set(np.flatnonzero(node.bought)), drawn)
            if sum(not is_constant(node.X[:, j]) for j in drawn) >= n_wanted and found is not None:
                break
        assert k == (-1 if found is None else found[0]), seed
        drawn_first.add(int(candidates[0]))
    assert drawn_first == {0, 1, 2, 3}


def searched_tree(node, rows, bought, depth, max_depth):
    """Return the nodes of a tree in preorder, found by search."""
    counts = class_counts(node, rows)
    here = [(-1, -2.0, len(rows), *counts)]
    small = len(rows) < 2 * node.min_leaf
    split = None if impurity(counts, node.alpha) == 0 or depth == max_depth or small else searched_split(
        node, rows, bought
    )  # fmt: skip
    if split is None:
        return here
    k, threshold, _, left = split
    bought = bought | {int(resource) for resource in node.prices.resources[k] if resource != -1}
    right = np.setdiff1d(rows, left)
    return [
        (k, threshold, len(rows), *counts),
        *searched_tree(node, left, bought, depth + 1, max_depth),
        *searched_tree(node, right, bought, depth + 1, max_depth),
    ]


@pytest.mark.parametrize("max_depth", [1, 3, NO_LIMIT])
def test_the_tree_is_the_one_a_full_search_grows(max_depth):
    depths = set()
    for seed in range(1000, 1080):
        node = Node(seed)
        growth = Growth(node.alpha, max_depth, node.min_leaf, node.X.shape[1])
        _, feature, threshold, _, n_rows, counts = grow_budget_tree(node.sorted, node.n_classes, node.prices, growth, 0)
        expected = searched_tree(node, np.arange(len(node.label)), set(), 0, max_depth)
        assert np.column_stack([feature, threshold, n_rows, counts]).tolist() == [list(map(float, w)) for w in expected]
        depths.add(len(expected))
    assert max(depths) > (1 if max_depth == 1 else 5)


def test_a_purchase_on_one_path_does_not_count_on_another():
    # The first split buys feature 0; its right side needs feature 1, which costs more there than feature 0 again.
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    label = np.array([0, 0, 1, 2], np.int32)
    order = np.argsort(X.T, axis=1, kind="stable").astype(np.int32)
    rows = SortedRows(*drawn_in_order(np.ascontiguousarray(X.T), order, np.ones(4)), label, np.ones(4))
    prices = FeaturePrices(np.array([[0, -1], [1, -1]], np.int32), np.array([1.0, 1.0]), 0.0)
    right, feature, *_ = grow_budget_tree(rows, 3, prices, Growth(0.0, NO_LIMIT, 1, 2), 0)
    assert feature.tolist() == [0, -1, 1, -1, -1]
    assert right.tolist() == [2, -1, 4, -1, -1]


def test_a_split_that_separates_only_a_class_below_alpha_is_refused():
    X = np.array([[0.0]] * 10 + [[1.0]], np.float32)
    label = np.array([0] * 5 + [1] * 5 + [2], np.int32)
    order = np.argsort(X.T, axis=1, kind="stable").astype(np.int32)
    rows = SortedRows(*drawn_in_order(np.ascontiguousarray(X.T), order, np.ones(11)), label, np.ones(11))
    prices = FeaturePrices(np.array([[0, -1]], np.int32), np.ones(1), 1.0)
    _, feature, *_ = grow_budget_tree(rows, 3, prices, Growth(2.0, NO_LIMIT, 1, 1), 0)
    assert feature.tolist() == [-1]


def test_rows_of_weight_zero_are_not_drawn():
    X = np.array([[2, 0, 1]], np.float32)
    rows, values = drawn_in_order(X, np.array([[1, 2, 0]], np.int32), np.array([1.0, 1.0, 0.0]))
    assert rows.tolist() == [[1, 0]]
    assert values.tolist() == [[0.0, 2.0]]
