"""Solve the lasso over all nodes of trees by block coordinate descent, the selection step of RuleFit.

A block is a tree. Given the other trees, its problem is total variation on a tree, which has an exact solution without
iterations: monotone piecewise linear derivatives are passed as messages from the leaves to the root (Kolmogorov, Pock
and Rolínek 2016). Most sweeps visit only the active set, the nodes of non-zero weight and their ancestors, and are
accelerated by Nesterov extrapolation.

References
----------
Friedman and Popescu (2008), Predictive learning via rule ensembles, Annals of Applied Statistics.

Kolmogorov, Pock and Rolínek (2016), Total variation on a tree, SIAM Journal on Imaging Sciences.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.forest.preorder import sum_down
from secateur.kernels.forest.routing import lift

# A piece of a derivative is slope · m − offset + clips · penalty, with m the sum of the weights from the root to a
# node and clips a sum of ± priors. A knot has a position and the increments of the piece there. `LIVE` counts the nodes
# whose rows are in the slope: where it is 0 the piece is exactly flat, which a sum of rounded slopes would not show.
POSITION, SLOPE, OFFSET, CLIPS, LIVE = range(5)


@kernel
def fit_rule_lasso(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    start: np.ndarray,
    tolerance: float,
    max_sweeps: int,
) -> tuple:
    """Return weights w, intercept b, violation and the number of sweeps of a descent from the weights `start`.

    It minimises

        ½ Σ_i weight[i] (b + Σ_{v above a leaf of i} w[v] − target[i])² + penalty Σ prior[v] |w[v]|.

    `leaves`, (n_trees, n_rows), are node indices; `weight` sums to 1; trees are binary and in preorder; `penalty` and
    `prior` are positive. The violation is the largest violation of the optimality conditions over all nodes. It is at
    most `tolerance`, unless `max_sweeps` was reached. Roots have weight 0, as the unpenalised intercept takes their
    place. A sweep takes O(rows · trees + nodes · depth).
    """
    roots = np.append(np.flatnonzero(parent == -1), parent.shape[0])
    node_weight = _node_weights(parent.shape[0], leaves, weight)
    w, intercept, residual = start.copy(), np.empty(1), np.empty(target.shape[0])
    sweeps = 0
    while True:
        # Recompute the residual, as rounding errors accumulate over sweeps.
        intercept[0] = _start(parent, leaves, weight, target, w, residual)
        _sweep(parent, roots, leaves, weight, node_weight, penalty, prior, w, intercept, residual)
        sweeps += 1
        violation = _violation(parent, roots, leaves, weight, penalty, prior, w, residual)
        if violation <= tolerance or sweeps >= max_sweeps:
            return w, intercept[0], violation, sweeps
        goal, left = 0.1 * violation, max_sweeps - sweeps - 1
        sweeps += _solve_active_set(parent, roots, leaves, weight, penalty, prior, goal, left, w, intercept, residual)


@kernel
def _node_weights(n: int, leaves: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weight of the rows whose path ends at each node, (n_nodes,)."""
    node_weight = np.zeros(n)
    for tree in range(leaves.shape[0]):
        for i in range(weight.shape[0]):
            node_weight[leaves[tree, i]] += weight[i]
    return node_weight


@kernel
def _start(
    parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray, target: np.ndarray, w: np.ndarray, residual: np.ndarray
) -> float:
    """Write the residual of the weights and the optimal intercept into `residual`; return that intercept."""
    sums = sum_down(parent, w)
    residual[:] = target
    for tree in range(leaves.shape[0]):
        for i in range(residual.shape[0]):
            residual[i] -= sums[leaves[tree, i]]
    intercept = (weight * residual).sum()
    residual -= intercept
    return intercept


