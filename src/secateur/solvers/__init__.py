"""The table of solvers: one file per algorithm, one line here."""

from secateur.solvers.base import Solver
from secateur.solvers.block_descent import BlockDescent
from secateur.solvers.max_heap import MaxHeap
from secateur.solvers.minimum_error import MinimumError
from secateur.solvers.optimal_size import OptimalSize
from secateur.solvers.pessimistic_error import PessimisticError
from secateur.solvers.reduced_error import ReducedError
from secateur.solvers.weakest_link import WeakestLink

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (ReducedError, PessimisticError, MinimumError, WeakestLink, OptimalSize, MaxHeap, BlockDescent)
}

__all__ = [
    "SOLVERS",
    "BlockDescent",
    "MaxHeap",
    "MinimumError",
    "OptimalSize",
    "PessimisticError",
    "ReducedError",
    "Solver",
    "WeakestLink",
]
