"""The table of solvers: one file per algorithm, one line here."""

from secateur.solvers.base import Solver
from secateur.solvers.weakest_link import WeakestLink

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (WeakestLink,)}

__all__ = ["SOLVERS", "Solver", "WeakestLink"]
