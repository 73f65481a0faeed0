import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import forests, generators

from secateur import kernels


def relabelled(forest, rng):
    """Return children arrays of the first tree under a random numbering that keeps the root at 0."""
    n = int(forest.tree_start[1])
    label = np.concatenate([[0], 1 + rng.permutation(n - 1)])
    left, right = np.full(n, -1), np.full(n, -1)
    for v in np.flatnonzero(forest.right[:n] != -1):
        left[label[v]], right[label[v]] = label[v + 1], label[forest.right[v]]
    return left, right, label


@given(forests(), generators)
def test_preorder_undoes_any_numbering(forest, rng):
    left, right, label = relabelled(forest, rng)
    assert np.array_equal(kernels.preorder(left, right), label)


@given(st.integers(1, 8), generators)
def test_preorder_of_arrays_that_are_no_tree_is_never_complete_and_never_crashes(n, rng):
    left = rng.integers(-1, n + 2, n)
    right = np.where(left == -1, -1, rng.integers(-3, n + 2, n))
    order = kernels.preorder(left, right)
    assert len(np.unique(order)) == len(order) <= n
    if len(order):  # then it is a tree: every child was visited right once
        inner = order[left[order] != -1]
        assert sorted([0, *left[inner], *right[inner]]) == sorted(order)


@given(forests())
def test_end_parent_and_depth_agree_with_a_recursive_walk(forest):
    def visit(v, parent, depth):
        assert forest.parent[v] == parent
        assert forest.depth[v] == depth
        end = v + 1
        if forest.right[v] != -1:
            assert visit(v + 1, v, depth + 1) == forest.right[v]
            end = visit(int(forest.right[v]), v, depth + 1)
        assert forest.end[v] == end
        return end

    for tree in range(forest.n_trees):
        assert visit(int(forest.tree_start[tree]), -1, 0) == forest.tree_start[tree + 1]


def test_broken_preorder_is_found():
    end = np.empty(3, np.int64)
    assert kernels.subtree_end(np.array([0, 3]), np.array([2, -1, -1], np.int32), end) == -1
    assert kernels.subtree_end(np.array([0, 3]), np.array([1, -1, -1], np.int32), end) == 0
    assert kernels.subtree_end(np.array([0, 3]), np.array([7, -1, -1], np.int32), end) == 0
    assert kernels.subtree_end(np.array([0, 3]), np.array([-1, -1, -1], np.int32), end) == 0
