"""Build a Path from a solver's decisions: compute sizes, costs and risks of all points."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import warn
from secateur.errors import InterruptedWarning
from secateur.forest.masks import Masks, PackedMasks
from secateur.forest.subforest import Decision, apply_decision, check_keep, kept_splits, kept_trees, raises
from secateur.libraries.adapter import ForestAdapter
from secateur.path import Path
from secateur.path.evaluation import LossesAt
from secateur.path.info import PathInfo
from secateur.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """Hold the solution of a solver at one penalty.

    Attributes
    ----------
    penalty : float
    keep : (n_nodes,) bool
    value : (n_kept, width), or None
        New values of the kept nodes; None keeps the original values.
    more : dict of float or str
        Entries of solver-specific columns.
    risk : float
        Mean loss if the solver knows it; NaN to have it computed.
    """

    penalty: float
    keep: NDArray[np.bool_]
    value: Floats | None = None
    more: Mapping[str, float | str] = field(default_factory=dict)
    risk: float = np.nan


def trace_points(
    problem: Problem, points: Iterable[Point], solver: str, *, ensemble: bool, runs: tuple[str, ...] = ()
) -> Path:
    """Return the path of the unpruned forest and the given points, sorted by decreasing size, then by penalty.

    With a shared (feature) cost, points are sorted by decreasing cost first.

    The values of kept nodes are copied as each point arrives, so a generator may reuse its arrays. After Ctrl-C the
    path contains the points found so far; its `info` and a warning report it. `runs` names the columns that tell apart
    the runs of the solver.
    """
    forest = problem.forest
    found = [_Packed(np.nan, np.packbits(np.ones(forest.n_nodes, bool)), forest.n_nodes, forest.value, {}, np.nan)]
    changed, interrupted = False, False
    try:
        for point in points:
            size = int(np.count_nonzero(point.keep))
            bits, kept = np.packbits(point.keep), forest.value[point.keep] if point.value is None else point.value
            found.append(_Packed(point.penalty, bits, size, kept, point.more, point.risk))
            changed |= point.value is not None
    except KeyboardInterrupt:
        interrupted = True
        message = f"Interrupted: the path has the {len(found) - 1} points found so far. Run again for the others."
        warn(message, InterruptedWarning)
    if problem.cost.shared:
        masks = PackedMasks(np.array([point.bits for point in found]), forest.n_nodes)
        price = dict(zip(map(id, found), problem.costs(masks).tolist(), strict=True))
        found[1:] = sorted(found[1:], key=lambda point: (-price[id(point)], -point.size, point.penalty))
    else:
        found[1:] = sorted(found[1:], key=lambda point: (-point.size, point.penalty))
    usual = {name: "" if isinstance(entry, str) else 0.0 for point in found for name, entry in point.more.items()}
    columns = {name: np.array([point.more.get(name, none) for point in found]) for name, none in usual.items()}
    masks = PackedMasks(np.array([point.bits for point in found]), forest.n_nodes)
    penalty = np.array([point.penalty for point in found])
    changes: dict[str, Any] = {"values": [point.value for point in found]} if changed else {}
    risk = np.array([point.risk for point in found])
    # Masks of large forests are not stored twice.
    del found
    path = trace_path(problem, masks, penalty, solver, more=columns, ensemble=ensemble, risk=risk, **changes)
    return path.with_info(interrupted=interrupted, runs=runs)


class _Packed(NamedTuple):
    """Hold a point in compact form while the path is built."""

    penalty: float
    bits: NDArray[np.uint8]
    size: int
    value: Floats
    more: Mapping[str, float | str]
    risk: float


def trace_path(
    problem: Problem,
    masks: Masks,
    penalty: Floats,
    solver: str,
    *,
    more: Mapping[str, NDArray[Any]] | None = None,
    ensemble: bool = False,
    risk: Floats | None = None,
    cost: Floats | None = None,
    **changes: Any,
) -> Path:
    """Return the path of a solver's decisions, with the standard columns of the table.

    Parameters
    ----------
    problem : Problem
    masks : Masks
        Point 0 keeps every node.
    penalty : (n_points,)
    solver : str
        The repr of the solver.
    more : dict of (n_points,) arrays, optional
        Solver-specific columns.
    ensemble : bool
        Whether the risk is the loss of the whole ensemble instead of the mean of the single trees' losses.
    risk : (n_points,), optional
        Known risks; NaN entries are computed.
    cost : (n_points,), optional
        Costs, if known.
    **changes
        `values`, `tree_weight` and `base`, if the solver changes them.
    """
    forest = problem.forest
    table: dict[str, NDArray[Any]] = {"penalty": penalty, **masks.sizes(forest)}
    table["cost"] = problem.costs(masks) if cost is None else cost
    has_split = table["n_leaves"] > table["n_trees"]
    info = PathInfo(
        loss=problem.loss.text,
        cost=problem.cost.name,
        made_on_rows=len(problem.row_source),
        sampled_from=problem.row_source.sampled_from,
        judges="ensemble" if ensemble else "trees",
        unpruned_cost=float(table["cost"][0]),
        cheapest=float(table["cost"][has_split].min()) if has_split.any() else None,
    )
    path = Path(ForestAdapter(forest), masks, table, solver, info, **changes)
    table["risk"] = known = np.full(len(path), np.nan) if risk is None else risk.copy()
    unknown = np.flatnonzero(np.isnan(known)).tolist()
    if ensemble and unknown:
        query = LossesAt(path.decisions, tuple(unknown), problem.loss)
        known[unknown] = problem.row_source.total(forest, query) / problem.total_weight
    elif ensemble or changes:
        for point in unknown:
            known[point] = tree_risk(problem, path.decision(point))
    elif np.isnan(known).any():
        totals = masks.totals(forest, problem.risk, np.zeros(forest.n_nodes)) / max(forest.n_trees, 1)
        table["risk"] = np.where(np.isnan(known), totals, known)
    for point in range(masks.n_points if isinstance(masks, PackedMasks) else 0):
        # Raised subtrees reroute rows, so the node sums must be recomputed.
        if raises(forest, masks.keep(point)):
            alone = problem.pruned(Decision(masks.keep(point)))
            split = alone.forest.is_split
            table["cost"][point] = alone.unpruned_cost
            table["risk"][point] = alone.risk[~split].sum() / alone.forest.n_trees
    table.update(more or {})
    return path


def tree_risk(problem: Problem, decision: Decision) -> float:
    """Return the mean over kept trees of the loss of their predictions with the new values."""
    changed = apply_decision(problem.forest, decision)
    losses = problem.loss.nodes(changed, problem.stats) / problem.total_weight
    split = kept_splits(changed, decision.keep, check_keep(changed, decision.keep))
    return float(losses[decision.keep & ~split].sum()) / max(int(kept_trees(changed, decision.keep).sum()), 1)
