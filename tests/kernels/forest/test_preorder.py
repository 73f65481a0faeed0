import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import forests, generators

from secateur import kernels
from secateur.forest.node_sums import cover_mean


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


@given(st.lists(st.integers(0, 4), max_size=4))
def test_complete_trees_ask_one_question_a_level_and_number_leaves_by_their_answers(depths):
    n_nodes = sum(2 ** (d + 1) - 1 for d in depths)
    right, question, leaf = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int64)
    kernels.complete_trees(np.array(depths, np.int64), right, question, leaf)

    def visit(v, tree, level, answers):
        if level == depths[tree]:
            place = sum(2**d for d in depths[:tree]) + answers
            assert (right[v], question[v], leaf[v]) == (-1, -1, place)
            return v + 1
        assert (question[v], leaf[v]) == (sum(depths[:tree]) + level, -1)
        assert right[v] == visit(v + 1, tree, level + 1, answers)
        return visit(right[v], tree, level + 1, answers + 2**level)

    end = 0
    for tree in range(len(depths)):
        end = visit(end, tree, 0, 0)
    assert end == n_nodes


@given(forests(), generators)
def test_levels_are_kept_if_no_two_nodes_of_one_differ(forest, rng):
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    keep = rng.random((forest.n_trees, forest.max_depth + 1))[tree, forest.depth] < 0.5
    keep ^= rng.random(forest.n_nodes) < rng.choice([0, 0.1])
    levels = set(zip(tree.tolist(), forest.depth.tolist(), keep.tolist(), strict=True))
    whole = len(levels) == len({level[:2] for level in levels})
    assert kernels.keeps_levels(forest.tree_start, forest.depth, keep) == whole


@given(forests(), generators)
def test_means_weigh_leaves_by_their_cover_or_equally_where_there_is_none(forest, rng):
    value, weight = rng.normal(size=(forest.n_nodes, 2)), rng.integers(-1, 3, forest.n_nodes).astype(float)
    mean = cover_mean(forest.right, value, weight)
    for v in range(forest.n_nodes):
        leaves = np.flatnonzero(~forest.is_split[v : forest.end[v]]) + v
        cover = np.maximum(weight[leaves], 0)
        expected = np.average(value[leaves], axis=0, weights=cover if cover.any() else None)
        assert np.allclose(mean[v], expected)
