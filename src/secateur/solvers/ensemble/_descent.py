"""Prune an ensemble by block coordinate descent on local rows, for every granularity, value mode and loss.

The block update is `secateur.kernels.ensemble.block_descent.update_tree`.
"""

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.kernels import BlockProblem, Prices, State
from secateur.problem import Problem
from secateur.solvers.ensemble._active_nodes import ActiveNodes, ActiveSet, active_set_of
from secateur.solvers.ensemble._collapse import collapse, weakest_collapses
from secateur.solvers.ensemble.additive_model import (
    Additive,
    add_used_trees,
    decide,
    empty_state,
    full_state,
    loss_of,
    raw_of,
    renew_parabolas,
    starts,
)
from secateur.solvers.ensemble.descent_path import RowDescent
from secateur.solvers.ensemble.penalty_descent import DescentSettings, layer_prices

Floats = NDArray[np.float64]
_VALUES = {
    "keep": kernels.KEEP,
    "refit": kernels.REFIT,
    "scale": kernels.SCALE,
    "scale_sparse": kernels.SCALE_SPARSE,
}
_NO_SUMS = np.empty((0, 0))
_RENEWAL = 3
"""Cost of renewing the parabolas of one output, as a number of block updates."""
_LARGE = 500
"""Mean number of nodes per tree above which active sets pay off."""