@kernel
def _solve_active_set(
    parent: np.ndarray,
    roots: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    goal: float,
    max_sweeps: int,
    w: np.ndarray,
    intercept: np.ndarray,
    residual: np.ndarray,
) -> int:
    """Sweep over the active set until no violation exceeds `goal`; return the number of sweeps.

    The active set is the nodes of non-zero weight and their ancestors. Sweeps are extrapolated, with a restart when the
    objective increases. Updates `w`, `intercept` and `residual`.
    """
    nodes, parent, roots, leaves = _active(parent, roots, leaves, w)
    n, prior = nodes.shape[0], prior[nodes]
    node_weight = _node_weights(n, leaves, weight)
    # The residual is linear in the weights, so extrapolation applies to weights, intercept and residual alike.
    state = np.concatenate((w[nodes], intercept, residual))
    small_w, small_intercept, small_rest = state[:n], state[n : n + 1], state[n + 1 :]
    # Loop invariant: `before` is the result of the last accepted sweep, `least` its objective.
    before, least, n_accelerated, sweeps = state.copy(), np.inf, 0.0, 0
    while sweeps < max_sweeps and n > 0:
        worst = _sweep(parent, roots, leaves, weight, node_weight, penalty, prior, small_w, small_intercept, small_rest)
        sweeps += 1
        objective = 0.5 * (weight * small_rest**2).sum() + penalty * (prior * np.abs(small_w)).sum()
        if n_accelerated > 0.0 and objective > least:
            # The extrapolation increased the objective: restart without momentum.
            state[:] = before
            n_accelerated = 0.0
            continue
        least = objective
        n_accelerated += 1.0
        momentum = n_accelerated / (n_accelerated + 3.0)
        for j in range(state.shape[0]):
            current = state[j]
            state[j] += momentum * (current - before[j])
            before[j] = current
        if worst <= goal:
            break
    w[nodes], intercept[:], residual[:] = before[:n], before[n : n + 1], before[n + 1 :]
    return sweeps


@kernel
def _active(parent: np.ndarray, roots: np.ndarray, leaves: np.ndarray, w: np.ndarray) -> tuple:
    """Return the active nodes (non-zero weights and ancestors), and parents, roots and leaves of the reduced trees."""
    keep = w != 0.0
    for v in range(parent.shape[0] - 1, -1, -1):
        if keep[v] and parent[v] != -1:
            keep[parent[v]] = True
    nodes, lifted = np.flatnonzero(keep), lift(parent, keep)
    number = np.empty(parent.shape[0], np.int32)
    for k in range(nodes.shape[0]):
        number[nodes[k]] = k
    small_parent = np.empty(nodes.shape[0], np.int32)
    for k in range(nodes.shape[0]):
        above = parent[nodes[k]]
        small_parent[k] = number[above] if above != -1 else -1
    trees = np.flatnonzero(keep[roots[:-1]])
    small_leaves = np.empty((trees.shape[0], leaves.shape[1]), np.int32)
    for t in range(trees.shape[0]):
        for i in range(leaves.shape[1]):
            small_leaves[t, i] = number[lifted[leaves[trees[t], i]]]
    return nodes, small_parent, np.append(np.flatnonzero(small_parent == -1), nodes.shape[0]), small_leaves


@kernel
def _sweep(
    parent: np.ndarray,
    roots: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    node_weight: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    w: np.ndarray,
    intercept: np.ndarray,
    residual: np.ndarray,
) -> float:
    """Optimise each tree in turn given the others; return the largest violation of a tree before its update.

    Updates `w`, `intercept` and `residual`. Loop invariant: `residual` is the residual of `w` and `intercept`.
    """
    worst = 0.0
    for tree in range(leaves.shape[0]):
        a, b = roots[tree], roots[tree + 1]
        neg_gradient = _leaf_gradient(leaves[tree], a, b - a, weight, residual)
        old, linear_term = np.empty(b - a), np.empty(b - a)
        for v in range(b - a):
            old[v] = w[a + v] + (intercept[0] if v == 0 else old[parent[a + v] - a])
            linear_term[v] = neg_gradient[v] + node_weight[a + v] * old[v]
        worst = max(worst, _tree_violation(parent[a:b], a, penalty, prior[a:b], w[a:b], neg_gradient))
        new = _fit_tree(parent[a:b], a, node_weight[a:b], linear_term, penalty, prior[a:b])
        intercept[0] = new[0]
        w[a] = 0.0
        for v in range(1, b - a):
            w[a + v] = new[v] - new[parent[a + v] - a]
        for i in range(residual.shape[0]):
            leaf = leaves[tree, i] - a
            residual[i] -= new[leaf] - old[leaf]
    return worst


