"""Rows in several parts give the same results as the same rows in one part, for any partition."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from tests.in_one_test import for_each
from tests.solvers.by_need import solvers_of_node_sums

from secateur.costs import DepthCost, FeatureCost, NodeCost
from secateur.data.rows import Parts, in_parts, joined, read_sample
from secateur.libraries import adapt
from secateur.losses import ZeroOne, default_loss
from secateur.path.evaluation import Compared, columns_of
from secateur.problem import Problem
from secateur.solvers import BlockDescent, MaxHeap, MinimumError, ReducedError, WeakestLink

SPLITS = {
    "one": lambda n: [n],
    "two": lambda n: [n // 2, n - n // 2],
    "seven": lambda n: [n // 7] * 6 + [n - 6 * (n // 7)],
    "one empty": lambda n: [n // 2, 0, n - n // 2],
    "one skewed": lambda n: [1, n - 3, 2],
}
SOLVERS = solvers_of_node_sums(MaxHeap(penalties=6))


def parts_of(sample, how):
    ends = np.cumsum(SPLITS[how](len(sample)))
    order = np.random.default_rng(0).permutation(len(sample))
    return Parts(tuple(sample.take(index) for index in np.split(order, ends[:-1])))


def problem_of(kind, weighted=False):
    classes = kind == "classes"
    X, y = load_iris(return_X_y=True) if classes else load_diabetes(return_X_y=True)
    if classes:  # labels that no split explains, so that there is something to prune
        y = np.where(np.random.default_rng(1).random(len(y)) < 0.2, (y + 1) % 3, y)
    make = {
        "classes": RandomForestClassifier(n_estimators=5, random_state=0),
        "numbers": RandomForestRegressor(n_estimators=4, max_depth=6, random_state=0),
        "boosted": GradientBoostingRegressor(n_estimators=8, random_state=0),
    }[kind]
    adapter = adapt(make.fit(X[::2], y[::2]))
    weight = np.random.default_rng(2).integers(0, 4, len(y[1::2])).astype(float) if weighted else None
    sample = read_sample(adapter, X[1::2], y[1::2], weight)
    loss = ZeroOne() if classes else default_loss(adapter.forest)
    return Problem(adapter.forest, sample, loss, NodeCost())


def assert_same_path(found, expected, rtol=1e-9):
    assert len(found) == len(expected)
    for point in range(len(expected)):
        np.testing.assert_array_equal(found.masks.keep(point), expected.masks.keep(point))
    for name, column in expected.table.items():
        np.testing.assert_allclose(found.table[name], column, rtol=rtol, atol=1e-12, err_msg=name)
    assert found.info.made_on_rows == expected.info.made_on_rows


@pytest.mark.parametrize("solver", [*SOLVERS, MinimumError(m=2.0)], ids=repr)
@for_each("how", SPLITS)
def test_classes_in_parts_give_the_same_path(solver, how):
    problem = problem_of("classes")
    assert not solver.needs_rows
    parts = replace(problem, row_source=parts_of(problem.sample, how))
    assert_same_path(solver.path(parts), solver.path(problem), rtol=1e-7 if solver.changes else 0)


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("kind", ["numbers", "boosted"])
@for_each("how", SPLITS)
def test_numbers_in_parts_give_the_same_path(solver, how, kind):
    problem = problem_of(kind, weighted=True)
    parts = replace(problem, row_source=parts_of(problem.sample, how))
    reason = solver.unsupported(problem)
    assert solver.unsupported(parts) == reason
    if reason is None:
        assert_same_path(solver.path(parts), solver.path(problem), rtol=1e-6 if solver.changes else 1e-9)


@pytest.mark.parametrize("cost", [DepthCost(), FeatureCost({"a": 1.0, "b": 2.0, "c": 0.5, "d": 3.0}), FeatureCost()])
@for_each("how", SPLITS)
def test_a_cost_in_parts_is_the_same(cost, how):
    problem = replace(problem_of("classes"), cost=cost)
    masks = WeakestLink().path(problem_of("classes")).masks
    parts = replace(problem, row_source=parts_of(problem.sample, how))
    np.testing.assert_allclose(parts.costs(masks), problem.costs(masks), rtol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "numbers", "boosted"])
@for_each("how", SPLITS)
def test_a_path_evaluated_in_parts_is_the_same(kind, how):
    problem = problem_of(kind, weighted=True)
    path = WeakestLink().path(problem).thin(10)
    whole = path.evaluate_sample(problem.sample, rows="all")
    parts = path.evaluate_sample(parts_of(problem.sample, how), rows="all")
    for name in ("loss", "loss_se", "changed", "increase_se"):
        np.testing.assert_allclose(parts.table[name], whole.table[name], rtol=1e-7, atol=1e-9, err_msg=name)
    assert parts.info.to_json() == pytest.approx(whole.info.to_json())


def test_the_error_of_a_difference_is_that_of_the_rows_differences():
    problem = problem_of("numbers", weighted=True)
    path = WeakestLink().path(problem).thin(6)
    query = Compared(path.decisions, (2, 3), problem.loss)
    found = columns_of(parts_of(problem.sample, "seven").total(problem.forest, query))
    share = problem.sample.weight / problem.sample.total_weight
    losses = {point: path.on_rows(point, problem.sample).losses(problem.loss) for point in (0, 2, 3)}
    for place, point in enumerate((2, 3)):
        more = losses[point] - losses[0]
        assert found[0, place] == pytest.approx(share @ losses[point])
        assert found[3, place] == pytest.approx(np.sqrt(share**2 @ (more - share @ more) ** 2))


@for_each("how", SPLITS)
def test_rows_split_in_parts_are_complementary(how):
    problem = problem_of("classes")
    sample = replace(problem.sample, row_index=np.arange(len(problem.sample)))
    rest, drawn = parts_of(sample, how).split(0.25, np.random.default_rng(3))
    assert sorted([*rest.collect().row_index, *drawn.collect().row_index]) == list(range(len(sample)))
    assert len(drawn) == round(0.25 * len(sample))


def test_parts_joined_are_the_sample_again():
    sample = problem_of("numbers", weighted=True).sample
    again = joined(in_parts(sample, 5).parts)
    for name in ("leaves", "y", "weight", "rows"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sample, name))


def test_queries_can_be_pickled(tmp_path):
    problem = problem_of("classes")
    path = WeakestLink().path(problem)
    query = pickle.loads(pickle.dumps(Compared(path.decisions, (0, 1), problem.loss)))
    np.testing.assert_array_equal(
        query(problem.forest, problem.sample),
        Compared(path.decisions, (0, 1), problem.loss)(problem.forest, problem.sample),
    )
    prices = tmp_path / "prices.csv"
    prices.write_text("feature,cost\n0,1\n1,2\n2,3\n3,4\n")
    cost = pickle.dumps(FeatureCost(str(prices)))
    prices.unlink()
    assert pickle.loads(cost).price_table(problem.forest, problem.sample).prices.tolist() == [[1.0, 2.0, 3.0, 4.0]]


def test_solvers_that_access_rows_declare_it():
    assert BlockDescent(polish="ridge", granularity="layer", values="keep").needs_rows
    assert MaxHeap(joint=True).needs_rows
    assert MaxHeap(subsamples=2).needs_rows
    assert ReducedError(raising=True).needs_rows
