"""The table of solvers: one file per algorithm, one line here."""

from secateur.solvers.base import Solver
from secateur.solvers.best_subset import BestSubset
from secateur.solvers.block_descent import BlockDescent
from secateur.solvers.cost_descent import CostDescent
from secateur.solvers.fewer_trees import FewerTrees
from secateur.solvers.linear_program import LinearProgram
from secateur.solvers.max_heap import MaxHeap
from secateur.solvers.min_cut import MinCut
from secateur.solvers.minimum_error import MinimumError
from secateur.solvers.optimal_size import OptimalSize
from secateur.solvers.partition_cut import PartitionCut
from secateur.solvers.pessimistic_error import PessimisticError
from secateur.solvers.primal_dual import PrimalDual
from secateur.solvers.reduced_error import ReducedError
from secateur.solvers.rule_lasso import RuleLasso
from secateur.solvers.tree_lasso import TreeLasso
from secateur.solvers.weakest_link import WeakestLink

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        ReducedError,
        PessimisticError,
        MinimumError,
        WeakestLink,
        OptimalSize,
        MaxHeap,
        RuleLasso,
        BlockDescent,
        BestSubset,
        FewerTrees,
        TreeLasso,
        MinCut,
        CostDescent,
        LinearProgram,
        PrimalDual,
        PartitionCut,
    )
}

__all__ = [
    "SOLVERS",
    "BestSubset",
    "BlockDescent",
    "CostDescent",
    "FewerTrees",
    "LinearProgram",
    "MaxHeap",
    "MinCut",
    "MinimumError",
    "OptimalSize",
    "PartitionCut",
    "PessimisticError",
    "PrimalDual",
    "ReducedError",
    "RuleLasso",
    "Solver",
    "TreeLasso",
    "WeakestLink",
]
