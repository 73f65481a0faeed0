"""Pruning a tree is a shortest path: the networks of Sherali et al. 2009, Nan et al. 2016 and Dercksen 2017.

A pruning sets z = 1 for its leaves and w = 1 for what rows meet first at its splits. On every way down exactly one node
is a leaf, and what is met first at a split is a further child of it, there if nothing on the way is a leaf.
"""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog
from tests.strategies import generators, random_tree

from secateur import kernels
from secateur.kernels.feature_cost.primal_dual import best_subtrees


class Tree(NamedTuple):
    """A tree in preorder, −1 at leaves, and the splits at which rows meet something first, in the order of the w's."""

    right: tuple[int, ...]
    met_at: tuple[int, ...]

    @property
    def parent(self):
        return kernels.tree_parent(np.array(self.right, np.int32))

    def way_to(self, v):
        """Return the nodes from the root to v."""
        above = int(self.parent[v])
        return [*([] if above == -1 else self.way_to(above)), v]


def constraints(tree):
    """Return the matrix of "exactly one on each way down", a row for each leaf and each w, in postorder (eq. 8)."""
    n = len(tree.right)

    def rows(v):
        here = np.isin(np.arange(n + len(tree.met_at)), tree.way_to(v)).astype(int)
        if tree.right[v] == -1:
            return [here]
        met = [n + k for k, u in enumerate(tree.met_at) if u == v]
        return [*rows(v + 1), *rows(tree.right[v]), *(here + np.eye(len(here), dtype=int)[column] for column in met)]

    return np.array(rows(0))


def network(matrix):
    """Return the differences of neighbouring rows, with nothing above the first and below the last (eq. 9)."""
    nothing = np.zeros((1, matrix.shape[1]), int)
    return np.vstack([nothing, matrix]) - np.vstack([matrix, nothing])


def edges(matrix):
    """Return a network matrix as a graph: each column leads from its −1 to its 1."""
    return list(zip((matrix == -1).argmax(axis=0).tolist(), (matrix == 1).argmax(axis=0).tolist(), strict=True))


def all_paths(graph, last):
    """Return the columns on every path from vertex 0 to the last."""

    @cache
    def onwards(vertex):
        if vertex == last:
            return [frozenset()]
        ways = [(column, end) for column, (begin, end) in enumerate(graph) if begin == vertex]
        return [frozenset({column}) | rest for column, end in ways for rest in onwards(end)]

    return onwards(0)


def shortest(graph, last, weight):
    """Return the length of the shortest path from vertex 0 to the last; edges lead to larger numbers only."""
    distance = np.full(last + 1, np.inf)
    distance[0] = 0.0
    for column in sorted(range(len(graph)), key=lambda column: graph[column][0]):
        begin, end = graph[column]
        distance[end] = min(distance[end], distance[begin] + weight[column])
    return distance[last]


def prunings(tree, v=0):
    """Yield the z's and w's of every pruning of the subtree at v, as columns."""
    yield {v}
    if tree.right[v] != -1:
        met = {len(tree.right) + k for k, u in enumerate(tree.met_at) if u == v}
        for left in prunings(tree, v + 1):
            for right in prunings(tree, tree.right[v]):
                yield met | left | right


# Dercksen's Figure 1 with a row in leaf 2 and one in leaf 5; columns z0 … z6, w11, w21, w22, w32.
SEVEN = Tree((4, 3, -1, -1, 6, -1, -1), (1, 0, 0, 4))
Z0, Z1, Z2, Z3, Z4, Z5, Z6, W11, W21, W22, W32 = range(11)
# Nan's Figure 1 with a row in leaf 4 and in leaf 11; columns z1 … z5, w11, w21 and z6 … z12, w21, w31.
FIRST = Tree((2, -1, 4, -1, -1), (0, 2))
SECOND = Tree((4, 3, -1, -1, 6, -1, -1), (0, 4))


def as_matrix(text):
    """Return a matrix written with one sign for each entry: + for 1, − for −1."""
    return np.array([[{"+": 1, "-": -1, ".": 0}[sign] for sign in line] for line in text.split()])


PRINTED = {
    "seven nodes": (
        SEVEN,
        """
        +++........
        ++.+.......
        ++.....+...
        +...++.....
        +...+.+....
        +...+.....+
        +.......+..
        +........+.
        """,
        """
        ---........
        ..+-.......
        ...+...-...
        .+..--.+...
        .....+-....
        ......+...-
        ....+...-.+
        ........+-.
        +........+.
        """,
    ),
    "first tree of two": (
        FIRST,
        """
        ++.....
        +.++...
        +.+.+..
        +.+...+
        +....+.
        """,
        """
        --.....
        .+--...
        ...+-..
        ....+.-
        ..+..-+
        +....+.
        """,
    ),
    "second tree of two": (
        SECOND,
        """
        +++......
        ++.+.....
        +...++...
        +...+.+..
        +...+...+
        +......+.
        """,
        """
        ---......
        ..+-.....
        .+.+--...
        .....+-..
        ......+.-
        ....+..-+
        +......+.
        """,
    ),
}


