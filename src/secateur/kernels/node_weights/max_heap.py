"""Weights of nodes that never grow on the way down: the projection onto such weights, and descent with it.

The projection is isotonic regression on a tree: blocks of nodes that share a value, pooled from the bottom up. The
descent is GIST (Gong et al. 2013): a gradient step with Barzilai-Borwein length, the projection, and a line search
that compares with the worst of the last few objectives; before it, a step with inertia is tried. Distances count a
node by its share of the rows, the diagonal of the Hessian: deep nodes, which few rows reach, would be slow otherwise.
"""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def project_max_heap(u: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Return the w nearest to `u` with w >= 0 and w[parent[v]] >= w[v], (n_nodes,).

    `parent[v] < v`, or -1 at a root; any number of children and of roots. O(n log n).
    """
    n = u.shape[0]
    w = np.empty(n)
    _project(parent, u.copy(), np.ones(n), w, np.empty((3, n), np.int32))
    return w


@kernel
def _project(parent: np.ndarray, total: np.ndarray, count: np.ndarray, w: np.ndarray, links: np.ndarray) -> None:
    """Write into `w` the projection of total / count, in which node v counts `count[v]` times.

    Changes `total` and `count`; `links` is room to work in.
    """
    left, right, below = links[0], links[1], links[2]
    n = total.shape[0]
    for v in range(n):
        left[v] = right[v] = below[v] = -1
    # When v is reached, below[v] is a skew heap, largest mean first, of the blocks that hang below v's own, all with
    # positive mean: a block whose mean is not positive ends at 0 whatever is above it, and no block above a 0 needs to
    # know of it. A block is named by its topmost node, and w there is its mean; w[v] < 0 codes that v was pooled into
    # block -w[v] - 1.
    for v in range(n - 1, -1, -1):
        h = below[v]
        mean = total[v] / count[v]
        while h != -1 and w[h] > mean:
            total[v] += total[h]
            count[v] += count[h]
            mean = total[v] / count[v]
            w[h] = -1.0 - v
            rest = left[h]
            if right[h] != -1:
                rest = right[h] if rest == -1 else _merge(rest, right[h], w, left, right)
            if below[h] != -1:
                rest = below[h] if rest == -1 else _merge(rest, below[h], w, left, right)
            h = rest
        below[v] = h
        w[v] = max(mean, 0.0)
        above = parent[v]
        if mean > 0.0 and above != -1:
            below[above] = v if below[above] == -1 else _merge(below[above], v, w, left, right)
    for v in range(n):
        if w[v] < 0.0:
            w[v] = w[int(-1.0 - w[v])]
        elif parent[v] != -1 and w[v] > w[parent[v]]:  # by rounding
            w[v] = w[parent[v]]


@kernel
def _merge(a: int, b: int, mean: np.ndarray, left: np.ndarray, right: np.ndarray) -> int:
    """Return the root of the union of two skew heaps, neither empty, ordered by mean, largest first."""
    if mean[a] < mean[b]:
        a, b = b, a
    top = a
    while True:  # b goes to the right of a, and a's sides change places
        c = right[a]
        right[a] = left[a]
        if c == -1:
            left[a] = b
            return top
        if mean[c] < mean[b]:
            c, b = b, c
        left[a] = c
        a = c


@kernel
def fit_max_heap(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    start: np.ndarray,
    tolerance: float,
    growth: float,
    memory: int,
    max_iterations: int,
) -> tuple:
    """Return weights w, intercept b, criticality and the objectives of all iterations of a descent.

    It seeks a minimum of

        ½ Σ_i weight[i] (b + Σ_{v above a leaf of i} w[v] − target[i])² + penalty Σ |w|,   |w[parent[v]]| ≥ |w[v]|.

    `leaves`, (n_trees, n_rows), are nodes; `weight` adds up to 1. The intercept is always the best for the weights. The
    criticality is how far a proximal step (3.7) of length 1 moves a weight, relative to the spread of the target.
    """
    n = parent.shape[0]
    node_weight, one = _node_weights(parent, leaves, weight), np.ones(n)
    w, g, new, new_g = start.copy(), np.empty(n), np.empty(n), np.empty(n)
    before, before_g, far, far_g = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    scratch, links, fit = np.empty((3, n)), np.empty((3, n), np.int32), np.empty(target.shape[0])
    mean = (weight * target).sum()
    scale = max(np.sqrt((weight * (target - mean) ** 2).sum()), 1e-300)
    history = np.empty(max_iterations + 1)
    history[0], b = _objective(parent, leaves, weight, target, penalty, w, g, scratch[0], fit)
    steepest = _longest_way(parent, leaves)  # in our distance the gradient changes at most this fast
    t, steep, age, done, moved = 1.0, 1.0, 0.0, 0, 0.0
    while True:
        if moved <= tolerance * scale or done == max_iterations:
            _step(w, g, 1.0, one, penalty, parent, new, scratch, links)
            criticality = np.abs(new - w).max() / scale
            if criticality <= tolerance or done == max_iterations:
                return w, b, criticality, history[: done + 1].copy()
        accepted = False
        if age > 0.0:  # a step from further along the way, where the gradient is known, as it is linear
            push = age / (age + 3.0)
            for v in range(n):
                far[v] = w[v] + push * (w[v] - before[v])
                far_g[v] = g[v] + push * (g[v] - before_g[v])
            _step(far, far_g, steep, node_weight, penalty, parent, new, scratch, links)
            objective, b = _objective(parent, leaves, weight, target, penalty, new, new_g, scratch[0], fit)
            moved, square, bent = _change(w, g, new, new_g, node_weight)
            accepted = objective <= history[done] - 0.5e-5 * steep * square
        age = age + 1.0 if accepted else 1.0
        worst = history[max(0, done + 1 - memory) : done + 1].max()
        while not accepted:
            _step(w, g, t, node_weight, penalty, parent, new, scratch, links)
            objective, b = _objective(parent, leaves, weight, target, penalty, new, new_g, scratch[0], fit)
            moved, square, bent = _change(w, g, new, new_g, node_weight)
            accepted = objective <= worst - 0.5e-5 * t * square or t > steepest
            t *= growth
        t = min(max(bent / square, 1e-3), steepest) if square > 0.0 else 1.0
        steep = max(steep, t)
        before, w, new = w, new, before
        before_g, g, new_g = g, new_g, before_g
        done += 1
        history[done] = objective


@kernel
def _change(w: np.ndarray, g: np.ndarray, new: np.ndarray, new_g: np.ndarray, node_weight: np.ndarray) -> tuple:
    """Return the largest change of a weight, the squared distance, and the change of the gradient along it."""
    moved, square, bent = 0.0, 0.0, 0.0
    for v in range(w.shape[0]):
        change = new[v] - w[v]
        moved = max(moved, abs(change))
        square += node_weight[v] * change * change
        bent += change * (new_g[v] - g[v])
    return moved, square, bent


@kernel
def _longest_way(parent: np.ndarray, leaves: np.ndarray) -> float:
    """Return the largest number of nodes on the ways of one row through all trees."""
    length = np.empty(parent.shape[0])
    for v in range(parent.shape[0]):
        length[v] = 1.0 + (length[parent[v]] if parent[v] != -1 else 0.0)
    longest = 0.0
    for i in range(leaves.shape[1]):
        total = 0.0
        for tree in range(leaves.shape[0]):
            total += length[leaves[tree, i]]
        longest = max(longest, total)
    return longest


@kernel
def _node_weights(parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the share of the rows that reaches each node, never quite 0, (n_nodes,)."""
    node_weight = np.full(parent.shape[0], 1e-300)
    for tree in range(leaves.shape[0]):
        for i in range(weight.shape[0]):
            node_weight[leaves[tree, i]] += weight[i]
    for v in range(parent.shape[0] - 1, -1, -1):
        if parent[v] != -1:
            node_weight[parent[v]] += node_weight[v]
    return node_weight


@kernel
def _step(
    w: np.ndarray,
    g: np.ndarray,
    t: float,
    node_weight: np.ndarray,
    penalty: float,
    parent: np.ndarray,
    new: np.ndarray,
    scratch: np.ndarray,
    links: np.ndarray,
) -> None:
    """Write into `new` where a proximal step leads: signs of u = w − g / (t · share), sizes by projection (3.8)."""
    total, count, u = scratch[0], scratch[1], scratch[2]
    for v in range(w.shape[0]):
        u[v] = node_weight[v] * w[v] - g[v] / t
        total[v] = abs(u[v]) - penalty / t
        count[v] = node_weight[v]
    _project(parent, total, count, new, links)
    for v in range(w.shape[0]):
        if u[v] < 0.0:
            new[v] = -new[v]


@kernel
def _objective(
    parent: np.ndarray,
    leaves: np.ndarray,
    weight: np.ndarray,
    target: np.ndarray,
    penalty: float,
    w: np.ndarray,
    g: np.ndarray,
    sums: np.ndarray,
    fit: np.ndarray,
) -> tuple:
    """Return the objective at `w` and its best intercept; write the gradient into `g`."""
    absolute = 0.0
    for v in range(w.shape[0]):
        g[v] = 0.0
        sums[v] = w[v] + (sums[parent[v]] if parent[v] != -1 else 0.0)
        absolute += abs(w[v])
    b = 0.0
    for i in range(target.shape[0]):
        fit[i] = -target[i]
        for tree in range(leaves.shape[0]):
            fit[i] += sums[leaves[tree, i]]
        b -= weight[i] * fit[i]
    square = 0.0
    for i in range(target.shape[0]):
        residual = weight[i] * (fit[i] + b)
        square += residual * (fit[i] + b)
        for tree in range(leaves.shape[0]):
            g[leaves[tree, i]] += residual
    for v in range(w.shape[0] - 1, -1, -1):
        if parent[v] != -1:
            g[parent[v]] += g[v]
    return 0.5 * square + penalty * absolute, b


@kernel
def node_gradient(parent: np.ndarray, leaves: np.ndarray, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the gradient of ½ Σ_i weight[i] (fit − target[i])² by node weights where all are 0, (n_nodes,)."""
    n = parent.shape[0]
    g = np.empty(n)
    _objective(parent, leaves, weight, target, 0.0, np.zeros(n), g, np.empty(n), np.empty(target.shape[0]))
    return g
