"""Inner products of layers against dense matrices, and the descent on them against rows and against enumeration."""

import itertools
import operator
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from tests.cases import case
from tests.solvers.ensemble.test_block_descent import depth_objective, problem_of, random_problem, tree_depths, walk_up
from tests.strategies import generators, random_forest, random_rows, random_target

import secateur as sc
from secateur.costs import COSTS, AdditiveCost
from secateur.data.rows import LocalRows
from secateur.forest.routing import route
from secateur.losses import default_loss
from secateur.path.build import trace_points
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble._gram_descent import GramDescent, gram_points
from secateur.solvers.ensemble.additive_model import additive
from secateur.solvers.ensemble.gram import columns, gram_of

ADDITIVE = [name for name, cost in COSTS.items() if issubclass(cost, AdditiveCost)]
LAYERS = {"granularity": "layer", "values": "keep"}
KINDS = {
    "number": {},
    "three numbers": {"n_outputs": 3},
    "three numbers, a tree each": {"link": "softmax", "n_outputs": 3, "n_classes": (3,)},
    "mean": {"aggregation": "mean"},
    "classes": {"link": "probability", "n_classes": (3,), "n_outputs": 3},
    "two targets": {"link": "probability", "n_classes": (2, 3), "n_outputs": 5},
}
kinds = pytest.mark.parametrize("kind", list(KINDS))
by_weights = pytest.mark.parametrize("weights", ["nodes", "depth"])


def problem_like(rng, kind, n_rows=30, n_trees=6, cost="nodes"):
    """Return a random problem with weights, some 0, and for sums with a start that differs by row."""
    forest = random_forest(rng, n_trees=n_trees, max_splits=6, **KINDS[kind])
    if kind == "three numbers, a tree each":
        forest = replace(forest, link="identity", n_classes=())
    leaves = route(forest, random_rows(rng, n_rows, forest.n_features))
    weight = rng.integers(0, 4, n_rows) * rng.uniform(0.5, 2, n_rows) + (np.arange(n_rows) == 0)
    offset = rng.normal(size=(n_rows, forest.n_outputs)) if forest.aggregation == "sum" else None
    sample = LocalRows(leaves, random_target(rng, forest, n_rows), weight, offset)
    return Problem(forest, sample, default_loss(forest), COSTS[cost]())


def path_of(problem, **settings):
    return BlockDescent(**LAYERS, **settings).path(problem)


def gram_descent(problem, **settings):
    settings = BlockDescent(**LAYERS, engine="gram", **settings).settings("keep", 0.0)
    return GramDescent(problem.forest, problem.prices, gram_of(problem.forest, problem.sample), settings)


def assert_same_path(first, second):
    assert len(first) == len(second)
    np.testing.assert_allclose(first.table["penalty"], second.table["penalty"], rtol=1e-7)
    np.testing.assert_allclose(first.table["risk"], second.table["risk"], rtol=1e-7, atol=1e-12)
    for i in range(len(first)):
        assert np.array_equal(first.masks.keep(i), second.masks.keep(i))
        np.testing.assert_allclose(
            first.values[i], second.values[i], rtol=1e-8, atol=1e-8 * np.abs(first.values[0]).max()
        )


def dense_columns(problem):
    """Return what each layer adds to each row and output, (n_rows, n_outputs, n_columns), row by row."""
    forest, original = problem.forest, additive(problem).original
    layers = []
    for tree, deepest in enumerate(tree_depths(problem)):
        output = forest.tree_output[tree]
        fed = slice(None) if output < 0 else [output]
        for d in range(1, deepest + 1):
            layer = np.zeros((len(problem.sample), forest.n_outputs))
            for i, leaf in enumerate(problem.sample.leaves[tree].astype(int)):
                v = forest.tree_start[tree] + leaf
                layer[i, fed] = original[walk_up(forest, v, d)] - original[walk_up(forest, v, d - 1)]
            layers.append(layer)
    return np.stack(layers, axis=-1) if layers else np.zeros((len(problem.sample), forest.n_outputs, 0))


@kinds
@given(rng=generators, chunk=st.sampled_from([1, 40, 2**22]))
def test_sums_are_those_of_dense_matrices(kind, rng, chunk):
    problem = problem_like(rng, kind)
    D, w, forest = dense_columns(problem), problem.sample.weight, problem.forest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("secateur.solvers.ensemble.gram._CHUNK", chunk)
        gram = gram_of(forest, problem.sample)
    whole = additive(replace(problem, row_source=replace(problem.sample, weight=np.ones(len(w)))))
    rest = whole.target - whole.start - gram.shift
    np.testing.assert_allclose(gram.inner, np.einsum("i,ikc,ikd->cd", w, D, D), atol=1e-10)
    np.testing.assert_allclose(gram.match, np.einsum("i,ikc,ik->c", w, D, rest), atol=1e-10)
    np.testing.assert_allclose(gram.added, np.einsum("i,ikc->ck", w, D), atol=1e-10)
    np.testing.assert_allclose(gram.rest, w @ rest, atol=1e-10)
    assert gram.square == pytest.approx(np.einsum("i,ik,ik->", w, rest, rest))
    assert gram.weight == pytest.approx(w.sum())
    np.testing.assert_allclose(gram.reach, problem.weight)
    assert columns(forest)[-1] == sum(tree_depths(problem))


