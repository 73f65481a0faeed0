"""The classical methods against slow versions written straight from their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case
from tests.strategies import all_prunings, examples, generators, random_forest, random_rows, step

import secateur as sc
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.forest.routing import route
from secateur.libraries import adapt
from secateur.losses import Brier, SquaredError, ZeroOne
from secateur.problem import Problem
from secateur.selection.evaluated_path import evaluated_path

many = examples(500)


def random_problem(rng, classes=True, max_splits=7, n_trees=1, loss=None, n_rows=None):
    if classes:
        k = int(rng.integers(2, 4))
        forest = random_forest(rng, n_trees, max_splits, "probability", (k,), k)
        y = rng.integers(0, k, (40, 1))
    else:
        forest = random_forest(rng, n_trees, max_splits, aggregation="mean", divisor=float(n_trees))
        y = rng.normal(size=(40, 1))
    n_rows = int(rng.integers(1, 40)) if n_rows is None else n_rows
    X = random_rows(rng, n_rows, forest.n_features).astype(forest.input_dtype)
    weight = rng.integers(0, 4, n_rows).astype(float)
    weight[0] += 1
    sample = LocalRows(route(forest, X), y[:n_rows], weight, None, X)
    return Problem(forest, sample, loss or (ZeroOne() if classes else SquaredError()), NodeCost())


def rows_at(problem, v, tree=0):
    """Return the rows that pass node v."""
    forest = problem.forest
    here = forest.root[tree] + problem.sample.leaves[tree].astype(int)
    return np.flatnonzero((here >= v) & (here < forest.end[v]))


def loss_at(problem, v, rows):
    """Return the total loss of rows when node v is their leaf."""
    raw = np.repeat(problem.forest.value[[v]], len(rows), axis=0)
    return float(problem.sample.weight[rows] @ problem.loss.rows(problem.forest, raw, problem.sample.y[rows]))


def answer(problem, solver):
    assert solver.unsupported(problem) is None
    path = solver.path(problem)
    return set(np.flatnonzero(path.masks.keep(len(path) - 1)).tolist())


def grow(problem, v, is_cut):
    """Return the nodes of the subtree at v in which every node for which `is_cut` holds is a leaf."""
    forest = problem.forest
    if not forest.is_split[v] or is_cut(v):
        return {v}
    return {v} | grow(problem, v + 1, is_cut) | grow(problem, int(forest.right[v]), is_cut)


def slow_reduced_error(problem, v):
    """Return (loss, nodes) of the subtree at v after reduced-error pruning."""
    own = loss_at(problem, v, rows_at(problem, v))
    if not problem.forest.is_split[v]:
        return own, {v}
    left, right = (slow_reduced_error(problem, u) for u in (v + 1, int(problem.forest.right[v])))
    if own <= left[0] + right[0] + 1e-12:
        return own, {v}
    return left[0] + right[0], {v} | left[1] | right[1]


@many
@given(generators, st.booleans())
def test_reduced_error_is_its_definition(rng, classes):
    problem = random_problem(rng, classes)
    assert answer(problem, sc.solvers.ReducedError()) == slow_reduced_error(problem, 0)[1]


@given(generators, st.booleans())
def test_reduced_error_is_the_smallest_most_accurate_pruning(rng, classes):
    problem = random_problem(rng, classes)
    risk = problem.risk

    def quality(kept):
        leaves = [v for v in kept if not problem.forest.is_split[v] or v + 1 not in kept]
        return round(sum(risk[v] for v in leaves), 10), len(kept)

    best = min(quality(kept) for kept in all_prunings(problem.forest, 0))
    assert quality(answer(problem, sc.solvers.ReducedError())) == best


def nested(forest, v):
    """Return the subtree at v as (node, left, right), or (node,) for a leaf."""
    return (v, nested(forest, v + 1), nested(forest, int(forest.right[v]))) if forest.is_split[v] else (v,)


def slow_raising(problem, tree, rows):
    """Return what a nested tree becomes when it is pruned and raised once, bottom-up."""
    if len(tree) == 1:
        return tree
    goes_left = left_of(problem, tree[0], rows)
    left, right = slow_raising(problem, tree[1], rows[goes_left]), slow_raising(problem, tree[2], rows[~goes_left])
    options = [tree[:1], left, right, (tree[0], left, right)]
    losses = [send(problem, option, rows) for option in options]
    return next(o for o, loss in zip(options, losses, strict=True) if loss <= min(losses) + 1e-12)


def send(problem, tree, rows):
    """Return the loss of rows sent through a nested tree."""
    if len(tree) == 1:
        return loss_at(problem, tree[0], rows)
    goes_left = left_of(problem, tree[0], rows)
    return send(problem, tree[1], rows[goes_left]) + send(problem, tree[2], rows[~goes_left])


def left_of(problem, v, rows):
    """Return which rows a split sends to its left."""
    return np.array([step(problem.forest, v, problem.sample.rows[i]) == v + 1 for i in rows], dtype=bool)


def nodes_of(tree):
    return {tree[0]}.union(*(nodes_of(side) for side in tree[1:]))


@many
@given(generators, st.booleans())
def test_raising_is_its_definition(rng, classes):
    problem = random_problem(rng, classes)
    solver, rows = sc.solvers.ReducedError(raising=True), np.arange(len(problem.sample))
    expected = raised_until_quiet(problem)
    assert answer(problem, solver) == nodes_of(expected)
    loss = send(problem, expected, rows) / problem.sample.weight.sum()
    assert solver.path(problem).table["risk"][-1] == pytest.approx(loss, abs=1e-12)


def raised_until_quiet(problem):
    """Return what a tree becomes when every node is judged again and again until nothing changes."""
    found, before = nested(problem.forest, 0), None
    while found != before:
        found, before = slow_raising(problem, found, np.arange(len(problem.sample))), found
    return found


@pytest.mark.parametrize(
    ("kind", "seed"),  # where rows sent new ways change what is done far above them
    [
        (DecisionTreeRegressor, 8),
        (DecisionTreeRegressor, 14),
        (DecisionTreeClassifier, 28),
        (DecisionTreeClassifier, 35),
    ],
)
def test_raising_full_trees_is_its_definition(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3)).round(1)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600)
    y = np.digitize(y, [-1.0, 1.0]) if kind is DecisionTreeClassifier else y
    adapter = adapt(kind(random_state=0).fit(X[:300], y[:300]))
    loss = ZeroOne() if adapter.forest.n_classes else SquaredError()
    problem = Problem(adapter.forest, read_sample(adapter, X[300:], y[300:]), loss, NodeCost())
    assert answer(problem, sc.solvers.ReducedError(raising=True)) == nodes_of(raised_until_quiet(problem))


@many
@given(generators, st.booleans())
def test_raising_what_was_raised_changes_nothing(rng, classes):
    problem = random_problem(rng, classes, max_splits=12)
    solver = sc.solvers.ReducedError(raising=True)
    once = problem.pruned(solver.path(problem).decision(1))
    assert solver.path(once).decision(1).keep.all()


def test_raising_never_does_worse_than_cutting_on_the_rows_given():
    c = case("random forest classifier")
    X, y = c.X_new[len(c.X) :], c.y
    cut = sc.prune_path(c.model, X, y, solver="reduced_error")
    raised = sc.prune_path(c.model, X, y, solver=sc.solvers.ReducedError(raising=True))
    assert raised.table["risk"][-1] <= cut.table["risk"][-1] + 1e-12


@many
@given(generators, st.booleans(), st.sampled_from([0.0, 1.0, 2.5]))
@example(np.random.default_rng(301990404), True, 0.0)  # as many errors with as without a split
def test_pessimistic_error_is_its_definition(rng, classes, standard_errors):
    problem = random_problem(rng, classes)
    forest = problem.forest

    def leaves_below(v):
        return [v] if not forest.is_split[v] else leaves_below(v + 1) + leaves_below(int(forest.right[v]))

    def is_cut(v):
        leaves = leaves_below(v)
        rows = rows_at(problem, v)
        corrected = sum(loss_at(problem, u, rows_at(problem, u)) for u in leaves) + len(leaves) / 2
        n = problem.sample.weight[rows].sum() or 1.0
        error = math.sqrt(corrected * abs(n - corrected) / n)
        return loss_at(problem, v, rows) + 0.5 <= corrected + standard_errors * error

    assert answer(problem, sc.solvers.PessimisticError(standard_errors)) == grow(problem, 0, is_cut)


@many
@given(generators, st.sampled_from([None, 0.5, 4.0]))
def test_minimum_error_is_its_definition(rng, m):
    problem = random_problem(rng)
    forest, sample = problem.forest, problem.sample
    k = forest.n_classes[0]

    def expected_error(v):
        rows = rows_at(problem, v)
        label = forest.value[v].argmax()
        n, n_c = sample.weight[rows].sum(), sample.weight[rows][sample.y[rows, 0] == label].sum()
        if m is None:
            return (n - n_c + k - 1) / (n + k)
        prior = sample.weight[sample.y[:, 0] == label].sum() / sample.weight.sum()
        return (n - n_c + (1 - prior) * m) / (n + m)

    def prune(v):
        own = expected_error(v)
        if not forest.is_split[v]:
            return own, {v}
        sides = [v + 1, int(forest.right[v])]
        n = [sample.weight[rows_at(problem, u)].sum() for u in sides]
        (a, below_a), (b, below_b) = (prune(u) for u in sides)
        if sum(n) == 0:
            return own, {v}
        backed_up = (n[0] * a + n[1] * b) / sum(n)
        return (own, {v}) if own <= backed_up + 1e-12 else (backed_up, {v} | below_a | below_b)

    assert answer(problem, sc.solvers.MinimumError(m)) == prune(0)[1]


def test_minimum_error_has_a_point_for_each_weight_of_the_prior():
    problem = random_problem(np.random.default_rng(3), max_splits=30, n_rows=40)
    path = sc.solvers.MinimumError((4.0, 0.5, 50.0)).path(problem)
    assert sorted(path.table["penalty"][1:].tolist()) == [0.5, 4.0, 50.0]
    for point in range(1, 4):
        alone = sc.solvers.MinimumError(path.table["penalty"][point]).path(problem)
        np.testing.assert_array_equal(path.masks.keep(point), alone.masks.keep(1))


@given(generators, st.sampled_from([None, 0.0, 0.5, 4.0]))
def test_estimated_leaves_have_the_frequencies_of_their_rows_and_of_the_prior(rng, m):
    problem = random_problem(rng)
    path = sc.solvers.MinimumError(m, values="estimated").path(problem)
    decision, sample = path.decision(1), problem.sample
    k = problem.forest.n_classes[0]
    everywhere = np.bincount(sample.y[:, 0], sample.weight, k) / sample.weight.sum()
    prior, rows = (np.full(k, 1 / k), k) if m is None else (everywhere, m)
    for v in np.flatnonzero(decision.keep):
        here = rows_at(problem, v)
        counts = np.bincount(sample.y[here, 0], sample.weight[here], k)
        expected = (counts + rows * prior) / (counts.sum() + rows) if counts.sum() + rows else prior
        np.testing.assert_allclose(decision.value[v], expected, rtol=1e-12)


def test_the_weight_of_the_prior_can_be_chosen_by_validation_rows():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    solver = sc.solvers.MinimumError((1.0, 10.0, 100.0), values="estimated")
    path = evaluated_path(tree, X[:300], y[:300], solver=solver, validation="cv", loss="log_loss")
    # Points of clones with the same weight are compared, whatever their size.
    for point in range(1, 4):
        alone = replace(solver, m=(float(path.table["penalty"][point]),))
        expected = evaluated_path(tree, X[:300], y[:300], solver=alone, validation="cv", loss="log_loss")
        assert path.table["loss"][point] == expected.table["loss"][1]


def test_a_split_into_pure_leaves_of_two_classes_stays_without_m():
    for n_first, n_second in ((1, 1), (1, 2), (3, 1), (50, 1), (40, 40), (500, 2)):
        y = np.repeat([0, 1], [n_first, n_second])
        tree = DecisionTreeClassifier().fit(y[:, None], y)
        assert sc.prune_path(tree, y[:, None], y, solver="minimum_error").table["n_leaves"].tolist() == [2, 2]
    # With a prior of .996 for the first class, the second is noise.
    path = sc.prune_path(tree, y[:, None], y, solver=sc.solvers.MinimumError(1e6))
    assert path.table["n_leaves"][1] == 1


def test_a_weight_of_the_prior_that_is_no_number_of_rows_is_refused():
    for m in (-1.0, np.nan, (), (1.0, np.inf)):
        with pytest.raises(ValueError, match="a number of rows from 0 on"):
            sc.solvers.MinimumError(m)


@given(generators, st.booleans())
def test_optimal_size_is_the_best_of_all_prunings_of_every_size(rng, classes):
    problem = random_problem(rng, classes, max_splits=12 if classes else 8)
    forest, risk = problem.forest, problem.risk
    best = {}
    for kept in all_prunings(forest, 0):
        leaves = [v for v in kept if not forest.is_split[v] or v + 1 not in kept]
        best[len(leaves)] = min(best.get(len(leaves), np.inf), sum(risk[v] for v in leaves))
    path = sc.solvers.OptimalSize().path(problem)
    assert path.table["n_leaves"].tolist() == sorted(best, reverse=True)
    np.testing.assert_allclose(path.table["risk"], [best[k] for k in path.table["n_leaves"]], atol=1e-12)
    total = problem.sample.weight.sum()
    for errors in np.unique(np.concatenate([np.floor(path.table["risk"] * total + 1e-9), [total]])):
        enough = [k for k, value in best.items() if value * total <= errors + 1e-9]
        if enough:
            assert path.smallest((errors + 1e-9) / total).row["n_leaves"] == min(enough)
        else:
            with pytest.raises(ValueError, match="nearest"):
                path.smallest((errors + 1e-9) / total)


@given(generators, st.integers(1, 5))
def test_a_limit_on_the_leaves_gives_the_tail_of_the_whole_table(rng, max_leaves):
    problem = random_problem(rng, max_splits=9)
    whole = sc.solvers.OptimalSize().path(problem)
    part = sc.solvers.OptimalSize(max_leaves).path(problem)
    small = whole.table["n_leaves"] <= max_leaves
    small[0] = True
    assert part.table["n_leaves"].tolist() == whole.table["n_leaves"][small].tolist()
    np.testing.assert_allclose(part.table["risk"], whole.table["risk"][small], atol=1e-12)


@given(generators)
def test_every_tree_of_a_forest_is_pruned_for_itself(rng):
    problem = random_problem(rng, n_trees=3, n_rows=20)
    forest = problem.forest
    solvers = [sc.solvers.ReducedError(), sc.solvers.ReducedError(raising=True), sc.solvers.MinimumError()]
    for solver in [*solvers, sc.solvers.PessimisticError(), sc.solvers.OptimalSize(2)]:
        together = solver.path(problem).masks
        keep = together.keep(together.n_points - 1)
        for tree in range(3):
            masks = solver.path(_only(problem, tree)).masks
            a, b = forest.tree_start[tree], forest.tree_start[tree + 1]
            assert np.array_equal(keep[a:b], masks.keep(masks.n_points - 1))


def _only(problem, tree):
    """Return the problem of one tree of the forest."""
    keep = np.zeros(problem.forest.n_nodes, bool)
    keep[problem.forest.tree_start[tree] : problem.forest.tree_start[tree + 1]] = True
    return problem.pruned(sc.Decision(keep))


def test_the_best_size_is_never_worse_than_the_cost_complexity_path():
    c = case("tree classifier")
    every = sc.prune_path(c.model, c.X, c.y, solver="optimal_size", loss="brier")
    risk = dict(zip(every.table["n_leaves"].tolist(), every.table["risk"].tolist(), strict=True))
    weakest = sc.prune_path(c.model, c.X, c.y, cost="leaves", loss="brier")
    for n_leaves, value in zip(weakest.table["n_leaves"].tolist(), weakest.table["risk"].tolist(), strict=True):
        assert risk[n_leaves] == pytest.approx(value)  # points of the path are optimal for their size
    assert len(every) > len(weakest)  # and it skips sizes


@given(generators)
def test_nodes_no_row_reaches_go(rng):
    problem = random_problem(rng)
    kept = answer(problem, sc.solvers.ReducedError())
    for v in kept:
        if problem.forest.is_split[v] and v + 1 in kept:
            assert problem.weight[v] > 0


def test_all_equal_labels_leave_one_leaf_when_the_root_is_right():
    c = case("tree classifier")
    label = c.model.classes_[c.model.tree_.value[0, 0].argmax()]
    rows = c.y == label
    for solver in ("reduced_error", "minimum_error", "pessimistic_error"):
        path = sc.prune_path(c.model, c.X[rows], c.y[rows], solver=solver)
        assert path.table["n_nodes"][-1] == 1, solver


@pytest.mark.parametrize("solver", ["reduced_error", "pessimistic_error", "minimum_error", "optimal_size"])
def test_a_tree_of_one_leaf_stays(solver):
    c = case("tree classifier, one leaf")
    assert sc.prune_path(c.model, c.X, c.y, solver=solver).table["n_nodes"].tolist()[-1] == 1


def test_losses_other_than_the_default_are_possible():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, loss=Brier())
    assert answer(problem, sc.solvers.ReducedError()) == slow_reduced_error(problem, 0)[1]


def test_unsupported_models_and_settings_are_refused():
    numbers, boosted = case("tree regressor"), case("gradient boosting regressor")
    with pytest.raises(ValueError, match="class counts"):
        sc.prune_path(numbers.model, numbers.X, numbers.y, solver="minimum_error")
    for solver in ("reduced_error", "pessimistic_error"):
        with pytest.raises(ValueError, match="only a contribution to the target"):
            sc.prune_path(boosted.model, boosted.X, boosted.y, solver=solver)
    with pytest.raises(ValueError, match="at least 1"):
        sc.prune_path(numbers.model, numbers.X, numbers.y, solver=sc.solvers.OptimalSize(0))
