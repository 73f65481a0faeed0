"""List all pruning solvers by name: one file per algorithm, one entry in `SOLVERS`."""

from secateur.solvers.base import Solver
from secateur.solvers.ensemble.block_descent import BlockDescent
from secateur.solvers.feature_cost.cost_descent import CostDescent
from secateur.solvers.feature_cost.linear_program import LinearProgram
from secateur.solvers.feature_cost.min_cut import MinCut
from secateur.solvers.feature_cost.partition_cut import PartitionCut
from secateur.solvers.feature_cost.primal_dual import PrimalDual
from secateur.solvers.node_weights.max_heap import MaxHeap
from secateur.solvers.node_weights.rule_lasso import RuleLasso
from secateur.solvers.single_tree.minimum_error import MinimumError
from secateur.solvers.single_tree.optimal_size import OptimalSize
from secateur.solvers.single_tree.pessimistic_error import PessimisticError
from secateur.solvers.single_tree.reduced_error import ReducedError
from secateur.solvers.single_tree.weakest_link import WeakestLink
from secateur.solvers.whole_trees.best_subset import BestSubset
from secateur.solvers.whole_trees.fewer_trees import FewerTrees
from secateur.solvers.whole_trees.tree_lasso import TreeLasso

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        WeakestLink,
        OptimalSize,
        ReducedError,
        PessimisticError,
        MinimumError,
        MaxHeap,
        RuleLasso,
        BlockDescent,
        FewerTrees,
        TreeLasso,
        BestSubset,
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