@kernel
def _violation(
    parent: np.ndarray,
    roots: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    penalty: float,
    prior: np.ndarray,
    w: np.ndarray,
    residual: np.ndarray,
) -> float:
    """Return the largest violation of the optimality conditions over all nodes."""
    worst = 0.0
    for tree in range(leaves.shape[0]):
        a, b = roots[tree], roots[tree + 1]
        neg_gradient = _leaf_gradient(leaves[tree], a, b - a, weight, residual)
        worst = max(worst, _tree_violation(parent[a:b], a, penalty, prior[a:b], w[a:b], neg_gradient))
    return worst


@kernel
def _leaf_gradient(ends: np.ndarray, first: int, n: int, weight: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return the weighted residual sums of the rows whose path ends at each node of one tree, (n,)."""
    neg_gradient = np.zeros(n)
    for i in range(residual.shape[0]):
        neg_gradient[ends[i] - first] += weight[i] * residual[i]
    return neg_gradient


@kernel
def _tree_violation(
    parent: np.ndarray, first: int, penalty: float, prior: np.ndarray, w: np.ndarray, neg_gradient: np.ndarray
) -> float:
    """Return the largest violation in one tree; accumulates `neg_gradient` towards the root in place."""
    worst = 0.0
    for v in range(w.shape[0] - 1, 0, -1):
        limit = penalty * prior[v]
        excess = abs(neg_gradient[v]) - limit if w[v] == 0.0 else abs(neg_gradient[v] - np.sign(w[v]) * limit)
        worst = max(worst, excess)
        neg_gradient[parent[v] - first] += neg_gradient[v]
    return max(worst, abs(neg_gradient[0]))


@kernel
def _fit_tree(
    parent: np.ndarray, first: int, node_weight: np.ndarray, linear_term: np.ndarray, penalty: float, prior: np.ndarray
) -> np.ndarray:
    """Return the optimal sums m of intercept and weights from the root to each node of one tree, (n_nodes,).

    They minimise Σ_v (½ node_weight[v] m[v]² − linear_term[v] m[v]) + penalty Σ_v prior[v] |m[v] − m[parent[v]]|,
    total variation on a tree.
    """
    n = parent.shape[0]
    knots, line = np.empty((2 * n, 5)), np.zeros(5)
    knots[0::2, POSITION], knots[1::2, POSITION] = -np.inf, np.inf
    stack, edge, top, order = np.empty(2 * n, np.int64), np.zeros(n + 1, np.int64), 0, np.empty(2 * n + 2, np.int64)
    children, clips = np.zeros(n, np.int64), np.zeros(n)
    # Loop invariant: the top of the stack holds one list of knots per child of v, sorted by position, the left child's
    # last. A list is the derivative, with respect to m[v], of the minimal cost of the child's subtree. The sum of the
    # lists and of v's own rows is the derivative of the cost of v's subtree. Clipped at ±penalty · prior[v], at the
    # knots 2v and 2v + 1, it is v's own list: between these knots m[v] = m[parent[v]] is optimal, outside m[v] stays
    # at the knot. clips[v] · penalty is the largest absolute value of the sum of the lists of v's children.
    for v in range(n - 1, -1, -1):
        begin, end = 1, 1 + _merge(knots, stack, edge, top, children[v], order)
        top -= children[v]
        if node_weight[v] > 0.0 or clips[v] > 0.0:
            _set_line(line, node_weight[v], linear_term[v], -clips[v])
            begin = _cross(knots, order, 1, end, 1, -prior[v] if v > 0 else 0.0, penalty, line)
            if v == 0:
                break
            stop = begin - 1
            begin = _add_knot(knots, 2 * v, order, begin, 1, -prior[v], line)
            _set_line(line, node_weight[v], linear_term[v], clips[v])
            end = _cross(knots, order, end - 1, stop, -1, prior[v], penalty, line)
            line[POSITION] = max(line[POSITION], knots[2 * v, POSITION])
            end = 1 + _add_knot(knots, 2 * v + 1, order, end, -1, prior[v], line)
            clips[parent[v] - first] += prior[v] if node_weight[v] > 0.0 else min(prior[v], clips[v])
        edge[top + 1] = edge[top] + end - begin
        for i in range(begin, end):
            stack[edge[top] + i - begin] = order[i]
        top += 1
        if v > 0:
            children[parent[v] - first] += 1
    m = np.empty(n)
    m[0] = line[POSITION]
    for v in range(1, n):
        m[v] = min(max(m[parent[v] - first], knots[2 * v, POSITION]), knots[2 * v + 1, POSITION])
    return m


@kernel
def _merge(knots: np.ndarray, stack: np.ndarray, edge: np.ndarray, top: int, lists: int, order: np.ndarray) -> int:
    """Merge the last `lists` (0, 1 or 2) sorted lists of the stack into `order`, from 1 on; return the length."""
    i, middle, stop = edge[top - lists], edge[top - 1 if lists == 2 else top], edge[top]
    j, n = middle, stop - i
    for k in range(1, n + 1):
        if j == stop or (i < middle and knots[stack[i], POSITION] <= knots[stack[j], POSITION]):
            order[k] = stack[i]
            i += 1
        else:
            order[k] = stack[j]
            j += 1
    return n


@kernel
def _set_line(line: np.ndarray, node_weight: float, linear_term: float, clips: float) -> None:
    """Write into `line` the outermost piece of the derivative at a node, with the slope of its own rows."""
    line[SLOPE], line[OFFSET], line[CLIPS] = node_weight, linear_term, clips
    line[LIVE] = 1.0 if node_weight > 0.0 else 0.0


@kernel
def _cross(
    knots: np.ndarray, order: np.ndarray, i: int, stop: int, step: int, level: float, penalty: float, line: np.ndarray
) -> int:
    """Find the piece in which the derivative crosses level · penalty; return the index in `order` of its end.

    The search goes from i in direction `step`, up to but excluding `stop`. `line` is the piece before i on entry, and
    the piece found on return, with its position where it reaches the level; for a flat piece that is its beginning.
    """
    begin = i
    while i != stop:
        knot = order[i]
        ahead = (line[CLIPS] - level) * penalty
        if line[LIVE] > 0.0:
            ahead += line[SLOPE] * knots[knot, POSITION] - line[OFFSET]
        if step * ahead >= 0.0:
            break
        for c in range(1, 5):
            line[c] += step * knots[knot, c]
        if line[LIVE] == 0.0:
            line[SLOPE] = line[OFFSET] = 0.0
        i += step
    passed = knots[order[i - step], POSITION] if i != begin else -step * np.inf
    line[POSITION] = passed
    if line[SLOPE] > 0.0:
        position = step * max(step * (line[OFFSET] + (level - line[CLIPS]) * penalty) / line[SLOPE], step * passed)
        line[POSITION] = position if i == stop else step * min(step * position, step * knots[order[i], POSITION])
    return i


@kernel
def _add_knot(
    knots: np.ndarray, knot: int, order: np.ndarray, i: int, step: int, level: float, line: np.ndarray
) -> int:
    """Insert a knot between the constant level · penalty and `line`; return the new beginning of the list.

    The knot precedes i in direction `step`. A piece at infinity gets no knot.
    """
    if np.isinf(line[POSITION]):
        return i
    line[CLIPS] -= level
    for c in range(1, 5):
        knots[knot, c] = step * line[c]
    knots[knot, POSITION] = line[POSITION]
    order[i - step] = knot
    return i - step
