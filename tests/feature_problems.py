"""Small questions of feature cost, and their answers read off the definition."""

import itertools

import numpy as np
from tests.strategies import all_prunings, random_forest, random_rows, walk

from secateur.costs import FeatureCost
from secateur.data.rows import LocalRows
from secateur.forest import Forest, check_forest
from secateur.forest.routing import route
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers.feature_cost import _highs as highs


def random_problem(rng, n_trees=2, max_splits=3, n_rows=8, **facts):
    """Return a small question with whole prices, some features free, and perhaps a group."""
    forest = random_forest(
        rng, n_trees=n_trees, max_splits=max_splits, link="probability", n_classes=(2,), n_outputs=2, **facts
    )
    X = random_rows(rng, n_rows, forest.n_features)
    groups = None
    if forest.n_features > 1 and rng.random() < 0.5:
        groups = {"lab": (float(rng.integers(0, 4)), list(range(int(rng.integers(1, forest.n_features + 1)))))}
    prices = rng.integers(0, 4, forest.n_features).astype(float)
    weight = rng.integers(1, 4, n_rows).astype(float) if rng.random() < 0.5 else np.ones(n_rows)
    sample = LocalRows(route(forest, X), rng.integers(0, 2, (n_rows, 1)), weight)
    return Problem(forest, sample, ZeroOne(), FeatureCost(prices, groups)), X


def all_prunings_of_all(forest):
    """Return the set of nodes of every pruning of the forest that keeps all roots."""
    trees = [list(all_prunings(forest, tree)) for tree in range(forest.n_trees)]
    return [set().union(*parts) for parts in itertools.product(*trees)]


def rows_needs(forest, kept, x):
    """Return the features row x meets in a pruned forest, read off the definition."""
    met = set()
    for tree in range(forest.n_trees):
        end = walk(forest, tree, x)
        for v in range(forest.n_nodes):
            is_above = v <= end < forest.end[v] and v >= forest.tree_start[tree]
            if is_above and v in kept and v + 1 in kept and forest.right[v] != -1:
                met.add(int(forest.feature[v]))
    return met


def price_of(cost, met):
    """Return what a set of features costs."""
    total = sum(cost.prices[k] for k in met)
    return total + sum(price for price, members in (cost.groups or {}).values() if met & set(members))


def value_of(problem, X, kept, labels):
    """Return risk and cost of a pruning, read off the definition."""
    forest, sample = problem.forest, problem.sample
    cost, errors = 0.0, 0.0
    for i, x in enumerate(X):
        cost += sample.weight[i] * price_of(problem.cost, rows_needs(forest, kept, x))
        for tree in range(forest.n_trees):
            v = walk(forest, tree, x)
            while v not in kept:
                v = forest.parent[v]
            errors += sample.weight[i] * (labels[v] != sample.y[i, 0])
    return errors / sample.weight.sum() / forest.n_trees, cost / sample.weight.sum()


def first_tree_of_figure_1():
    """Return the tree of section 4 with one row that ends in its node 4, and prices for both features.

    Its nodes 1 to 5 are in preorder: a split by feature 1, a leaf, a split by feature 2, two leaves.
    """
    forest = Forest(
        tree_start=np.array([0, 5]),
        right=np.array([2, -1, 4, -1, -1], np.int32),
        feature=np.array([0, -1, 1, -1, -1], np.int32),
        threshold=np.zeros(5),
        default_left=np.zeros(5, bool),
        value=np.array([[0.5, 0.5], [1, 0], [0.5, 0.5], [1, 0], [0, 1]]),
        weight=np.array([4.0, 2, 2, 1, 1]),
        tree_weight=np.ones(1),
        tree_output=np.array([-1], np.int32),
        base=np.zeros(2),
        link="probability",
        aggregation="mean",
        divisor=1.0,
        n_features=2,
        n_classes=(2,),
    )
    check_forest(forest)
    sample = LocalRows(route(forest, np.array([[1.0, -1.0]])), np.array([[0]]), np.ones(1))
    return Problem(forest, sample, ZeroOne(), FeatureCost([1.0, 1.0]))


def optimum(program, cost):
    """Return a vertex that HiGHS finds, and its objective."""
    engine = highs.start_highs()
    highs.load(engine, cost, program.matrix, program.lower, program.upper)
    x, _ = highs.solve(engine)
    return x, float(x @ cost)
