"""Fit a weight for every tree of a pruned ensemble, by ridge regression or best subset selection.

This is the polishing step of ForestPrune, Problem (2).

References
----------
Liu and Mazumder (2023), ForestPrune: compact depth-pruned tree ensembles, AISTATS. Section 2.4.
"""

import numpy as np
from numpy.typing import NDArray

from secateur.kernels import State
from secateur.solvers.ensemble.additive_model import Additive
from secateur.solvers.whole_trees._branch_and_bound import Incumbent, exchange, forward, pose

Floats = NDArray[np.float64]
_ROUNDING = 1e-14
"""Relative tolerance: smaller deviations from a tree's mean contribution are rounding errors."""
_CHUNK = 2**22
"""Maximum number of entries of a chunk of rows by trees."""
_MOST_EXCHANGED = 50
"""Largest subset whose trees are exchanged one by one."""


def polished(ensemble: Additive, state: State, how: str, penalty: float) -> State:
    """Return a copy of the state with every kept tree multiplied by a fitted weight β.

    The weights solve

        min_β,b  Σ_i (y_i − b − Σ_t β_t tree_t(x_i))² + penalty · ‖β‖²      (how = "ridge"), or
                                                    … + penalty · #{β ≠ 0}   (how = "subset"),

    with row weights. Squared error only.

    The ridge problem is solved exactly, the subset problem by backward elimination and exchanges, a heuristic.
    """
    forest = ensemble.forest
    trees = np.flatnonzero(state.status[forest.root])
    gram, match = normal_equations(ensemble, state, trees)
    penalty *= ensemble.ridge_unit
    beta = ridge_weights(gram, match, penalty) if how == "ridge" else subset_weights(gram, match, penalty)
    factor = np.zeros(forest.n_trees)
    factor[trees] = beta
    return reweighed(ensemble, state, factor)


def reweighed(ensemble: Additive, state: State, factor: Floats) -> State:
    """Return a copy of the state with tree t multiplied by `factor[t]`.

    Trees with factor 0 are dropped. Squared error only.
    """
    forest = ensemble.forest
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    contribution = state.contribution * factor[tree, None]
    status = np.where(factor[tree] != 0, state.status, 0).astype(np.int8)
    return _recomputed(ensemble, state._replace(status=status, contribution=contribution, factor=factor.copy()))


def ridge_weights(gram: Floats, match: Floats, penalty: float) -> Floats:
    """Return the β that minimises β'Gβ − 2β'm + penalty ‖β‖²."""
    n = len(match)
    return np.linalg.solve(gram + (penalty + 1e-12 * max(np.trace(gram), 1e-300)) * np.eye(n), match)


def subset_weights(gram: Floats, match: Floats, penalty: float) -> Floats:
    """Return a sparse β with a low β'Gβ − 2β'm + penalty · #{β ≠ 0}.

    Backward elimination removes one tree after the other, the one whose removal increases the error least after
    refitting the others; forward selection adds them one by one. The best of all these subsets is kept. If it has at
    most `_MOST_EXCHANGED` trees, each is exchanged for another as long as that helps. O(trees³).
    """
    n = len(match)
    one_each = pose(gram, match, 0.0, np.ones(n, np.int64))
    added = forward(one_each, n, 0.0)
    subsets = [_eliminate(gram, match, penalty), *(added[:size] for size in range(1, min(n, _MOST_EXCHANGED) + 1))]
    weights = [_weights_of(gram, match, subset) for subset in subsets]
    chosen = subsets[int(np.argmin([penalty * np.count_nonzero(beta) - beta @ match for beta in weights]))]
    if 0 < len(chosen) <= _MOST_EXCHANGED:
        incumbent = Incumbent(one_each, len(chosen))
        incumbent.offer(chosen)
        exchange(one_each, incumbent, np.inf)
        chosen = incumbent.chosen
    return _weights_of(gram, match, chosen)


