"""Block descent by sums over parts of the rows: the path it finds with all rows at hand, and what is asked for it."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from tests.solvers.ensemble.test_block_descent import problem_of
from tests.solvers.ensemble.test_gram import problem_like

from secateur.data.rows import Parts, in_parts
from secateur.forest.routing import raw_scores
from secateur.solvers import BlockDescent
from secateur.solvers.ensemble._leaf_overlaps import AskOverlaps
from secateur.solvers.ensemble._remote_descent import DistantDescent
from secateur.solvers.ensemble._row_descent import Descent
from secateur.solvers.ensemble._row_sums import Kept, RowSums, Step, kept_leaves
from secateur.solvers.ensemble.additive_model import additive, as_numbers, loss_of

pytestmark = pytest.mark.contracts  # over all kinds of models

DIABETES = load_diabetes(return_X_y=True)
X, y = DIABETES
CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
MODELS = {
    "forest of numbers": (RandomForestRegressor(12, max_depth=5, random_state=0), *DIABETES),
    "forest of two numbers": (ExtraTreesRegressor(8, max_depth=5, random_state=0), X, np.c_[y, 100 * X[:, 2] + y]),
    "forest of classes": (RandomForestClassifier(10, max_depth=4, random_state=0), *WINE),
    "boosted numbers": (GradientBoostingRegressor(n_estimators=20, random_state=0), *DIABETES),
    "boosted numbers, on another model": (
        GradientBoostingRegressor(n_estimators=12, init=LinearRegression(), random_state=0),
        *DIABETES,
    ),
    "boosted classes": (GradientBoostingClassifier(n_estimators=12, random_state=0), *CANCER),
    "boosted classes, three": (GradientBoostingClassifier(n_estimators=6, random_state=0), *WINE),
}
SQUARES = [name for name in MODELS if "boosted classes" not in name]
LOGITS = [name for name in MODELS if "boosted classes" in name]
models = pytest.mark.parametrize("name", list(MODELS))


def here_of(name):
    """Return a model fitted on half of the rows, and the others with weights, some 0."""
    model, X, y = MODELS[name]
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, len(X[1::2])) * (rng.random(len(X[1::2])) > 0.15)
    return problem_of(model.fit(X[::2], y[::2]), X[1::2], y[1::2], weight)


def far(problem, parts):
    """Return the same problem with its rows in parts: so many, or skewed, with one part empty and one of one row."""
    sample = problem.sample
    if parts != "skewed":
        return replace(problem, row_source=in_parts(sample, parts))
    cuts = np.split(np.random.default_rng(5).permutation(len(sample)), [0, 1, 4, len(sample) // 10])
    assert [len(cut) for cut in cuts[:2]] == [0, 1]
    return replace(problem, row_source=Parts(tuple(sample.take(cut) for cut in cuts)))


def assert_same_path(path, expected):
    assert len(path) == len(expected) > 3
    assert list(path.table) == list(expected.table)
    for column in expected.table:
        np.testing.assert_allclose(path.table[column], expected.table[column], rtol=1e-9, atol=1e-12, err_msg=column)
    scale = max(np.abs(value).max() for value in expected.values)
    for point in range(len(path)):
        assert np.array_equal(path.masks.keep(point), expected.masks.keep(point))
        np.testing.assert_allclose(path.values[point], expected.values[point], rtol=1e-8, atol=1e-8 * scale)


def assert_same_at_a_distance(problem, parts, monkeypatch, **settings):
    """Compare the paths, and make sure that they were made in different ways."""
    solver = BlockDescent(**settings)
    expected = solver.path(problem)
    with monkeypatch.context() as patch:
        patch.setattr("secateur.solvers.ensemble.block_descent.additive", None)
        patch.setattr("secateur.solvers.ensemble.block_descent.Descent", None)
        assert_same_path(solver.path(far(problem, parts)), expected)


@models
@pytest.mark.parametrize("granularity", ["node", "layer"])
def test_sums_give_the_path_of_the_rows(name, granularity, monkeypatch):
    settings = {"granularity": granularity, "values": "both", "ridge": (5.0, 25.0), "penalties": 6}
    assert_same_at_a_distance(here_of(name), 2, monkeypatch, **settings)


@pytest.mark.parametrize("name", ["forest of classes", "boosted numbers, on another model", *LOGITS])
@pytest.mark.parametrize("parts", [1, 7, "skewed"])
def test_parts_may_have_any_size(name, parts, monkeypatch):
    assert_same_at_a_distance(here_of(name), parts, monkeypatch, values="both", penalties=5, smallest=1e-3)


@models
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_a_budget_of_nodes_is_met_as_it_is_with_rows(name, values, monkeypatch):
    settings = {"values": values, "penalties": 8, "max_nodes": 40}
    assert_same_at_a_distance(here_of(name), 2, monkeypatch, **settings)


@models
@pytest.mark.parametrize("granularity", ["node", "layer"])
def test_the_same_trees_are_dropped(name, granularity, monkeypatch):
    problem = here_of(name)
    most = 6 if name == "boosted classes, three" else 4
    settings = {"granularity": granularity, "penalties": 8, "max_trees": most, "ridge": 5.0}
    assert_same_at_a_distance(problem, 2, monkeypatch, **settings)
    assert BlockDescent(**settings).path(far(problem, 3)).table["n_trees"][1:].max() == most


@pytest.mark.parametrize("name", ["forest of numbers", "boosted numbers", "boosted classes, three"])
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_a_local_search_takes_the_same_turns(name, values, monkeypatch):
    settings = {"values": values, "penalties": 5, "local_search": 2, "smallest": 1e-3}
    assert_same_at_a_distance(here_of(name), 2, monkeypatch, **settings)


@pytest.mark.parametrize("weights", ["nodes", "depth"])
@pytest.mark.parametrize("name", ["forest of classes", "boosted classes"])
def test_layers_may_be_priced_by_depth(name, weights, monkeypatch):
    settings = {"granularity": "layer", "values": "both", "weights": weights, "penalties": 6}
    assert_same_at_a_distance(here_of(name), 2, monkeypatch, **settings)


def descents(problem, parts=3, ridge=5.0, **settings):
    chosen = BlockDescent(**settings).settings(settings.get("values", "refit"), ridge)
    return Descent(additive(problem), problem, chosen), DistantDescent(far(problem, parts), chosen)


@models
def test_what_is_minimised_is_that_of_the_rows(name):
    near, is_remote = descents(here_of(name))
    assert is_remote.scale == pytest.approx(near.scale, rel=1e-12)
    for penalty in near.penalties()[[20, 35]]:
        near.descend(penalty)
        is_remote.descend(penalty)
        assert is_remote.objective(penalty) == pytest.approx(near.objective(penalty), rel=1e-10)
        np.testing.assert_allclose(is_remote.rises(), near.rises(), rtol=1e-8, atol=1e-10 * near.scale)
        assert is_remote.updates == near.updates


@models
def test_sums_are_those_of_rows_one_by_one(name):
    problem = here_of(name)
    near, _ = descents(problem)
    near.descend(near.penalties()[30])
    forest, ensemble, state = problem.forest, near.ensemble, near.state
    trees = np.array([3, 0, 5])
    question = RowSums(
        kept_leaves(state.status, state.contribution),
        state.intercept,
        ensemble.weight.sum() / problem.total_weight,
        trees,
    )
    (told,) = question.read(forest, far(problem, 3).row_source.total(forest, question))
    assert told.loss == pytest.approx(loss_of(ensemble, state))
    np.testing.assert_allclose(told.slope, state.neg_gradient.sum(axis=0), atol=1e-12 * near.scale)
    pulled, hessian, column = [], [], np.maximum(forest.tree_output, 0)
    for tree in trees:
        here = np.zeros((forest.tree_start[tree + 1] - forest.tree_start[tree], forest.value.shape[1]))
        bend = np.zeros(len(here))
        for i, leaf in enumerate(ensemble.leaves[tree].astype(int)):
            here[leaf] += state.neg_gradient[i, column[tree] : column[tree] + here.shape[1]]
            if ensemble.logits:
                p = state.probability[i, column[tree]]
                bend[leaf] += ensemble.weight[i] * p * (1 - p)
        pulled.append(here)
        hessian.append(bend)
    np.testing.assert_allclose(told.pulled, np.concatenate(pulled), atol=1e-11 * np.abs(state.neg_gradient).sum())
    if ensemble.logits:
        np.testing.assert_allclose(told.hessian, np.concatenate(hessian), rtol=1e-9, atol=1e-14)


def test_overlaps_are_the_weight_of_rows_in_both_leaves():
    problem = here_of("boosted numbers")
    forest, sample = problem.forest, problem.sample
    trees, others = np.array([4, 2]), np.array([2, 7, 0])
    found = far(problem, "skewed").row_source.total(forest, AskOverlaps(trees, others))
    leaves = [np.flatnonzero(~forest.is_split[a:b]) for a, b in itertools.pairwise(forest.tree_start)]
    expected = [
        [sample.weight[(sample.leaves[t] == u) & (sample.leaves[s] == v)].sum() for s in others for v in leaves[s]]
        for t in trees
        for u in leaves[t]
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.count_nonzero(expected) > 50


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize("values", ["refit", "keep"])
def test_all_that_is_known_stays_true(name, values):
    _, is_remote = descents(here_of(name), values=values)
    known, forest = is_remote.known, is_remote.ensemble.forest
    for penalty in is_remote.penalties()[[15, 30, 45]]:
        is_remote.descend(penalty)
        held = np.flatnonzero(known.held)
        assert len(held) > 3
        (fresh,) = known.ask(is_remote.state, held)
        nodes = np.isin(np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start)), held) & ~forest.is_split
        told = fresh.pulled[~np.concatenate([forest.is_split[is_remote.nodes_of(tree)] for tree in held])]
        size = np.sqrt(is_remote.scale) * 1e-11
        np.testing.assert_allclose(known.pulled[nodes], told, atol=size)
        np.testing.assert_allclose(known.of_all(is_remote.state).slope, fresh.slope, atol=size)
        assert is_remote.loss() == pytest.approx(fresh.loss, rel=1e-10)


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize(("n_leaves", "n_numbers"), [(0, 1), (60, 2**20), (4096, 500)])
def test_limits_cost_passes_and_change_nothing(name, n_leaves, n_numbers, monkeypatch):
    problem = here_of(name)
    _, before = descents(problem, penalties=4)
    for _ in before.run():
        pass
    monkeypatch.setattr("secateur.solvers.ensemble._leaf_overlaps._LEAVES", n_leaves)
    monkeypatch.setattr("secateur.solvers.ensemble._leaf_overlaps._NUMBERS", n_numbers)
    monkeypatch.setattr("secateur.solvers.ensemble._remote_sums._NUMBERS", n_numbers)
    near, is_remote = descents(problem, penalties=4)
    for (_, expected), (_, found) in zip(near.run(), is_remote.run(), strict=True):
        assert np.array_equal(found.status, expected.status)
        np.testing.assert_allclose(found.contribution, expected.contribution, rtol=1e-8, atol=1e-9)
    assert is_remote.known.passes > before.known.passes


@pytest.mark.parametrize("name", ["forest of numbers", "boosted numbers", "boosted classes"])
def test_new_values_bring_no_tree_back(name):
    near, is_remote = descents(here_of(name))
    for descent in (near, is_remote):
        descent.descend(near.penalties()[25])
        before = descent.used()
        assert 0 < np.count_nonzero(before) < len(before)
        descent.descend(0.0, frozen=True)
        assert np.array_equal(descent.used(), before)
    assert np.array_equal(near.state.status, is_remote.state.status)
    np.testing.assert_allclose(is_remote.state.contribution, near.state.contribution, rtol=1e-8, atol=1e-9)


def test_an_intercept_far_off_moves_by_the_safer_step():
    _, is_remote = descents(here_of("boosted classes"))
    is_remote.state = replace(is_remote.state, intercept=np.array([6.0]))
    slope = is_remote.known.of_all(is_remote.state).slope[0]
    assert is_remote.move_intercept() > 0
    assert is_remote.state.intercept[0] == pytest.approx(6.0 + 4 * slope, rel=1e-12)


@pytest.mark.parametrize("name", LOGITS)
def test_a_step_gains_what_the_loss_loses(name):
    problem = here_of(name)
    near, is_remote = descents(problem)
    is_remote.descend(near.penalties()[30])
    forest, state, ask = problem.forest, is_remote.state, is_remote.known.ask
    tree = int(np.flatnonzero(is_remote.used())[0])
    here, column = is_remote.nodes_of(tree), int(forest.tree_output[tree])
    fuller = kept_leaves(np.where(forest.is_split[here], 1, 2), 0.3 * is_remote.ensemble.original[here], here.start)
    none = Kept(np.empty(0, np.int32), np.array([[0.1]]))
    some = np.array([1, 2])
    now, grown, lifted = ask(state, some, Step(tree, column, fuller), Step(-1, column, none))
    intercept = state.intercept.copy()
    intercept[column] += 0.1
    (alone,) = ask(replace(state, intercept=intercept), some)
    assert now.loss - lifted.loss == pytest.approx(lifted.gain, rel=1e-6)
    assert lifted.loss == pytest.approx(alone.loss, rel=1e-12)
    np.testing.assert_allclose(lifted.pulled, alone.pulled, atol=1e-12)
    np.testing.assert_allclose(lifted.hessian, alone.hessian, atol=1e-12)
    status, contribution = state.status.copy(), state.contribution.copy()
    status[here] = np.where(forest.is_split[here], 1, 2)
    contribution[here] = 0.3 * is_remote.ensemble.original[here]
    (alone,) = ask(replace(state, status=status, contribution=contribution), some)
    assert now.loss - grown.loss == pytest.approx(grown.gain, rel=1e-6)
    np.testing.assert_allclose([grown.loss, *grown.slope, *grown.bend], [alone.loss, *alone.slope, *alone.bend])


def test_values_predict_what_the_sums_were_told():
    problem = here_of("boosted numbers")
    path = BlockDescent(penalties=6).path(far(problem, 3))
    point = len(path) // 2
    sample = problem.sample
    raw = raw_scores(problem.forest, sample.leaves, path.decision(point), sample.offset)
    squares = ((as_numbers(problem.forest, sample.y) - raw) ** 2)[:, 0]
    assert path.table["risk"][point] == pytest.approx(np.average(squares, weights=sample.weight))


@models
def test_trees_that_stay_as_they_are_cost_next_to_nothing(name):
    _, is_remote = descents(here_of(name), values="keep", ridge=0.0)
    penalty = is_remote.penalties()[25]
    is_remote.descend(penalty)
    before = is_remote.known.passes
    quiet, gain = is_remote.sweep(penalty, is_remote.open, 0, False)
    assert quiet
    assert gain < 1e-12 * is_remote.scale
    assert is_remote.known.passes - before <= 3 + is_remote.ensemble.forest.n_outputs


def test_a_question_is_as_large_as_what_is_kept():
    problem = here_of("forest of numbers")
    _, is_remote = descents(problem)
    is_remote.descend(is_remote.penalties()[20])
    state = is_remote.state
    n_leaves = np.count_nonzero(state.status == 2)
    assert 0 < n_leaves < problem.forest.n_nodes / 10
    question = RowSums(kept_leaves(state.status, state.contribution), state.intercept, 1.0, np.arange(12))
    assert len(pickle.dumps(question)) < 1500 + 12 * n_leaves
    again = pickle.loads(pickle.dumps(question))
    assert np.array_equal(again(problem.forest, problem.sample), question(problem.forest, problem.sample))


@pytest.mark.parametrize("name", SQUARES)
def test_layers_with_their_own_values_take_one_pass(name, monkeypatch):
    problem = here_of(name)
    solver = BlockDescent(granularity="layer", values="keep", penalties=15)
    expected = BlockDescent(granularity="layer", values="keep", penalties=15, engine="gram").path(problem)
    with monkeypatch.context() as patch:
        patch.setattr("secateur.solvers.ensemble.block_descent.DistantDescent", None)
        found = solver.path(far(problem, "skewed"))
        assert_same_path(found, replace(expected, solver=repr(solver)))
        assert_same_path(replace(solver, engine="gram").path(far(problem, 7)), expected)


def test_too_many_layers_for_one_pass_are_looked_at_tree_by_tree(monkeypatch):
    problem = here_of("forest of numbers")
    solver = BlockDescent(granularity="layer", values="keep", penalties=8)
    expected = solver.path(far(problem, 2))
    monkeypatch.setattr("secateur.solvers.ensemble.block_descent._COLUMNS", 5)
    monkeypatch.setattr("secateur.solvers.ensemble.block_descent.gram_of", None)
    assert_same_path(solver.path(far(problem, 2)), expected)


def test_only_reweighing_trees_needs_rows_and_brings_them_together():
    problem = here_of("forest of numbers")
    solver = BlockDescent(polish="ridge", penalties=5)
    assert solver.needs_rows
    assert_same_path(solver.path(far(problem, 3)), solver.path(problem))
    assert not BlockDescent().needs_rows
    assert not BlockDescent(granularity="layer", values="keep", engine="gram").needs_rows


class OutOfReach(Parts):
    """Parts that cannot be brought together."""

    why_not_local = "there are 10 million rows, and 2 million fit here."

    def collect(self):
        raise AssertionError(self.why_not_local)


@pytest.mark.parametrize("name", ["forest of classes", "boosted classes"])
def test_rows_are_never_brought_here(name):
    problem = far(here_of(name), 3)
    away = replace(problem, row_source=OutOfReach(problem.row_source.parts))
    settings = BlockDescent(penalties=5, max_nodes=30, local_search=1).settings("refit", 5.0)
    sizes = [np.count_nonzero(state.status) for _, state in DistantDescent(away, settings).run()]
    assert 0 < sizes[-1] <= 30


@pytest.mark.parametrize("kind", ["three numbers, a tree each", "two targets", "mean"])
@pytest.mark.parametrize("granularity", ["node", "layer"])
def test_random_forests_of_every_kind(kind, granularity, monkeypatch):
    problem = problem_like(np.random.default_rng(3), kind, n_rows=60)
    settings = {"granularity": granularity, "penalties": 8, "ridge": 5.0}
    assert_same_at_a_distance(problem, 4, monkeypatch, **settings)
