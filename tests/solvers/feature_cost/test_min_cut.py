"""Feature cost exactly: against all prunings, the paper's linear program, and other cuts."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import maximum_flow
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.feature_problems import random_problem, value_of
from tests.strategies import all_prunings, examples, generators

import secateur as sc
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample
from secateur.forest.subforest import check_keep
from secateur.libraries import adapt
from secateur.losses import ZeroOne
from secateur.problem import Problem
from secateur.solvers import MinCut
from secateur.solvers.feature_cost._base import node_labels
from secateur.solvers.feature_cost.closure import count, critical_penalties, pose

CANCER = load_breast_cancer(return_X_y=True)


@pytest.mark.parametrize("errors", ["holdout", "train"])
@examples(200)
@given(rng=generators)
def test_every_point_is_the_best_of_all_prunings_and_the_smallest_such(errors, rng):
    problem, X = random_problem(rng)
    forest = problem.forest
    labels = node_labels(problem, errors)
    path = MinCut(errors=errors).path(problem)
    every = [
        set().union(*parts) for parts in itertools.product(*(all_prunings(forest, t) for t in range(forest.n_trees)))
    ]
    values = np.array([value_of(problem, X, kept, labels) for kept in every])
    penalties = path.table["penalty"]
    for point in range(1, len(path)):
        kept = set(np.flatnonzero(path.masks.keep(point)).tolist())
        risk, cost = value_of(problem, X, kept, labels)
        assert path.table["risk"][point] == pytest.approx(risk)
        assert path.table["cost"][point] == pytest.approx(cost)
        objectives = values @ (1.0, penalties[point])
        assert path.table["objective"][point] == pytest.approx(objectives.min(), abs=1e-12)
        assert path.table["bound"][point] <= objectives.min() + 1e-12
        best = [every[k] for k in np.flatnonzero(objectives <= objectives.min() + 1e-9)]
        assert kept == set.intersection(*best)
    between = np.concatenate([(penalties[1:-1] + penalties[2:]) / 2, [2 * penalties[-1] + 1]])
    for point, penalty in enumerate(between, start=1):  # nothing better between two points than the first of them
        if point < len(path):
            objective = path.table["risk"][point] + penalty * path.table["cost"][point]
            assert objective == pytest.approx((values @ (1.0, penalty)).min(), abs=1e-12)
    assert path.table["bound"][0] <= values[:, 0].min() + 1e-12


@given(rng=generators)
def test_each_tree_alone_is_the_best_of_its_prunings(rng):
    problem, X = random_problem(rng, n_trees=3)
    forest, labels = problem.forest, node_labels(problem, "holdout")
    path = MinCut(scope="individual").path(problem)
    for point in range(1, len(path)):
        penalty, keep = path.table["penalty"][point], path.masks.keep(point)
        for tree in range(forest.n_trees):
            here = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
            alone = Problem(
                one_tree(forest, tree),
                replace(problem.sample, leaves=problem.sample.leaves[[tree]]),
                ZeroOne(),
                problem.cost,
            )
            own = labels[here]
            worth = [
                np.dot(value_of(alone, X, kept, own), (1.0, penalty * forest.n_trees))
                for kept in all_prunings(alone.forest, 0)
            ]
            found = value_of(alone, X, set(np.flatnonzero(keep[here]).tolist()), own)
            assert np.dot(found, (1.0, penalty * forest.n_trees)) == pytest.approx(min(worth), abs=1e-12)
    assert np.isnan(path.table["bound"]).all()


def one_tree(forest, tree):
    """Return one tree of a forest as a forest."""
    keep = np.zeros(forest.n_nodes, bool)
    keep[forest.tree_start[tree] : forest.tree_start[tree + 1]] = True
    return sc.subforest(forest, sc.Decision(keep))


def forest_on(X, y, n_trees=10, seed=0, **settings):
    model = RandomForestClassifier(n_trees, random_state=seed, **settings).fit(X, y)
    adapter = adapt(model)
    return model, adapter, read_sample(adapter, X, y)


def paper_program(problem, labels, penalty):
    """Return the optimum of the LP relaxation of (IP3), written down as in the paper."""
    forest, sample = problem.forest, problem.sample
    n_rows, (n_trees, _) = len(sample), sample.leaves.shape
    errors = count(problem, labels, np.ones(forest.n_classes[0])).errors / (n_rows * n_trees)
    prices = np.asarray(problem.cost.prices, float)
    first = {}
    for tree in range(n_trees):
        for i in range(n_rows):
            v = int(forest.tree_start[tree] + sample.leaves[tree, i])
            while forest.parent[v] != -1:
                v = int(forest.parent[v])
                first[tree, int(forest.feature[v]), i] = v
    w_tree = {key: forest.n_nodes + k for k, key in enumerate(first)}
    w = {key: forest.n_nodes + len(first) + k for k, key in enumerate(sorted({(k, i) for _, k, i in first}))}
    objective = np.zeros(forest.n_nodes + len(w_tree) + len(w))
    objective[: forest.n_nodes] = errors
    for (k, _), column in w.items():
        objective[column] = penalty * prices[k] / n_rows
    equal, below = [], []
    for leaf in np.flatnonzero(~forest.is_split):
        equal.append([leaf, *ancestors(forest, leaf)])
    for key, u in first.items():
        equal.append([w_tree[key], u, *ancestors(forest, u)])
        below.append((w_tree[key], w[key[1:]]))
    rows = np.repeat(np.arange(len(equal)), [len(row) for row in equal])
    A = coo_matrix((np.ones(len(rows)), (rows, np.concatenate(equal))), (len(equal), len(objective)))
    B = coo_matrix(
        (np.tile([1.0, -1.0], len(below)), (np.repeat(np.arange(len(below)), 2), np.ravel(below))),
        (len(below), len(objective)),
    )
    return linprog(objective, B, np.zeros(len(below)), A, np.ones(len(equal)), bounds=(0, None)).fun


def ancestors(forest, v):
    found = []
    while forest.parent[v] != -1:
        v = int(forest.parent[v])
        found.append(v)
    return found


@pytest.mark.parametrize("data", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("errors", ["holdout", "train"])
def test_the_optimum_is_that_of_the_papers_linear_program(data, errors):
    X, y = data(return_X_y=True)
    X, y = X[::2], y[::2]
    _, adapter, sample = forest_on(X, y, 5)
    prices = np.random.default_rng(0).integers(0, 5, X.shape[1]).astype(float)
    problem = Problem(adapter.forest, sample, ZeroOne(), FeatureCost(prices))
    path = MinCut(errors=errors).path(problem)
    labels = node_labels(problem, errors)
    for point in np.unique(np.linspace(1, len(path) - 1, 4).astype(int)):
        for factor in (1.0, 1.01):
            penalty = factor * path.table["penalty"][point]
            found = (path.table["risk"] + penalty * path.table["cost"]).min()
            assert found == pytest.approx(paper_program(problem, labels, penalty), abs=1e-9)


def independent_cut(problem, labels, over, under):
    """Return the worth of the best closure at penalty over / under by scipy's maximum flow, nothing left out."""
    forest, sample = problem.forest, problem.sample
    counts = count(problem, labels, np.ones(forest.n_classes[0]))
    split = np.flatnonzero(forest.is_split)
    profit = counts.errors[split] - counts.errors[split + 1] - counts.errors[forest.right[split]]
    number = {int(v): k + 2 for k, v in enumerate(split)}
    edges = {}
    for k, v in enumerate(split):
        if profit[k] > 0:
            edges[0, number[v]] = profit[k] * under
        elif profit[k] < 0:
            edges[number[v], 1] = -profit[k] * under
        if forest.parent[v] != -1:
            edges[number[v], number[int(forest.parent[v])]] = 2**30
    item = {}
    for tree in range(forest.n_trees):
        for i in range(len(sample)):
            v = int(forest.parent[forest.tree_start[tree] + sample.leaves[tree, i]])
            while v != -1:
                resource = counts.resources[forest.feature[v], 0]
                if resource != -1:
                    key = item.setdefault((i, int(resource)), len(split) + 2 + len(item))
                    edges[number[v], key] = 2**30
                    edges[key, 1] = counts.prices[0, resource] * over
                v = int(forest.parent[v])
    pairs = np.array(list(edges)).T
    graph = csr_matrix((np.array(list(edges.values()), np.int32), pairs), (len(split) + 2 + len(item),) * 2)
    return int(profit[profit > 0].sum() * under - maximum_flow(graph, 0, 1).flow_value)


