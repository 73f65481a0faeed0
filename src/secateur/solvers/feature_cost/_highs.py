"""Set up HiGHS, load linear programs into it, and solve them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def start_highs() -> Any:
    """Return a HiGHS instance that uses the simplex method on one thread and prints nothing.

    Raises
    ------
    ImportError
        If highspy is not installed.
    """
    try:
        import highspy
    except ImportError as error:
        raise ImportError(
            "linear_program requires highspy, which is not installed. Run: pip install 'secateur[lp]', or use min_cut."
        ) from error
    highs = highspy.Highs()
    settings: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "solver": "simplex",
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
    }
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    return highs


def load(highs: Any, cost: Floats, matrix: Any, lower: Floats, upper: Floats) -> None:
    """Load the program min cost · x subject to lower ≤ matrix x ≤ upper, x ≥ 0; `matrix` is a scipy CSR matrix."""
    import highspy

    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.row_lower_, program.row_upper_ = cost, lower, upper
    program.col_lower_, program.col_upper_ = np.zeros(len(cost)), np.full(len(cost), np.inf)
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.num_row_, program.a_matrix_.num_col_ = matrix.shape
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    highs.passModel(program)


def solve(highs: Any, cost: Floats | None = None) -> tuple[Floats, Floats]:
    """Return an optimal vertex and the duals of the rows, warm-started from the previous basis.

    `cost`, if given, replaces the objective first.

    Raises
    ------
    RuntimeError
        If HiGHS finds no optimum.
    """
    import highspy

    if cost is not None:
        highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
    highs.run()
    status = highs.getModelStatus()
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(
            f"HiGHS stopped with the status {highs.modelStatusToString(status)!r} and without an optimal solution. "
            "Use min_cut, which solves the same problem without linear programming."
        )
    solution = highs.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
