"""From a solver's decisions to a Path: the columns every path has."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.decision import Decision, raises
from secateur.io.adapter import ForestAdapter
from secateur.path import Path
from secateur.path.masks import Masks, PackedMasks
from secateur.problem import Problem

Floats = NDArray[np.float64]


def trace_path(problem: Problem, masks: Masks, penalty: Floats, solver: str, **changes: Any) -> Path:
    """Return the path of a solver's decisions with the columns every path has.

    Parameters
    ----------
    problem : Problem
    masks : Masks
        Point 0 keeps every node.
    penalty : (n_points,)
    solver : str
        The solver with its settings, as its repr gives them.
    **changes
        values, tree_weight and base, where the solver changes them.
    """
    forest = problem.forest
    table: dict[str, NDArray[Any]] = {"penalty": penalty, **masks.sizes(forest)}
    table["cost"] = masks.totals(forest, *problem.prices)
    table["risk"] = masks.totals(forest, problem.risk, np.zeros(forest.n_nodes)) / max(forest.n_trees, 1)
    for point in range(masks.n_points if isinstance(masks, PackedMasks) else 0):
        if raises(forest, masks.keep(point)):  # rows go other ways, so their sums at the nodes must be taken again
            alone = problem.pruned(Decision(masks.keep(point)))
            split = alone.forest.is_split
            table["cost"][point] = alone.prices[0][~split].sum() + alone.prices[1][split].sum()
            table["risk"][point] = alone.risk[~split].sum() / alone.forest.n_trees
    facts = {
        "loss": problem.loss.name,
        "cost": problem.cost.name,
        "made_on_rows": len(problem.sample),
    }
    return Path(ForestAdapter(forest), masks, table, solver, facts, **changes)
