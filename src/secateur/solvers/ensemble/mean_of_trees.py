"""Prune a forest that averages its trees by block coordinate descent, with leaf values that keep its predictions valid.

The pruned model stays a plain mean of trees. Every leaf value lies in the range of the model's predictions, so every
prediction does: class probabilities are probabilities, and numbers lie between the lowest and the highest target. The
block update is `secateur.kernels.ensemble.mean_descent.update_mean_tree`.

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 3.1 (cyclic block coordinate
descent). C. Michelot (1986), A finite algorithm for finding the projection of a point onto the canonical simplex of
Rⁿ, Journal of Optimization Theory and Applications 50 (projection of leaf values).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.data.rows import LocalRows
from secateur.kernels import Prices, State
from secateur.kernels.ensemble.mean_arrays import (
    ABSENT,
    LEAF,
    SPLIT,
    MeanProblem,
    MeanRows,
    MeanScratch,
    MeanTrees,
)
from secateur.problem import Problem
from secateur.solvers.ensemble.additive_model import Additive, add_used_trees, kept_contributions
from secateur.solvers.ensemble.descent_path import Found, RowDescent
from secateur.solvers.ensemble.mean_state import AnyMeanState, MeanState, PackedMeanState, leaf_range
from secateur.solvers.ensemble.penalty_descent import DescentSettings, layer_prices

Floats = NDArray[np.float64]

_FLOOR, _FLOOR_ROWS = 0.005, 10.0
"""Fraction of the class frequencies mixed into every leaf: `_FLOOR`, or `_FLOOR_ROWS` / n for many rows."""
_MERGES = 16
"""Trimming merges at most this fraction of the excess, 1 / `_MERGES`, in one round, or one pair per tree."""
OVERSHOOT = 4
"""How many times a node budget the path grows before it returns to the budget from above."""


class MeanDescent(RowDescent[Any]):
    """Descend along decreasing penalties and then back along increasing ones.

    On the way down the second tree has to enter with half of the weight while the first still carries the prediction,
    and often does not pay off. On the way up it is there already. The path contains the states of both ways.

    Parameters
    ----------
    ensemble : Additive
    problem : Problem
    settings : DescentSettings
        `values` is "refit", "bounded" or "keep".

    Attributes
    ----------
    rising : bool
        Whether the last state yielded by `run` was found at increasing penalties.
    """

    turns_back = True

    def __init__(self, ensemble: Additive, problem: Problem, settings: DescentSettings) -> None:
        self.two_classes = ensemble.forest.n_classes == (2,) and ensemble.forest.n_outputs == 2
        if self.two_classes:
            ensemble = _second_class(ensemble)
        self.ensemble, self.settings = ensemble, settings
        forest, target = ensemble.forest, ensemble.target
        self.prices = layer_prices(forest) if settings.by_depth else Prices(*problem.prices)
        self.keeps_values = settings.values == "keep"
        self.ridge = 0.0 if self.keeps_values else settings.ridge * ensemble.ridge_unit
        self.rng = np.random.default_rng(settings.seed)
        self.open = np.ones(forest.n_trees, bool)
        self.range = leaf_range(forest, target, ensemble.weight, settings.values == "bounded")
        self.rows = MeanRows(ensemble.rows.leaves, ensemble.rows.weight, target)
        original = forest.value[:, -target.shape[1] :]
        original = np.ascontiguousarray(original if forest.unit == 1.0 else original / forest.unit)
        sums = kernels.sum_targets(self.rows, forest.tree_start, forest.right)
        self.trees = MeanTrees(
            forest.tree_start,
            forest.right,
            ensemble.trees.order,
            ensemble.trees.node_weight,
            np.ascontiguousarray(sums[:, :-1]),
            np.ascontiguousarray(sums[:, -1]),
            original,
            *self.prices,
            np.ascontiguousarray(ensemble.trees.sign[:, -target.shape[1] :]),
        )
        self.scratch = _scratch(int(np.diff(forest.tree_start).max()), target.shape[1], len(self.trees.sign) > 0)
        self.state = self._empty_state()
        self.target_square = float(ensemble.weight @ (target**2).sum(axis=1))
        self.scale = self.loss()
        self.enough = 0.0 if self.keeps_values else 1e-5 * self.scale

    @property
    def state(self) -> MeanState:
        """The variables of the descent; a packed state is unpacked when it is assigned."""
        return self._state

    @state.setter
    def state(self, state: AnyMeanState) -> None:
        self._state = state if isinstance(state, MeanState) else self._unpacked(state)

    def _unpacked(self, packed: PackedMeanState) -> MeanState:
        """Return a state with the values of all nodes and the predictions."""
        forest, n_rows = self.ensemble.forest, len(self.ensemble.weight)
        value = np.zeros((forest.n_nodes, len(self.range.center)))
        for leaf, of_leaf in zip(packed.leaves.tolist(), packed.value, strict=True):
            value[leaf : forest.end[leaf]] = of_leaf
        state = replace(
            packed.state.independent(),
            score=np.empty((n_rows, value.shape[1])),
            score_target=np.empty(n_rows),
            score_square=np.empty(n_rows),
            value=value,
        )
        kernels.recompute_scores(self.rows, self.trees, self.range, state.arrays)
        return state

    def _empty_state(self) -> MeanState:
        """Return the state without trees, which predicts the center of the range."""
        forest, n_rows = self.ensemble.forest, len(self.ensemble.weight)
        state = MeanState(
            np.empty((n_rows, len(self.range.center))),
            np.empty(n_rows),
            np.empty(n_rows),
            np.zeros(forest.n_nodes, np.int8),
            np.zeros((forest.n_nodes, len(self.range.center))),
            np.zeros(forest.n_trees),
            np.zeros(1, np.int64),
            np.full(forest.n_trees, np.inf),
        )
        kernels.recompute_scores(self.rows, self.trees, self.range, state.arrays)
        return state

    def start_from(self, keep: NDArray[np.bool_]) -> None:
        """Let the state be a pruning with original values; trees that are cut to their root do not count."""
        forest, state = self.ensemble.forest, self._empty_state()
        split = forest.is_split & keep
        split[split] = keep[np.flatnonzero(split) + 1]
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
        used = split[forest.root]
        state.status[:] = np.where(keep & used[tree], np.where(split, SPLIT, LEAF), ABSENT)
        value = np.clip(self.trees.original, self.range.low, self.range.high)
        # A node below a leaf has the value of that leaf.
        state.value[:] = value[np.maximum(kernels.lift(forest.parent, keep), 0)]
        squares = ((value - self.range.center) ** 2).sum(axis=1)
        state.deviation[:] = np.bincount(tree, np.where(state.status == LEAF, squares, 0.0), forest.n_trees)
        state.size[0] = np.count_nonzero(used)
        kernels.recompute_scores(self.rows, self.trees, self.range, state.arrays)
        self.state = state

    def run(self) -> Iterator[tuple[float, MeanState]]:
        """Yield the penalty and the state at every penalty, down to the smallest and up again.

        With a node budget, turn when the state has `OVERSHOOT` times as many nodes, stop when it is within the budget
        again, and yield the states of `meet`.
        """
        budget = self.settings.max_nodes
        if budget is not None:
            self.brief = True
            yield from self.walk(OVERSHOOT * budget)
            self.brief = False
            yield from self.meet(budget, *self.bracket(budget))
            return
        penalties = self.penalties()
        n_steps = 2 * len(penalties) - 1
        yield from self.warm_up()
        if self.settings.warm_up:
            for penalty in penalties:
                self.step(penalty)
        else:
            for index, penalty in enumerate(penalties):
                yield self._at(penalty, index, n_steps)
        for index in range(len(penalties) - (1 if self.settings.warm_up else 2), -1, -1):
            self.start_rising()
            yield self._at(penalties[index], n_steps - 1 - index, n_steps)

    def bracket(self, budget: int, back: int = 1) -> tuple[Found[Any], Found[Any] | None]:
        """Return the first state within a budget of nodes on the way up from the end of `trail`, and the one before."""
        penalty, state = self.trail[-1]
        self.state = state.copy()
        self.start_rising()
        if self.size(state) <= budget:
            return (penalty, state), None
        over = (penalty, state)
        for penalty in self.penalties_below(budget)[::-1]:
            if penalty > over[0]:
                self.start_rising()
                self.step(penalty)
                self.improved(penalty)
                if self.size(self.state) <= budget:
                    return (penalty, self.state.copy()), over
                over = (penalty, self.state.copy())
        return (np.inf, self._empty_state()), over

    def set_ridge(self, ridge: float) -> None:
        """Change the ridge, in rows."""
        self.ridge = 0.0 if self.keeps_values else ridge * self.ensemble.ridge_unit

    def start_empty(self) -> None:
        """Let the state be the ensemble without trees, and all trees be open."""
        self.state = self._empty_state()
        self.start_falling()

    def start_full(self) -> None:
        """Let the state be the unpruned forest, from which penalties rise."""
        self.start_from(np.ones(self.ensemble.forest.n_nodes, bool))
        self.start_rising()

    def start_falling(self) -> None:
        """Turn to smaller penalties, at which every tree may enter."""
        super().start_falling()
        self.open = np.ones(self.ensemble.forest.n_trees, bool)

    def start_rising(self) -> None:
        """Turn to larger penalties: a tree that does not pay off at a lower penalty does not at a higher one."""
        super().start_rising()
        self.open = self.used()

    def _at(self, penalty: float, index: int, n_steps: int) -> Found[Any]:
        """Descend at one penalty; return it with the state."""
        self._penalty_index = (index, n_steps)
        self.descend(penalty)
        return penalty, self.improved(penalty)

    def descend(
        self,
        penalty: float,
        *,
        first: int = 0,
        frozen: bool = False,
        screened: bool = False,
        max_sweeps: int | None = None,
    ) -> float:
        """Recompute the scores, whose rounding errors grow with every tree that enters or leaves, and descend."""
        kernels.recompute_scores(self.rows, self.trees, self.range, self.state.arrays)
        return super().descend(penalty, first=first, frozen=frozen, screened=screened, max_sweeps=max_sweeps)

    def sweep(self, penalty: float, trees: NDArray[np.bool_], first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, beginning with `first`; return whether nothing changed, and the gain."""
        changed, gain = kernels.sweep_means(
            self.rows,
            self.trees,
            self.range,
            self.state.arrays,
            self.scratch,
            trees,
            first,
            MeanProblem(penalty, self.ridge, self.keeps_values, frozen, 1e-12 * self.scale, self.screening),
        )
        return changed == 0, gain

    def loss(self) -> float:
        """Return the loss without penalty: squared error, or the Brier score of class probabilities."""
        state = self.state
        return self.target_square + float(self.ensemble.weight @ (state.score_square - 2 * state.score_target))

    def objective(self, penalty: float) -> float:
        """Return the objective: loss plus penalty times price plus ridge term."""
        state = self.state
        price = self.prices.as_leaf[state.status == 2].sum() + self.prices.as_split[state.status == 1].sum()
        extra = self.ridge * float(state.deviation.sum()) / max(int(state.size[0]), 1) ** 2
        return self.loss() + penalty * float(price) + extra

    def spread(self, state: AnyMeanState) -> State:
        """Return the status of all nodes; rows and values stay behind."""
        none = np.empty((0, 0))
        return State(none, none, none, np.empty(0), np.empty(0), state.status, none, np.empty(0), np.empty(0))

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are not dropped, (n_trees,)."""
        return self.state.status[self.ensemble.forest.root] != 0

    def entry(self) -> Floats:
        """Return the estimated entry penalty of each dropped tree, (n_trees,)."""
        return self.state.entry

    def rises(self) -> Floats:
        """Return the increase in loss from dropping each tree, (n_trees,)."""
        rise = np.zeros(self.ensemble.forest.n_trees)
        size, scratch = int(self.state.size[0]), self.scratch
        for tree in np.flatnonzero(self.used()).tolist():
            now = kernels.sum_without(tree, self.rows, self.trees, self.state.arrays, scratch)
            sums = float(scratch.with_target[0]), float(scratch.square[0])
            rise[tree] = kernels.loss_without(size, *sums, self.rows, self.range) - now
        return rise

    def drop(self, tree: int) -> None:
        """Drop one tree."""
        kernels.remove_tree(tree, self.rows, self.trees, self.range, self.state.arrays)

    def trim(self, budget: int) -> None:
        """Merge the weakest pairs of leaves until at most `budget` nodes are left.

        Each round merges at most one pair per tree, or several if there are few trees, those with the smallest increase
        in loss per price first. When no pair is left, whole trees are dropped from the end.
        """
        while (excess := self.size(self.state) - budget) > 0:
            # Few trees would need many rounds, so that each merges several pairs.
            node, rate = self._weakest(max(1, excess // (_MERGES * max(int(self.state.size[0]), 1))))
            order = np.argsort(rate, kind="stable")
            if not len(order):
                used = np.flatnonzero(self.used())
                if not len(used):
                    return  # even the model without trees exceeds the budget
                self.drop(int(used[-1]))
                continue
            # Merge an eighth of the excess per round, then recompute the rates.
            for pair in order[: min(max(1, excess // 8), (excess + 1) // 2)]:
                self._merge(int(node[pair]))
            kernels.recompute_scores(self.rows, self.trees, self.range, self.state.arrays)

    def _weakest(self, n_pairs: int) -> tuple[NDArray[np.int64], Floats]:
        """Return the splits above the `n_pairs` weakest pairs of each tree, and their increase in loss per price."""
        start, nodes, rates = self.ensemble.forest.tree_start, [np.empty(0, np.int64)], [np.empty(0)]
        for tree in np.flatnonzero(self.used()).tolist():
            rate = kernels.merge_rates(tree, self.rows, self.trees, self.state.arrays, self.scratch)
            # Of equal pairs, the last is merged first.
            found = np.flatnonzero(np.isfinite(rate))[::-1]
            found = found[np.argsort(rate[found], kind="stable")[:n_pairs]]
            nodes.append(start[tree] + found)
            rates.append(rate[found])
        return np.concatenate(nodes), np.concatenate(rates)

    def _merge(self, node: int) -> None:
        """Turn a split above two leaves into a leaf with the weighted mean of their values."""
        forest, state = self.ensemble.forest, self.state
        pair = np.array([node + 1, forest.right[node]])
        value, weight = state.value[pair], self.trees.weight[pair]
        total = weight.sum()
        merged = (weight[0] * value[0] + weight[1] * value[1]) / total if total > 0 else 0.5 * (value[0] + value[1])
        state.status[node : forest.end[node]] = 0
        state.status[node] = 2
        state.value[node : forest.end[node]] = merged

    def decide(self, state: MeanState) -> tuple[NDArray[np.bool_], Floats]:
        """Return the keep mask and the values of the kept nodes, (n_kept, n_outputs)."""
        forest, status, value = self.ensemble.forest, state.status, state.value
        if not state.size[0]:
            status, value = status.copy(), value.copy()
            status[forest.root[0]], value[forest.root[0]] = 2, self.range.center
        return status > 0, self.node_values(kept_contributions(self.ensemble, status, value))

    def node_values(self, value: Floats) -> Floats:
        """Return the values of some nodes on the scale of the model, with all classes, (n, n_outputs)."""
        value = self._both_classes(self._with_floor(value))
        for first, stop in pairwise(self.range.block):
            value[:, first:stop] /= np.maximum(value[:, first:stop].sum(axis=1, keepdims=True), 1e-300)
        return value * self.ensemble.forest.unit

    def predict(self, state: MeanState, rows: LocalRows) -> Floats:
        """Return the predictions of a state for other rows, (n_rows, n_outputs)."""
        score = np.tile(self.range.center, (len(rows), 1))
        if state.size[0]:
            score[:] = 0.0
            add_used_trees(self.ensemble.forest, rows.leaves, state.status, state.value, score)
            score /= state.size[0]
        return self._both_classes(self._with_floor(score))

    def raw(self, state: MeanState) -> Floats:
        """Return the predictions of a state for the rows it was fitted on, (n_rows, n_outputs)."""
        return self._both_classes(self._with_floor(state.score))

    def _both_classes(self, value: Floats) -> Floats:
        """Return the probabilities of both classes if `value` has only those of the second; otherwise `value`."""
        return np.hstack([1 - value, value]) if self.two_classes else value

    def _with_floor(self, value: Floats) -> Floats:
        """Mix a small fraction of the class frequencies into refitted probabilities, so that log loss stays finite."""
        if self.keeps_values or not self.ensemble.forest.n_classes:
            return value.copy()
        floor = min(_FLOOR, _FLOOR_ROWS / self.ensemble.n_rows)
        mixed: Floats = (1 - floor) * value + floor * self.range.center
        return mixed


def _second_class(ensemble: Additive) -> Additive:
    """Return a binary classifier as a model of the second class.

    The errors of both classes are equal, so that the Brier score is twice the squared error of the second.
    """
    return replace(
        ensemble,
        weight=2 * ensemble.weight,
        node_weight=2 * ensemble.node_weight,
        target=np.ascontiguousarray(ensemble.target[:, 1:]),
        start=ensemble.start[:, 1:],
        original=ensemble.original[:, 1:],
    )


def _scratch(n_nodes: int, n_outputs: int, constrained: bool) -> MeanScratch:
    """Return the buffers for trees of up to `n_nodes` nodes."""
    shape, bounds = (n_nodes, n_outputs), (n_nodes * constrained, n_outputs)
    numbers = np.empty(shape), np.empty(n_nodes), np.empty(n_nodes), np.empty(shape), np.empty(n_nodes)
    return MeanScratch(*numbers, np.empty(n_nodes, np.int8), np.empty(bounds), np.empty(bounds))
