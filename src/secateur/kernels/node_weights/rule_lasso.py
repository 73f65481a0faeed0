"""The lasso over all nodes of trees, RuleFit's selection step (Friedman and Popescu 2008), by block coordinate descent.

A block is a tree. While the others rest, it is total variation on a tree, which has an exact solution without
iterations: derivatives, monotone and piecewise linear, are passed from the leaves to the root (Kolmogorov, Pock and
Rolínek 2016). Most sweeps see only the nodes that have a weight, and go a step beyond, as Nesterov's method does.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.forest.preorder import sum_down
from secateur.kernels.forest.routing import lift

# A piece of a derivative is slope · m − offset + clips · penalty, m the sum of the weights down to a node; a knot is a
# place and what is added to the piece there. `LIVE` counts the nodes whose rows are in the slope: where it is 0 the
# piece is flat, which a sum of rounded slopes would not show.
PLACE, SLOPE, OFFSET, CLIPS, LIVE = range(5)


@kernel
def fit_rule_lasso(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    start: np.ndarray,
    tolerance: float,
    max_sweeps: int,
) -> tuple:
    """Return weights w, intercept b, violation and the number of sweeps of a descent from the weights `start`.

    It seeks the minimum of

        ½ Σ_i weight[i] (b + Σ_{v above a leaf of i} w[v] − target[i])² + penalty Σ |w|,   penalty > 0.

    `leaves`, (n_trees, n_rows), are nodes; `weight` adds up to 1; trees are binary, in preorder. The violation is by
    how much the gradient misses the conditions of a minimum, at the node where it misses most: at most `tolerance`,
    unless there were `max_sweeps`. A root has no weight, as the intercept does the same for nothing. O(rows · trees +
    nodes · depth) per sweep.
    """
    roots = np.append(np.flatnonzero(parent == -1), parent.shape[0])
    node_weight = _node_weights(parent.shape[0], leaves, weight)
    w, intercept, rest = start.copy(), np.empty(1), np.empty(target.shape[0])
    sweeps = 0
    while True:
        intercept[0] = _start(parent, leaves, weight, target, w, rest)  # afresh, as many sweeps add up rounding errors
        _sweep(parent, roots, leaves, weight, node_weight, penalty, w, intercept, rest)
        sweeps += 1
        violation = _violation(parent, roots, leaves, weight, penalty, w, rest)
        if violation <= tolerance or sweeps >= max_sweeps:
            return w, intercept[0], violation, sweeps
        goal, left = 0.1 * violation, max_sweeps - sweeps - 1
        sweeps += _solve_active_set(parent, roots, leaves, weight, penalty, goal, left, w, intercept, rest)


@kernel
def _node_weights(n: int, leaves: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the share of the rows whose way ends at each node, (n_nodes,)."""
    node_weight = np.zeros(n)
    for tree in range(leaves.shape[0]):
        for i in range(weight.shape[0]):
            node_weight[leaves[tree, i]] += weight[i]
    return node_weight


@kernel
def _start(
    parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray, target: np.ndarray, w: np.ndarray, rest: np.ndarray
) -> float:
    """Write into `rest` the target less what weights and the best intercept predict; return that intercept."""
    sums = sum_down(parent, w)
    rest[:] = target
    for tree in range(leaves.shape[0]):
        for i in range(rest.shape[0]):
            rest[i] -= sums[leaves[tree, i]]
    intercept = (weight * rest).sum()
    rest -= intercept
    return intercept


@kernel
def _solve_active_set(
    parent: np.ndarray,
    roots: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    penalty: float,
    goal: float,
    max_sweeps: int,
    w: np.ndarray,
    intercept: np.ndarray,
    rest: np.ndarray,
) -> int:
    """Sweep over nodes with a weight and those above them until no violation is above `goal`; return how often.

    Changes `w`, `intercept` and `rest`.
    """
    nodes, parent, roots, leaves = _active(parent, roots, leaves, w)
    n = nodes.shape[0]
    node_weight = _node_weights(n, leaves, weight)
    state = np.concatenate((w[nodes], intercept, rest))  # all that a step beyond moves, being linear in the weights
    small_w, small_intercept, small_rest = state[:n], state[n : n + 1], state[n + 1 :]
    before, least, age, sweeps = state.copy(), np.inf, 0.0, 0
    while sweeps < max_sweeps and n > 0:
        worst = _sweep(parent, roots, leaves, weight, node_weight, penalty, small_w, small_intercept, small_rest)
        sweeps += 1
        objective = 0.5 * (weight * small_rest**2).sum() + penalty * np.abs(small_w).sum()
        if age > 0.0 and objective > least:  # the step beyond did harm: back to before it
            state[:] = before
            age = 0.0
            continue
        least = objective
        age += 1.0
        push = age / (age + 3.0)
        for j in range(state.shape[0]):
            here = state[j]
            state[j] += push * (here - before[j])
            before[j] = here
        if worst <= goal:
            break
    w[nodes], intercept[:], rest[:] = before[:n], before[n : n + 1], before[n + 1 :]
    return sweeps