def _weights_of(gram: Floats, match: Floats, chosen: NDArray[np.intp]) -> Floats:
    """Return the best weights of a subset of the trees, 0 for the others, (n_trees,)."""
    beta = np.zeros(len(match))
    beta[chosen] = ridge_weights(gram[np.ix_(chosen, chosen)], match[chosen], 0.0)
    return beta


def _eliminate(gram: Floats, match: Floats, penalty: float) -> NDArray[np.intp]:
    """Return the best of the subsets that backward elimination visits."""
    inside = np.arange(len(match))
    best, lowest, n_inverted = inside[:0], 0.0, 2 * len(match) + 1
    inverse, beta = np.empty((0, 0)), np.empty(0)
    while len(inside):
        if 2 * len(inside) < n_inverted:
            # Invert again now and then, as rounding errors of the updates accumulate.
            n_inverted = len(inside)
            here = gram[np.ix_(inside, inside)]
            inverse = np.linalg.inv(here + 1e-12 * max(np.trace(here), 1e-300) * np.eye(n_inverted))
            beta = inverse @ match[inside]
        value = float(penalty * len(inside) - beta @ match[inside])
        if value < lowest:
            best, lowest = inside, value
        # The increase of the minimum from removing each tree is its β² over its diagonal entry of the inverse.
        diagonal = np.maximum(np.diag(inverse), 1e-300)
        tree = int((beta**2 / diagonal).argmin())
        column = inverse[:, tree] / diagonal[tree]
        beta = np.delete(beta - column * beta[tree], tree)
        inverse = np.delete(np.delete(inverse - np.outer(column, inverse[tree]), tree, 0), tree, 1)
        inside = np.delete(inside, tree)
    return best


def normal_equations(ensemble: Additive, state: State, trees: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return G and m of β'Gβ − 2β'm, the squared error of tree weights β up to a constant.

    The intercept is eliminated by centring the contributions. Both are sums over outputs and over rows, which are
    processed in chunks.
    """
    forest, (n_rows, n_outputs) = ensemble.forest, ensemble.target.shape
    gram, match = np.zeros((len(trees), len(trees))), np.zeros(len(trees))
    at_leaves = np.where(forest.is_split, 0.0, ensemble.node_weight)[:, None] * state.contribution
    mean = np.add.reduceat(at_leaves, forest.root)[trees] / ensemble.weight.sum()
    rounding = _ROUNDING * np.maximum.reduceat(np.abs(state.contribution), forest.root)[trees]
    output = forest.tree_output[trees]
    step = max(_CHUNK // max(len(trees), 1), 1)
    for rows in (slice(first, first + step) for first in range(0, n_rows, step)):
        nodes = forest.root[trees, None] + ensemble.leaves[trees, rows].astype(np.intp)
        for k in range(n_outputs):
            trees_of_output = np.flatnonzero((output == k) | (output < 0))
            column = min(k, state.contribution.shape[1] - 1)
            added = state.contribution[nodes[trees_of_output], column] - mean[trees_of_output, column, None]
            # A constant tree must have an exactly zero column, but its mean is rounded.
            added[np.abs(added) <= rounding[trees_of_output, column, None]] = 0.0
            weighted = added * ensemble.weight[rows]
            gram[np.ix_(trees_of_output, trees_of_output)] += weighted @ added.T
            match[trees_of_output] += weighted @ (ensemble.target[rows, k] - ensemble.start[rows, k])
    return gram, match


def _recomputed(ensemble: Additive, state: State) -> State:
    """Return the state with intercept and gradient recomputed from the contributions of the trees."""
    forest = ensemble.forest
    rest = ensemble.target - ensemble.start
    for tree in np.flatnonzero(state.status[forest.root]):
        output = forest.tree_output[tree]
        outputs = slice(None) if output < 0 else slice(output, output + 1)
        rest[:, outputs] -= state.contribution[forest.root[tree] + ensemble.leaves[tree].astype(np.intp)]
    intercept = (ensemble.weight @ rest) / ensemble.weight.sum()
    neg_gradient = ensemble.weight * (rest - intercept).T
    return state._replace(neg_gradient=neg_gradient, intercept=intercept)