class Descent(RowDescent[State]):
    """Descend over the subtrees and leaf values of all trees at a decreasing sequence of penalties.

    Parameters
    ----------
    ensemble : Additive
    problem : Problem
    settings : DescentSettings

    Attributes
    ----------
    values : int
        How the contribution of a kept leaf is determined: one of the constants of
        `secateur.kernels.ensemble.block_update`.
    ridge : float
        Ridge penalty on the scale of the loss.
    nodes : ActiveNodes
        The node arrays the next sweep works on.
    active_set : ActiveSet, optional
        The active set last built.
    attempt : int
        Which curvature of the objective the next sweep tries first.
    has_large_trees : bool
        Whether sweeps are restricted to active sets. Only for squared error at the node level, for which the bound of
        `mark_active_nodes` holds.
    """

    def __init__(self, ensemble: Additive, problem: Problem, settings: DescentSettings) -> None:
        self.ensemble, self.settings = ensemble, settings
        self.prices = layer_prices(problem.forest) if settings.by_depth else Prices(*problem.prices)
        self.values = _VALUES[settings.values]
        self.ridge = 0.0 if settings.values == "keep" else settings.ridge * ensemble.ridge_unit
        self.rng = np.random.default_rng(settings.seed)
        self.open = np.ones(ensemble.forest.n_trees, bool)
        self.state = empty_state(ensemble)
        self.scale = loss_of(ensemble, self.state)
        self.nodes = ActiveNodes(ensemble.rows, ensemble.trees, self.prices)
        self.active_set: ActiveSet | None = None
        self.attempt = 0
        if not ensemble.objective.quadratic:
            self.sweep_cost = _RENEWAL * ensemble.forest.n_outputs
        sizes = np.diff(ensemble.forest.tree_start)
        squared_error = ensemble.objective.quadratic and settings.values in ("keep", "refit") and not settings.layered
        self.has_large_trees = squared_error and bool(sizes.mean() > _LARGE)
        self.enough = 0.0 if settings.values == "keep" else 1e-5 * self.scale

    def sweep(self, penalty: float, trees: NDArray[np.bool_], first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, then the intercept; return whether nothing changed, and the gain.

        Unless the loss is quadratic, its parabolas are frozen during a sweep, and the true objective is compared
        afterwards. If it did not decrease, the sweep is repeated with a larger curvature, which the next sweeps of this
        descent keep, unless it is the last resort.
        """
        problem = self._block_problem(penalty, frozen)
        if self.ensemble.objective.quadratic:
            unchanged, gain, _ = self._sweep_once(problem, trees, first)
            return unchanged, gain
        for attempt in range(self.attempt, self.ensemble.objective.n_curvatures):
            before = self.state.copy(parabolas=False)
            if attempt:
                renew_parabolas(self.ensemble, self.state, attempt)
            unchanged, _, saved = self._sweep_once(problem, trees, first)
            if unchanged:
                if attempt or not np.allclose(self.state.intercept, before.intercept, rtol=1e-12, atol=1e-12):
                    renew_parabolas(self.ensemble, self.state)
                return True, 0.0
            gain = before.loss[0] - renew_parabolas(self.ensemble, self.state) + saved
            if gain > problem.tolerance:
                self.attempt = max(0, min(attempt, self.ensemble.objective.n_curvatures - 2))
                return False, float(gain)
            # The parabolas were too flat: undo the sweep, but not the estimates of entry penalties.
            before.entry[:] = self.state.entry
            self.state = before
        renew_parabolas(self.ensemble, self.state)
        return True, 0.0

    def _sweep_once(self, problem: BlockProblem, trees: NDArray[np.bool_], first: int) -> tuple[bool, float, float]:
        if self.settings.layered:
            return kernels.sweep_layered_blocks(*self.nodes, self.state, problem, trees, first)
        return kernels.sweep_blocks(*self.nodes, self.state, problem, trees, first, _NO_SUMS)

    def _block_problem(self, penalty: float, frozen: bool) -> BlockProblem:
        return BlockProblem(penalty, self.ridge, 0.0, self.values, frozen, 1e-12 * self.scale, self.screening)

    def descend(
        self,
        penalty: float,
        *,
        first: int = 0,
        frozen: bool = False,
        screened: bool = False,
        max_sweeps: int | None = None,
    ) -> float:
        """Sweep over the trees until nothing changes, then move the intercept to its exact optimum; return the gain."""
        self.attempt = 0
        gain = super().descend(penalty, first=first, frozen=frozen, screened=screened, max_sweeps=max_sweeps)
        ensemble, state = self.ensemble, self.state
        if ensemble.objective.quadratic:
            return gain
        step = ensemble.objective.shift(state.score.T, ensemble.target, ensemble.weight)
        if step is None:
            return gain
        before = float(state.loss[0])
        state.score[:] += step[:, None]
        state.intercept[:] += step
        return gain + before - renew_parabolas(ensemble, state)

    def step(self, penalty: float) -> None:
        """Descend briefly, at first with the smallest curvature."""
        self.attempt = 0
        super().step(penalty)

    def converge(self, penalty: float, first: int, frozen: bool, limit: int) -> tuple[int, float]:
        """Update the trees in use until they stop changing; if trees are large, update active sets only."""
        if limit <= 0 or not self.has_large_trees:
            return super().converge(penalty, first, frozen, limit)
        active_set = self.active_set = self.active_set_for(penalty)
        before, all_arrays = self.state, self.nodes
        status, added = before.status[active_set.nodes], before.contribution[active_set.nodes]
        self.nodes, self.state = active_set.arrays, before._replace(status=status, contribution=added)
        try:
            return super().converge(penalty, first, frozen, limit)
        finally:
            # Expand the result to all nodes: a node outside the set gets the contribution of its ancestor in the set.
            before.status[:] = 0
            before.status[active_set.nodes] = status
            np.take(added, active_set.lowest, axis=0, out=before.contribution)
            self.nodes, self.state = all_arrays, before

    def active_set_for(self, penalty: float) -> ActiveSet:
        """Return an active set for this penalty: the last one if it is still valid, otherwise a new one.

        A new set is built for half the penalty, so that the next few penalties can reuse it. `descend` still sweeps
        over all nodes at least once per penalty, so active sets save time without excluding any node.
        """
        state, active_set = self.state, self.active_set
        if (
            active_set is not None
            and penalty >= active_set.penalty
            and not (state.status[~active_set.marked] > 0).any()
        ):
            return active_set
        marked = kernels.mark_active_nodes(*self.nodes, state, penalty / 2, self.ridge)
        return active_set_of(self.ensemble, self.prices, marked, penalty / 2)

    def loss(self) -> float:
        """Return the loss, without penalty."""
        return loss_of(self.ensemble, self.state)

    def objective(self, penalty: float) -> float:
        """Return the objective: loss plus penalty times price plus ridge term."""
        state = self.state
        price = self.prices.as_leaf[state.status == 2].sum() + self.prices.as_split[state.status == 1].sum()
        extra = 0.0
        if self.values == kernels.REFIT:
            extra = self.ridge * float((state.contribution[state.status == 2] ** 2).sum())
        elif self.values == kernels.SCALE:
            extra = self.ridge * float((state.factor**2).sum())
        elif self.values == kernels.SCALE_SPARSE:
            extra = self.ridge * int(np.count_nonzero(state.status[self.ensemble.forest.root]))
        return self.loss() + penalty * price + extra

    def set_ridge(self, ridge: float) -> None:
        """Change the ridge, in rows."""
        self.ridge = 0.0 if self.settings.values == "keep" else ridge * self.ensemble.ridge_unit

    def start_empty(self) -> None:
        """Let the state be the ensemble without trees."""
        self.state = empty_state(self.ensemble)

    def start_full(self) -> None:
        """Let the state be the unpruned ensemble, from which penalties rise."""
        self.state = full_state(self.ensemble)

    def decide(self, state: State) -> tuple[NDArray[np.bool_], Floats]:
        """Return the keep mask of a state and the values of the kept nodes, (n_kept, width)."""
        return decide(self.ensemble, state)

    def predict(self, state: State, rows: LocalRows) -> Floats:
        """Return the raw scores of a state for other rows, on the model's scale, (n_rows, n_outputs)."""
        score = starts(self.ensemble.forest, rows) + state.intercept
        add_used_trees(self.ensemble.forest, rows.leaves, state.status, state.contribution, score)
        return score / self.ensemble.slope

    def raw(self, state: State) -> Floats:
        """Return the raw scores of a state for the rows it was fitted on, (n_rows, n_outputs)."""
        return raw_of(self.ensemble, state)

    def spread(self, state: State) -> State:
        """Return the state unchanged: it already covers all nodes."""
        return state

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are not dropped, (n_trees,)."""
        return self.state.status[self.nodes.trees.tree_start[:-1]] != 0

    def entry(self) -> Floats:
        """Return the estimated entry penalty of each dropped tree, (n_trees,)."""
        return self.state.entry

    def rises(self) -> Floats:
        """Return the second-order estimate of the increase in loss from dropping each tree, (n_trees,)."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        rise = np.zeros(forest.n_trees)
        for tree in np.flatnonzero(self.used()):
            added = state.contribution[forest.root[tree] + ensemble.leaves[tree].astype(np.intp)]
            outputs = slice(None) if forest.tree_output[tree] < 0 else slice(forest.tree_output[tree], None)
            quadratic, width = ensemble.objective.quadratic, added.shape[1]
            curvature = ensemble.weight[:, None] if quadratic else state.curvature[outputs][:width].T
            neg_gradient = state.neg_gradient[outputs][:width].T
            rise[tree] = float((2 * neg_gradient * added + curvature * added**2).sum())
        return rise

    def drop(self, tree: int) -> None:
        """Drop one tree."""
        kernels.drop_tree(tree, self.nodes.rows, self.nodes.trees, self.state)
        self._renew()

    def trim(self, budget: int) -> None:
        """Collapse the weakest splits until at most `budget` nodes are left.

        Each round collapses at most one split per tree, those with the smallest increase in loss per price first. When
        no split is left to collapse, whole trees are dropped from the end.
        """
        forest, state = self.ensemble.forest, self.state
        while self.size(state) > budget:
            tree, node, rate, value = self.weakest()
            if not len(tree):
                left = np.flatnonzero(state.status[forest.root])
                if not len(left):
                    return  # even the model without trees exceeds the budget
                self.drop(int(left[-1]))
                continue
            # Collapse an eighth of the excess per round, then recompute the rates.
            n_collapses = max(1, (self.size(state) - budget) // 8)
            for one in np.argsort(rate, kind="stable")[:n_collapses]:
                if self.size(state) <= budget:
                    break
                collapse(self.ensemble, state, int(tree[one]), int(node[one]), value[one])
            self._renew()

    def weakest(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats, Floats]:
        """Return for each tree the cheapest split to collapse, its increase in loss per price, and its new value."""
        width = self.state.contribution.shape[1]
        n_columns = width + (width if len(self.state.curvature) else 1)
        sums = np.zeros((self.ensemble.forest.n_nodes, n_columns))
        kernels.sweep_blocks(*self.nodes, self.state, self._block_problem(0.0, False), self.used(), 0, sums)
        refit = self.values == kernels.REFIT
        return weakest_collapses(
            self.ensemble, self.prices, self.state, sums, self.ridge if refit else 0.0, refit=refit
        )

    def _renew(self) -> None:
        """Let the parabolas touch the loss at the current scores, after these have moved by more than a sweep."""
        if not self.ensemble.objective.quadratic:
            renew_parabolas(self.ensemble, self.state)
