"""Descents over the trees of an ensemble that see the rows: any subtree, any values, any loss."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.problem import Problem
from secateur.solvers.ensemble._active_nodes import Crown, all_nodes, crown_of
from secateur.solvers.ensemble._node_descent import NodeDescent
from secateur.solvers.ensemble.additive_model import Additive, empty_state, loss_of
from secateur.solvers.ensemble.descent_path import DescentSettings

Floats = NDArray[np.float64]
_LARGE = 500
"""From how many nodes on, on average, it pays to look at crowns."""


class Descent(NodeDescent):
    """One sequence of descents from the empty ensemble, with the settings of a solver."""

    def __init__(self, ensemble: Additive, problem: Problem, settings: DescentSettings) -> None:
        self.prepare(ensemble, problem, settings, ensemble.weight_per_row)
        self.state = empty_state(ensemble)
        self.scale = loss_of(ensemble, self.state)
        self.nodes = all_nodes(ensemble, self.as_leaf, self.as_split)
        self.crown: Crown | None = None
        sizes = np.diff(ensemble.forest.tree_start)
        squares = not ensemble.logits and settings.values in ("keep", "refit") and not settings.layered
        self.has_large_trees = squares and bool(sizes.mean() > _LARGE)
        self.enough = 0.0 if settings.values == "keep" else 1e-5 * self.scale

    def sweep(self, penalty: float, trees: NDArray[np.bool_], first: int, frozen: bool) -> tuple[bool, float]:
        """Update some trees once, then the intercept."""
        nodes, state = self.nodes, self.state
        tolerance = 1e-12 * self.scale
        changed, gain = kernels.sweep_blocks(
            nodes.leaves,
            self.ensemble.weight,
            state.neg_gradient,
            state.probability,
            state.intercept,
            nodes.tree_start,
            self.ensemble.forest.tree_output,
            nodes.right,
            nodes.depth,
            nodes.share,
            nodes.original,
            nodes.as_leaf,
            nodes.as_split,
            state.status,
            state.contribution,
            state.factor,
            trees,
            penalty,
            self.ridge,
            0.0,
            self.values,
            self.settings.layered,
            frozen,
            first,
            tolerance,
        )
        moved = kernels.move_intercept(self.ensemble.weight, state.neg_gradient, state.probability, state.intercept)
        return changed == 0 and moved <= tolerance, gain + moved

    def converge(self, penalty: float, first: int, frozen: bool, most: int) -> tuple[int, float]:
        """Update the trees in use, of large ones the crowns alone, until they settle."""
        if most <= 0 or not self.has_large_trees:
            return super().converge(penalty, first, frozen, most)
        crown = self.crown = self.crown_for(penalty)
        before, everything = self.state, self.nodes
        status, added = before.status[crown.nodes], before.contribution[crown.nodes]
        self.nodes, self.state = crown.arrays, replace(before, status=status, contribution=added)
        try:
            return super().converge(penalty, first, frozen, most)
        finally:
            before.status[:] = 0
            before.status[crown.nodes] = status
            np.take(added, crown.lowest, axis=0, out=before.contribution)
            self.nodes, self.state = everything, before

    def crown_for(self, penalty: float) -> Crown:
        """Return the nodes in question at this penalty: the crown that is there, if it will do, or a new one.

        A new one will do for the next few penalties, too. What is not in it is looked at once at every penalty, so this
        saves time and changes nothing.
        """
        state, forest, crown = self.state, self.ensemble.forest, self.crown
        if crown is not None and penalty >= crown.penalty and not (state.status[~crown.marked] > 0).any():
            return crown
        marked = kernels.mark_crown(
            self.nodes.leaves,
            self.ensemble.weight,
            state.neg_gradient,
            forest.tree_start,
            forest.tree_output,
            forest.right,
            self.nodes.share,
            self.as_leaf,
            self.as_split,
            state.status,
            state.contribution,
            penalty / 2,
            self.ridge,
        )
        return crown_of(self.nodes, self.ensemble, marked, penalty / 2)

    def loss(self) -> float:
        """Return the loss, without penalty."""
        return loss_of(self.ensemble, self.state)

    def used(self) -> NDArray[np.bool_]:
        """Return which trees are there."""
        return self.state.status[self.nodes.tree_start[:-1]] != 0

    def rises(self) -> Floats:
        """Return by how much the loss rises, to second order, when a tree is dropped, (n_trees,)."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        rise = np.zeros(forest.n_trees)
        half = 0.5 if ensemble.logits else 1.0
        for tree in np.flatnonzero(self.used()):
            added = state.contribution[forest.root[tree] + ensemble.leaves[tree].astype(np.intp)]
            fed = slice(None) if forest.tree_output[tree] < 0 else slice(forest.tree_output[tree], None)
            hessian = ensemble.weight[:, None]
            if ensemble.logits:
                probability = state.probability[:, fed][:, :1]
                hessian = hessian * probability * (1 - probability)
            neg_gradient = state.neg_gradient[:, fed][:, : added.shape[1]]
            rise[tree] = half * float((2 * neg_gradient * added + hessian * added**2).sum())
        return rise

    def drop(self, tree: int) -> None:
        """Take one tree out."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        kernels.drop_tree(
            ensemble.leaves[tree],
            ensemble.weight,
            state.neg_gradient,
            state.probability,
            max(forest.tree_output[tree], 0),
            forest.tree_start[tree],
            forest.tree_start[tree + 1],
            state.status,
            state.contribution,
        )
        state.factor[tree] = 0.0

    def weakest(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return for each tree the split to collapse, -1 if there is none, what that costs per price, the new value."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        node, rate, value = kernels.weakest_collapses(
            ensemble.leaves,
            ensemble.weight,
            state.neg_gradient,
            state.probability,
            forest.tree_start,
            forest.tree_output,
            forest.right,
            ensemble.share,
            ensemble.original,
            self.as_leaf,
            self.as_split,
            state.status,
            state.contribution,
            self.ridge if self.values == kernels.REFIT else 0.0,
            self.values,
        )
        return node, rate, value

    def collapse(self, tree: int, node: int, value: Floats) -> None:
        """Make a split a leaf with a value; a root goes altogether."""
        ensemble, forest, state = self.ensemble, self.ensemble.forest, self.state
        kernels.collapse(
            ensemble.leaves[tree],
            ensemble.weight,
            state.neg_gradient,
            state.probability,
            max(forest.tree_output[tree], 0),
            forest.tree_start[tree],
            forest.tree_start[tree + 1],
            node,
            forest.end[node],
            value,
            state.status,
            state.contribution,
        )