@pytest.mark.parametrize(("tree", "constraint", "difference"), PRINTED.values(), ids=PRINTED)
def test_matrices_are_the_printed_ones(tree, constraint, difference):
    np.testing.assert_array_equal(constraints(tree), as_matrix(constraint))
    np.testing.assert_array_equal(network(constraints(tree)), as_matrix(difference))


def test_the_rows_of_the_example_meet_features_where_it_says():
    parent = SEVEN.parent
    feature = np.array([1, 0, -1, -1, 2, -1, -1], np.int32)  # x2 at the root, x1 on the left, x3 on the right
    place = np.array([0, 1, -1, -1, 2, -1, -1], np.int32)
    resources = np.array([[0, -1], [1, -1], [2, -1]], np.int32)
    rows = (np.array([[2, 5]], np.uint8), np.array([0, 7]), parent, feature, place, resources)
    start = np.concatenate([[0], np.cumsum(kernels.price_needs(*rows, np.ones((1, 3), np.int64), 3))])
    need, key = kernels.list_needs(*rows, 3, start)
    bought = [[(int(k) % 3 + 1, int(k) // 3 + 1) for k in key[need[a:b]]] for a, b in pairwise(start)]
    assert bought == [[(2, 1), (2, 2)], [(1, 1)], [(3, 2)]]  # (feature, row) at nodes 0, 1 and 4


@pytest.mark.parametrize(
    ("vertices", "columns", "kept"),
    [
        ((0, 8), {Z0}, {0}),
        ((0, 3, 6, 7, 8), {Z1, Z4, W21, W22}, {0, 1, 4}),
        ((0, 3, 4, 5, 6, 7, 8), {Z1, Z5, Z6, W32, W21, W22}, {0, 1, 4, 5, 6}),
        (tuple(range(9)), {Z2, Z3, W11, Z5, Z6, W32, W21, W22}, set(range(7))),
    ],
)
def test_paths_of_the_example_are_the_prunings_it_says(vertices, columns, kept):
    graph = edges(network(constraints(SEVEN)))
    taken = {graph.index(edge) for edge in pairwise(vertices)}
    assert taken == columns
    assert frozenset(columns) in all_paths(graph, 8)
    leaves = [column for column in columns if column < 7]
    assert set().union(*(SEVEN.way_to(v) for v in leaves)) == kept


def random_case(rng):
    right = tuple(random_tree(rng, int(rng.integers(7))))
    split = [v for v, r in enumerate(right) if r != -1]
    met_at = tuple(int(v) for v in rng.choice(split, int(rng.integers(6)))) if split else ()
    return Tree(right, met_at)


@given(rng=generators)
def test_every_matrix_becomes_a_network_whose_paths_are_the_prunings(rng):
    tree = random_case(rng)
    matrix = network(constraints(tree))
    assert ((matrix == 1).sum(axis=0) == 1).all()
    assert ((matrix == -1).sum(axis=0) == 1).all()
    assert np.count_nonzero(matrix) == 2 * matrix.shape[1]
    graph = edges(matrix)
    assert all(begin < end for begin, end in graph)
    found = all_paths(graph, len(matrix) - 1)
    assert len(found) == len(set(found))
    assert set(found) == {frozenset(columns) for columns in prunings(tree)}


@given(rng=generators)
def test_the_shortest_path_the_tree_pass_and_the_linear_program_agree_with_all_prunings(rng):
    tree = random_case(rng)
    matrix = constraints(tree)
    weight = rng.normal(size=matrix.shape[1])
    best = min(weight[list(columns)].sum() for columns in prunings(tree))
    assert shortest(edges(network(matrix)), len(matrix), weight) == pytest.approx(best)
    assert pruned_cost(tree, weight) == pytest.approx(best)
    relaxed = linprog(weight, A_eq=matrix, b_eq=np.ones(len(matrix)), bounds=(0, None))
    assert relaxed.fun == pytest.approx(best)


def pruned_cost(tree, weight):
    """Return the least cost of a pruning by one pass over the splits, as the solver does it."""
    n, right = len(tree.right), np.array(tree.right)
    split = np.flatnonzero(right != -1)
    met = np.bincount(np.array(tree.met_at, np.intp), weight[n:], n)
    profit = weight[split] - weight[split + 1] - weight[right[split]] - met[split]
    number = np.full(n + 1, -1, np.int32)
    number[split] = np.arange(len(split))
    return weight[0] - best_subtrees(number[tree.parent[split]], profit, np.zeros(len(split), bool))