@given(rng=generators, cost=st.sampled_from(ADDITIVE), weights=st.sampled_from(["nodes", "depth"]))
@kinds
def test_the_objective_of_any_depths_is_that_of_the_rows(kind, rng, cost, weights):
    problem = problem_like(rng, kind, cost=cost)
    descent, forest = gram_descent(problem, weights=weights), problem.forest
    D, ensemble = dense_columns(problem)[problem.sample.weight > 0], additive(problem)
    depths = [int(rng.integers(-1, deepest + 1)) for deepest in tree_depths(problem)]
    for tree in rng.permutation(forest.n_trees):
        descent.move(int(tree), tree_depths(problem)[tree])
        descent.move(int(tree), depths[tree])
    inside = [c < d for d, deepest in zip(depths, tree_depths(problem), strict=True) for c in range(deepest)]
    rest = ensemble.target - ensemble.start - D[:, :, np.array(inside, bool)].sum(axis=2)
    rest -= ensemble.weight @ rest / ensemble.weight.sum()
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    kept = forest.depth <= np.array(depths)[tree]
    ends = kept & ((forest.depth == np.array(depths)[tree]) | ~forest.is_split)
    price = problem.prices[0][ends].sum() + problem.prices[1][kept & ~ends].sum()
    if weights == "depth":
        price = sum(max(d, 0) for d in depths)
    assert descent.objective(0.3) == pytest.approx(ensemble.weight @ (rest**2).sum(axis=1) + 0.3 * price)
    assert np.array_equal(descent.spread(descent.state).status > 0, kept)


@kinds
@by_weights
@given(rng=generators, cost=st.sampled_from(ADDITIVE), local_search=st.sampled_from([0, 3]))
def test_both_engines_find_the_same_path(kind, weights, rng, cost, local_search):
    problem = problem_like(rng, kind, cost=cost)
    settings = {"weights": weights, "local_search": local_search, "penalties": 15}
    assert_same_path(path_of(problem, **settings), path_of(problem, engine="gram", **settings))


X, y = load_diabetes(return_X_y=True)
MODELS = {
    "random forest regressor": (RandomForestRegressor(15, random_state=0), X, y),
    "random forest regressor, two targets": (RandomForestRegressor(10, random_state=0), X, np.c_[y, 100 * X[:, 0]]),
    "extra trees regressor, different depths": (ExtraTreesRegressor(15, max_leaf_nodes=20, random_state=0), X, y),
    "boosted regressor": (GradientBoostingRegressor(n_estimators=40, random_state=0), X, y),
    "boosted regressor, on another model": (
        GradientBoostingRegressor(n_estimators=30, init=LinearRegression(), random_state=0),
        X,
        y,
    ),
    "histogram regressor": (HistGradientBoostingRegressor(max_iter=20), X, y),
    "random forest classifier": (RandomForestClassifier(15, random_state=0), *load_iris(return_X_y=True)),
    "far from zero": (RandomForestRegressor(15, max_depth=6, random_state=0), X, y + 1e7),
}
models = pytest.mark.parametrize("name", list(MODELS))


def real_problem(name):
    """Return a model fitted on half of the rows, and the others with weights, some 0."""
    model, X, y = MODELS[name]
    weight = np.random.default_rng(0).integers(0, 3, len(X[1::2])).astype(float)
    return problem_of(model.fit(X[::2], y[::2]), X[1::2], y[1::2], weight)


@models
@by_weights
@pytest.mark.parametrize("local_search", [0, 5])
def test_both_engines_find_the_same_path_for_real_models(name, weights, local_search):
    problem = real_problem(name)
    settings = {"weights": weights, "local_search": local_search}
    path = path_of(problem, engine="gram", **settings)
    assert len(path) > 8
    assert_same_path(path_of(problem, **settings), path)


@models
def test_sums_over_parts_of_the_rows_give_the_path_of_all_rows(name):
    problem = real_problem(name)
    contribution = np.random.default_rng(1).integers(0, 7, len(problem.sample))
    samples = [problem.sample.take(np.flatnonzero(contribution == p)) for p in range(8)]  # there is nothing in the last
    assert len(samples[7]) == 0
    gram = reduce(operator.add, [gram_of(problem.forest, sample) for sample in samples])
    settings = BlockDescent(**LAYERS, local_search=3).settings("keep", 0.0)
    points = gram_points(problem.forest, problem.prices, gram, settings)
    path = trace_points(problem, points, "", ensemble=True)
    assert_same_path(path_of(problem, local_search=3), path)
    assert_same_path(path_of(problem, local_search=3, engine="gram"), path)


