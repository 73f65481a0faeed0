"""The projection onto weights that never grow on the way down, and the descent that uses it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize
from tests.strategies import all_prunings, generators, random_forest

from secateur import kernels


def random_parent(rng, n):
    """Return a random forest of any shape, parents first."""
    return np.array([-1 if v == 0 or rng.random() < 0.05 else rng.integers(v) for v in range(n)], np.int32)


def project_by_qp(u, parent, metric):
    """Return the projection from its dual, least squares with bounds."""
    n = len(u)
    edges = np.zeros((n, n))
    for v in range(n):  # row v: w[parent] - w[v] >= 0
        edges[v, v] = -1.0
        if parent[v] != -1:
            edges[v, parent[v]] = 1.0
    sides = np.vstack([edges[parent != -1], np.eye(n)])
    root = np.sqrt(metric)
    scaled = sides.T / root[:, None]
    price = lsq_linear(scaled, -root * u, bounds=(0, np.inf), method="bvls", tol=1e-14, max_iter=1000).x
    return u + scaled @ price / root


@given(rng=generators, n=st.integers(1, 40), shift=st.sampled_from([-0.5, 0.0, 1.0]))
def test_projection_equals_a_quadratic_program(rng, n, shift):
    parent = random_parent(rng, n)
    u = rng.normal(size=n) + shift
    for metric in (np.ones(n), rng.uniform(0.2, 3.0, n)):
        projected = kernels.project_max_heap(u, parent, metric)
        np.testing.assert_allclose(projected, project_by_qp(u, parent, metric), atol=1e-9)


@given(rng=generators, n=st.integers(1, 30))
def test_ties_and_zeros_are_projected_like_anything_else(rng, n):
    parent = random_parent(rng, n)
    u, metric = rng.integers(-2, 3, n).astype(float), np.ones(n)
    projected = kernels.project_max_heap(u, parent, metric)
    np.testing.assert_allclose(projected, project_by_qp(u, parent, metric), atol=1e-9)


@pytest.mark.parametrize("shape", ["random", "chain", "star", "balanced"])
def test_optimality_conditions_hold_on_a_hundred_thousand_nodes(shape):
    rng, n = np.random.default_rng(0), 100_000
    v = np.arange(n)
    parent = {
        "random": random_parent(rng, n),
        "chain": v - 1,
        "star": np.where(v == 0, -1, 0),
        "balanced": (v + 1) // 2 - 1,
    }[shape].astype(np.int32)
    u = rng.normal(size=n)
    w = kernels.project_max_heap(u, parent, np.ones(len(u)))
    inner = parent != -1
    assert (w >= 0).all()
    assert (w[parent[inner]] >= w[inner]).all()
    # The prices of the edges, from below: w - u = (from children) - (to parent) + (floor w >= 0).
    price = np.zeros(n)
    for k in range(n - 1, -1, -1):
        rest = price[k] + u[k] - w[k]  # must go up to the parent, or be taken by the floor w >= 0
        if w[k] == 0.0:
            rest = max(rest, 0.0)
        if parent[k] == -1 or w[parent[k]] > w[k]:
            assert abs(rest) < 1e-7
        else:
            assert rest > -1e-7
            price[parent[k]] += rest


def small_problem(rng, max_splits=4):
    forest = random_forest(rng, n_trees=1, max_splits=max_splits)
    leaves = np.flatnonzero(~forest.is_split).astype(np.int32)
    weight = rng.integers(1, 6, len(leaves)).astype(float)
    return forest, leaves[None], weight / weight.sum(), rng.normal(size=len(leaves))


def objective(forest, leaves, weight, target, penalty, prior, w, b):
    fit = b + np.array([sum(w[v] for v in ancestors(forest, leaf)) for leaf in leaves[0]])
    return 0.5 * weight @ (fit - target) ** 2 + penalty * prior @ np.abs(w)


def ancestors(forest, v):
    while v != -1:
        yield v
        v = forest.parent[v]


def descend(forest, leaves, weight, target, penalty, prior, start=None, memory=5):
    start = np.zeros(forest.n_nodes) if start is None else start
    return kernels.fit_max_heap(forest.parent, leaves, weight, target, penalty, prior, start, 1e-8, 2.0, memory, 20_000)


@given(rng=generators, penalty=st.sampled_from([0.3, 0.05, 0.003]), informed=st.booleans())
def test_a_descent_ends_at_the_minimum_among_weights_of_its_signs(rng, penalty, informed):
    problem = forest, leaves, weight, target = small_problem(rng)
    prior = rng.uniform(0.3, 3.0, forest.n_nodes) if informed else np.ones(forest.n_nodes)
    w, b, criticality, _ = descend(*problem, penalty, prior)
    assert criticality <= 1e-8
    inner = forest.parent != -1
    assert (np.abs(w[forest.parent[inner]]) >= np.abs(w[inner])).all()
    # Weights of one sign pattern are mixtures of rooted subtrees, each counted a non-negative number of times.
    sign = np.where(w < 0, -1.0, 1.0)
    shapes = np.array([[v in kept for v in range(forest.n_nodes)] for kept in rooted_subtrees(forest)]) * sign
    below = np.array([[v in set(ancestors(forest, leaf)) for v in range(forest.n_nodes)] for leaf in leaves[0]])
    columns = np.column_stack([below @ shapes.T, np.ones(len(target))])
    price = np.append(penalty * np.abs(shapes) @ prior, 0.0)

    def value_and_slope(z):
        rest = columns @ z - target
        return 0.5 * weight @ rest**2 + price @ z, columns.T @ (weight * rest) + price

    bounds = [(0, None)] * len(shapes) + [(None, None)]
    best = minimize(
        value_and_slope, np.zeros(len(price)), jac=True, bounds=bounds, tol=1e-14, options={"maxiter": 5000}
    )
    assert objective(*problem, penalty, prior, w, b) <= best.fun + 1e-7


def rooted_subtrees(forest):
    """Return every connected set of nodes with the root, siblings not tied together."""

    def grow(v):
        found = [set()]
        if forest.right[v] == -1:
            return [{v}, *found]
        sides = [a | b | {v} for a in grow(v + 1) for b in grow(int(forest.right[v]))]
        return sides + found

    return [kept for kept in grow(0) if kept]


def test_rooted_subtrees_contain_all_prunings():
    forest = random_forest(np.random.default_rng(1), n_trees=1, max_splits=4)
    found = {frozenset(kept) for kept in rooted_subtrees(forest)}
    assert {frozenset(kept) for kept in all_prunings(forest, 0)} <= found


@given(rng=generators, memory=st.integers(1, 6))
def test_the_objective_never_exceeds_all_of_the_last_few(rng, memory):
    problem = small_problem(rng, max_splits=12)
    start, prior = np.zeros(problem[0].n_nodes), np.ones(problem[0].n_nodes)
    for penalty in (0.3, 0.03, 0.003):
        w, b, _, history = descend(*problem, penalty, prior, start, memory)
        assert history[-1] == pytest.approx(objective(*problem, penalty, prior, w, b), abs=1e-12)
        for k in range(1, len(history)):
            assert history[k] <= history[max(0, k - memory) : k].max() + 1e-12
        start = w


@given(rng=generators)
def test_a_proximal_step_keeps_signs(rng):
    parent = random_parent(rng, 25)
    u = rng.normal(size=25)
    w = np.sign(u) * kernels.project_max_heap(np.abs(u) - 0.2, parent, np.ones(25))

    def distance(w):
        return 0.5 * ((w - u) ** 2).sum() + 0.2 * np.abs(w).sum()

    for _ in range(20):  # no other signs of the same sizes are nearer
        other = w * rng.choice([-1.0, 1.0], 25)
        assert distance(w) <= distance(other) + 1e-12


@given(rng=generators)
def test_the_gradient_is_the_slope_of_the_objective(rng):
    problem = forest, leaves, weight, target = small_problem(rng)
    gradient = kernels.node_gradient(forest.parent, leaves, weight, target)
    mean, one = weight @ target, np.ones(forest.n_nodes)
    for v in range(forest.n_nodes):
        step = np.zeros(forest.n_nodes)
        step[v] = 1e-6
        slope = (objective(*problem, 0.0, one, step, mean) - objective(*problem, 0.0, one, -step, mean)) / 2e-6
        assert gradient[v] == pytest.approx(slope, abs=1e-8)