@pytest.mark.parametrize("seed", range(50))
def test_the_path_is_that_of_single_cuts_at_any_penalty(seed):
    rng = np.random.default_rng(seed)
    X, y = make_classification(
        60, 8, n_informative=5, n_classes=3, n_clusters_per_class=1, flip_y=0.2, random_state=seed
    )
    _, adapter, sample = forest_on(X, y, int(rng.integers(2, 7)), seed, max_depth=int(rng.integers(2, 8)))
    if seed % 2:  # rows the model has not seen, on which splits do harm
        X, y = make_classification(60, 8, n_informative=5, n_classes=3, n_clusters_per_class=1, random_state=seed + 1)
        sample = read_sample(adapter, X, y)
    problem = Problem(adapter.forest, sample, ZeroOne(), FeatureCost(rng.integers(0, 4, 8).astype(float)))
    labels = node_labels(problem, "holdout")
    counts = count(problem, labels, np.ones(3))
    over, under, _ = critical_penalties(pose(problem, counts))
    path = MinCut().path(problem)
    scale = counts.error_unit / (problem.forest.n_trees * counts.price_unit)
    places = set(zip(over[under > 0].tolist(), under[under > 0].tolist(), strict=True))
    for a, b in [*sorted(places)[:: max(len(places) // 6, 1)], (1, 1), (3, 2), (1, 7)]:
        worth = independent_cut(problem, labels, a, b)
        penalty = a / b * scale
        roots = float((counts.errors[problem.forest.root]).sum()) / (60 * problem.forest.n_trees)
        best = (roots - path.table["risk"] - penalty * path.table["cost"]).max() * 60 * problem.forest.n_trees * b
        assert best == pytest.approx(worth, abs=1e-6 * max(worth, 1))
    for point in range(len(path)):
        check_keep(problem.forest, path.masks.keep(point))


@pytest.mark.parametrize("model", [RandomForestClassifier(15), ExtraTreesClassifier(15), DecisionTreeClassifier()])
def test_costs_are_those_of_rows_sent_through_the_native_model(model):
    X, y = CANCER
    model = model.set_params(random_state=0).fit(X[::2], y[::2])
    prices = np.random.default_rng(1).uniform(0, 3, 30).round(2)
    cost = FeatureCost(prices, {"size": (5.0, [0, 2, 3])})
    path = sc.prune_path(model, X[1::2], y[1::2], solver="min_cut", cost=cost)
    for point in np.unique(np.linspace(0, len(path) - 1, 5).astype(int)):
        native = path[int(point)].to_model()
        trees = getattr(native, "estimators_", [native])
        paid = 0.0
        met = np.zeros((len(X[1::2]), 30), bool)
        for tree in trees:
            passed = tree.decision_path(X[1::2].astype(np.float32)).toarray().astype(bool)
            for v in np.flatnonzero(tree.tree_.children_left != -1):
                met[passed[:, v], tree.tree_.feature[v]] = True
        paid = (met * prices).sum(axis=1) + 5.0 * met[:, [0, 2, 3]].any(axis=1)
        assert path.table["cost"][point] == pytest.approx(paid.mean())
        assert cost.mean_price(native, X[1::2]) == pytest.approx(paid.mean())
        wrong = np.mean([tree.predict(X[1::2]).astype(int) != y[1::2] for tree in trees])
        assert path.table["risk"][point] == pytest.approx(wrong)