def test_with_a_search_depths_are_optimal_nearly_always():
    optimal, n_cases = 0, 200
    for seed in range(n_cases):
        rng = np.random.default_rng(seed)
        problem = random_problem(rng, 4, n_rows=15)
        descent, ensemble = gram_descent(problem, local_search=20), additive(problem)
        penalty = float(rng.choice([0.003, 0.01, 0.03])) * descent.scale
        descent.descend(penalty)
        descent.search(penalty)
        found = depth_objective(ensemble, problem, descent.state.depth.tolist(), penalty)
        assert descent.objective(penalty) == pytest.approx(found, abs=1e-10)
        combinations = itertools.product(*(range(-1, deepest + 1) for deepest in tree_depths(problem)))
        best = min(depth_objective(ensemble, problem, depths, penalty) for depths in combinations)
        assert found >= best - 1e-9
        optimal += found <= best + 1e-9 * max(best, 1.0)
    assert optimal >= 0.95 * n_cases


@given(rng=generators, share=st.sampled_from([0.3, 0.03, 0.003, 0.0]))
def test_one_update_finds_the_best_depth_and_says_what_it_gained(rng, share):
    problem = random_problem(rng, 3, max_splits=6)
    descent, ensemble = gram_descent(problem, max_sweeps=1), additive(problem)
    penalty = share * descent.scale
    depths = [int(rng.integers(-1, deepest + 1)) for deepest in tree_depths(problem)]
    for tree, depth in enumerate(depths):
        descent.move(tree, depth)
    before = depth_objective(ensemble, problem, depths, penalty)
    for tree, deepest in enumerate(tree_depths(problem)):
        options = [[*depths[:tree], d, *depths[tree + 1 :]] for d in range(-1, deepest + 1)]
        depths = min(options, key=lambda option: depth_objective(ensemble, problem, option, penalty))
    after = depth_objective(ensemble, problem, depths, penalty)
    assert descent.descend(penalty) == pytest.approx(before - after, abs=1e-10)
    assert descent.objective(penalty) == pytest.approx(after, abs=1e-10)


@pytest.mark.parametrize("name", ["random forest regressor", "boosted regressor", "random forest classifier"])
@pytest.mark.parametrize("budget", [20, 60, 150])
def test_a_budget_is_met_by_whole_layers(name, budget):
    problem = real_problem(name)
    forest = problem.forest
    descent = gram_descent(problem, penalties=10, max_nodes=budget)
    *_, last = [cut.copy() for _, cut in descent.run()]
    assert descent.size(last) <= budget
    path = path_of(problem, penalties=10, max_nodes=budget, engine="gram")
    assert descent.size(last) in path.table["n_nodes"]
    for point in range(len(path)):
        keep = path.masks.keep(point)
        for a, b in itertools.pairwise(forest.tree_start):
            kept, depth = keep[a:b], forest.depth[a:b]
            assert not kept.any() or np.array_equal(kept, depth <= depth[kept].max())
    assert_same_path(path, path_of(problem, penalties=10, max_nodes=budget))


@pytest.mark.parametrize("name", ["random forest regressor", "boosted regressor", "random forest classifier"])
def test_both_engines_leave_the_same_number_of_trees(name):
    problem = real_problem(name)
    path = path_of(problem, penalties=10, max_trees=4, engine="gram")
    assert path.table["n_trees"][1:].max() == 4
    assert_same_path(path, path_of(problem, penalties=10, max_trees=4))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"granularity": "layer"},
        {"values": "keep"},
        {"granularity": "layer", "values": "both"},
        {**LAYERS, "polish": "ridge"},
        {**LAYERS, "polish": "ridge", "joint": True},
    ],
)
def test_settings_that_need_rows_are_refused(settings):
    BlockDescent(**settings)
    with pytest.raises(ValueError, match=r"engine='gram' with .*Use .*engine='rows'"):
        BlockDescent(engine="gram", **settings)


def test_an_unknown_engine_is_refused():
    with pytest.raises(ValueError, match="engine='spark' is unknown"):
        BlockDescent(engine="spark")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gradient boosting classifier", r"loss log_loss. Use engine='rows'"),
        ("hist boosting classifier, three classes", r"loss log_loss. Use engine='rows'"),
        ("adaboost regressor", "Use weakest_link"),
    ],
)
def test_models_whose_loss_is_no_squared_error_are_refused(name, reason):
    c = case(name)
    solver = BlockDescent(**LAYERS, engine="gram")
    with pytest.raises(ValueError, match=f"BlockDescent cannot prune this: .*{reason}"):
        sc.prune_path(c.model, c.X, c.y, solver=solver)


def test_the_gram_matrix_of_log_odds_is_refused():
    X, y = load_iris(return_X_y=True)
    problem = problem_of(GradientBoostingClassifier(n_estimators=2).fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"Cannot compute the Gram matrix of this model: .*squared error"):
        gram_of(problem.forest, problem.sample)


def test_gram_matrices_of_different_forests_are_not_added():
    first, second = real_problem("random forest regressor"), real_problem("boosted regressor")
    with pytest.raises(ValueError, match="belong to different forests"):
        gram_of(first.forest, first.sample) + gram_of(second.forest, second.sample)
