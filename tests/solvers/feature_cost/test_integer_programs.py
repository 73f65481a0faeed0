"""The programs of Nan, Wang and Saligrama 2016 as they stand there, and the fractional vertex of (IP1)."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from tests.feature_problems import first_tree_of_figure_1, optimum

import secateur as sc
from secateur.solvers.feature_cost._decomposition import decompose
from secateur.solvers.feature_cost._integer_programs import ip1, ip3
from secateur.solvers.feature_cost.linear_program import LinearProgram

METHODS = ["simplex", "dantzig_wolfe"]
CANCER = load_breast_cancer(return_X_y=True)


def test_the_constraints_of_the_example_are_those_the_paper_lists():
    question = decompose(first_tree_of_figure_1(), "holdout", None)
    columns = ["z1", "z2", "z3", "z4", "z5", "w1", "w2"]
    listed = {"z1+z2", "z1+z3+z4", "z1+z3+z5"}
    rows = ip1(question).matrix.toarray()
    equal = {"+".join(columns[k] for k in np.flatnonzero(row)) for row in rows[:3]}
    above = {tuple(columns[int(np.flatnonzero(row == side)[0])] for side in (1, -1)) for row in rows[3:]}
    assert (equal, above) == (listed, {("w1", "z4"), ("w1", "z3"), ("w2", "z4")})
    program = ip3(question)
    columns = ["z1", "z2", "z3", "z4", "z5", "w1^", "w2^", "w1", "w2"]
    names = [frozenset(columns[k] for k in np.flatnonzero(row)) for row in program.matrix.toarray()]
    trees = [{"z1", "z2"}, {"z1", "z3", "z4"}, {"z1", "z3", "z5"}, {"z1", "w1^"}, {"z1", "z3", "w2^"}]
    assert set(names) == {frozenset(row) for row in [*trees, {"w1^", "w1"}, {"w2^", "w2"}]}
    assert (program.matrix.toarray()[:5] >= 0).all()
    assert program.matrix.toarray()[5:, 7:].sum() == -2
    assert program.lower.tolist() == [1] * 5 + [-np.inf] * 2
    assert program.upper.tolist() == [1] * 5 + [0] * 2


def test_the_fractional_point_of_the_paper_is_a_vertex_of_ip1():
    program = ip1(decompose(first_tree_of_figure_1(), "holdout", None))
    x = np.array([0, 1, 0.5, 0.5, 0.5, 0.5, 0.5])
    activity = program.matrix @ x
    assert (activity >= program.lower).all()
    assert (activity <= program.upper).all()
    rows = program.matrix.toarray()
    sides = np.concatenate([program.lower[1:], [0.0, 1.0]])  # without z1 + z2 = 1, and with z1 = 0 and z2 = 1
    active = np.vstack([rows[1:], np.eye(7)[:2]])
    np.testing.assert_array_equal(active @ x, sides)
    assert active.shape == (7, 7)
    assert np.linalg.matrix_rank(active) == 7


def test_the_optimum_of_ip1_can_be_half_a_pruning_and_that_of_ip3_is_a_whole_one():
    question = decompose(first_tree_of_figure_1(), "holdout", None)
    question = replace(question, errors=np.array([10.0, 0, 1, 0, 0]), price=np.array([2.0, 1.0]))
    prunings = [np.array(split, bool) for split in ([0] * 5, [1, 0, 0, 0, 0], [1, 0, 1, 0, 0])]
    best = min(question.objective(split, 1.0) for split in prunings)
    program = ip1(question)
    x, objective = optimum(program, program.objective(1.0))
    np.testing.assert_allclose(x, [0, 1, 0.5, 0.5, 0.5, 0.5, 0.5], atol=1e-9)
    assert (objective, best) == (pytest.approx(2.0), pytest.approx(3.0))
    program = ip3(question)
    x, objective = optimum(program, program.objective(1.0))
    np.testing.assert_allclose(x, x.round(), atol=1e-9)
    assert objective == pytest.approx(best)


def test_ip1_has_no_path_and_the_reason_is_given():
    X, y = CANCER
    model = RandomForestClassifier(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"fractional vertices.*Use formulation='ip3'"):
        sc.prune_path(model, X, y, solver=LinearProgram(formulation="ip1"))
    with pytest.raises(ValueError, match="fractional vertices"):
        LinearProgram(formulation="ip1").path(first_tree_of_figure_1())