@kernel
def _active(parent: np.ndarray, roots: np.ndarray, leaves: np.ndarray, w: np.ndarray) -> tuple:
    """Return the nodes that have a weight or are above one, and parents, roots and leaves of trees of only these."""
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
    w: np.ndarray,
    intercept: np.ndarray,
    rest: np.ndarray,
) -> float:
    """Make one tree after the other optimal, given the others; return the worst violation one had before its turn.

    Changes `w`, `intercept` and `rest`.
    """
    worst = 0.0
    for tree in range(leaves.shape[0]):
        a, b = roots[tree], roots[tree + 1]
        neg_gradient = _pull(leaves[tree], a, b - a, weight, rest)
        old, goal = np.empty(b - a), np.empty(b - a)
        for v in range(b - a):
            old[v] = w[a + v] + (intercept[0] if v == 0 else old[parent[a + v] - a])
            goal[v] = neg_gradient[v] + node_weight[a + v] * old[v]
        worst = max(worst, _miss(parent[a:b], a, penalty, w[a:b], neg_gradient))
        new = _fit_tree(parent[a:b], a, node_weight[a:b], goal, penalty)
        intercept[0] = new[0]
        w[a] = 0.0
        for v in range(1, b - a):
            w[a + v] = new[v] - new[parent[a + v] - a]
        for i in range(rest.shape[0]):
            leaf = leaves[tree, i] - a
            rest[i] -= new[leaf] - old[leaf]
    return worst


@kernel
def _violation(
    parent: np.ndarray,
    roots: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    penalty: float,
    w: np.ndarray,
    rest: np.ndarray,
) -> float:
    """Return by how much the gradient misses the conditions of a minimum, at the node where it misses most."""
    worst = 0.0
    for tree in range(leaves.shape[0]):
        a, b = roots[tree], roots[tree + 1]
        worst = max(worst, _miss(parent[a:b], a, penalty, w[a:b], _pull(leaves[tree], a, b - a, weight, rest)))
    return worst


@kernel
def _pull(ends: np.ndarray, first: int, n: int, weight: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the sums of what is left of the rows that end at each node of one tree, (n,)."""
    neg_gradient = np.zeros(n)
    for i in range(rest.shape[0]):
        neg_gradient[ends[i] - first] += weight[i] * rest[i]
    return neg_gradient


@kernel
def _miss(parent: np.ndarray, first: int, penalty: float, w: np.ndarray, neg_gradient: np.ndarray) -> float:
    """Return the worst violation in one tree; adds up `neg_gradient` towards the root."""
    worst = 0.0
    for v in range(w.shape[0] - 1, 0, -1):
        miss = abs(neg_gradient[v]) - penalty if w[v] == 0.0 else abs(neg_gradient[v] - np.sign(w[v]) * penalty)
        worst = max(worst, miss)
        neg_gradient[parent[v] - first] += neg_gradient[v]
    return max(worst, abs(neg_gradient[0]))


@kernel
def _fit_tree(parent: np.ndarray, first: int, node_weight: np.ndarray, goal: np.ndarray, penalty: float) -> np.ndarray:
    """Return the best sums m of the intercept and the weights down to each node of one tree, (n_nodes,).

    They are the minimum of Σ_v (½ share[v] m[v]² − goal[v] m[v]) + penalty Σ_v |m[v] − m[parent[v]]|.
    """
    n = parent.shape[0]
    knots, line = np.empty((2 * n, 5)), np.zeros(5)
    knots[0::2, PLACE], knots[1::2, PLACE] = -np.inf, np.inf
    stack, edge, top, order = np.empty(2 * n, np.int64), np.zeros(n + 1, np.int64), 0, np.empty(2 * n + 2, np.int64)
    children, live = np.zeros(n, np.int64), np.zeros(n, np.int64)
    # When v is reached, the top of the stack has a list of knots, by place, for each child, the left one's last: the
    # derivative of what its subtree costs at best, by m[v]. With v's own rows they add up to the derivative by m[v] of
    # all that hangs on it; clipped at ±penalty, in the knots 2v and 2v + 1, this is v's own list, as between these
    # m[v] = m[parent[v]] is best, and beyond them to stay there.
    for v in range(n - 1, -1, -1):
        begin, end = 1, 1 + _merge(knots, stack, edge, top, children[v], order)
        top -= children[v]
        if node_weight[v] > 0.0 or live[v] > 0:
            _set_line(line, node_weight[v], goal[v], -live[v])
            begin = _cross(knots, order, 1, end, 1, -1.0 if v > 0 else 0.0, penalty, line)
            if v == 0:
                break
            stop = begin - 1
            begin = _add_knot(knots, 2 * v, order, begin, 1, -1.0, line)
            _set_line(line, node_weight[v], goal[v], live[v])
            end = _cross(knots, order, end - 1, stop, -1, 1.0, penalty, line)
            line[PLACE] = max(line[PLACE], knots[2 * v, PLACE])
            end = 1 + _add_knot(knots, 2 * v + 1, order, end, -1, 1.0, line)
            live[parent[v] - first] += 1
        edge[top + 1] = edge[top] + end - begin
        for i in range(begin, end):
            stack[edge[top] + i - begin] = order[i]
        top += 1
        if v > 0:
            children[parent[v] - first] += 1
    m = np.empty(n)
    m[0] = line[PLACE]
    for v in range(1, n):
        m[v] = min(max(m[parent[v] - first], knots[2 * v, PLACE]), knots[2 * v + 1, PLACE])
    return m


@kernel
def _merge(knots: np.ndarray, stack: np.ndarray, edge: np.ndarray, top: int, lists: int, order: np.ndarray) -> int:
    """Write into `order`, from 1 on, the last `lists` (0, 1 or 2) of the stack as one list; return its length."""
    i, middle, stop = edge[top - lists], edge[top - 1 if lists == 2 else top], edge[top]
    j, n = middle, stop - i
    for k in range(1, n + 1):
        if j == stop or (i < middle and knots[stack[i], PLACE] <= knots[stack[j], PLACE]):
            order[k] = stack[i]
            i += 1
        else:
            order[k] = stack[j]
            j += 1
    return n


@kernel
def _set_line(line: np.ndarray, node_weight: float, goal: float, clips: int) -> None:
    """Write into `line` the outermost piece of the derivative at a node, to which its own rows add a slope if any."""
    line[SLOPE], line[OFFSET], line[CLIPS] = node_weight, goal, clips
    line[LIVE] = 1.0 if node_weight > 0.0 else 0.0


@kernel
def _cross(
    knots: np.ndarray, order: np.ndarray, i: int, stop: int, step: int, level: float, penalty: float, line: np.ndarray
) -> int:
    """Return where in `order`, going by `step` from i, the piece ends in which the derivative is level · penalty.

    `line` is the piece before i, and becomes the one found, its place where it reaches the level; of a flat piece that
    is its beginning. `stop` is not looked at.
    """
    begin = i
    while i != stop:
        knot = order[i]
        ahead = (line[CLIPS] - level) * penalty
        if line[LIVE] > 0.0:
            ahead += line[SLOPE] * knots[knot, PLACE] - line[OFFSET]
        if step * ahead >= 0.0:
            break
        for c in range(1, 5):
            line[c] += step * knots[knot, c]
        if line[LIVE] == 0.0:
            line[SLOPE] = line[OFFSET] = 0.0
        i += step
    passed = knots[order[i - step], PLACE] if i != begin else -step * np.inf
    line[PLACE] = passed
    if line[SLOPE] > 0.0:
        place = step * max(step * (line[OFFSET] + (level - line[CLIPS]) * penalty) / line[SLOPE], step * passed)
        line[PLACE] = place if i == stop else step * min(step * place, step * knots[order[i], PLACE])
    return i


@kernel
def _add_knot(
    knots: np.ndarray, knot: int, order: np.ndarray, i: int, step: int, level: float, line: np.ndarray
) -> int:
    """Put between level · penalty and `line` a knot, before i as seen by `step`; return where the list now begins."""
    if np.isinf(line[PLACE]):
        return i
    line[CLIPS] -= level
    for c in range(1, 5):
        knots[knot, c] = step * line[c]
    knots[knot, PLACE] = line[PLACE]
    order[i - step] = knot
    return i - step
