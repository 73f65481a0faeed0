"""Descent over trees: one tree at a time gets the subtree, and the leaf values, that are best given all others.

The state of an ensemble: `status` of each node (0 absent, 1 split, 2 leaf), `part`, what the tree adds for rows that
end at or below a kept leaf, an intercept, and for each row `pull`, weight · (target − prediction). A tree sees the rows
through sums over its leaves. Squared error needs nothing else; for logistic and softmax losses `chance` holds the
probabilities, the loss is replaced by a parabola, and a step counts only if the true loss falls.
"""

import numpy as np

from secateur.kernels._jit import kernel

KEEP, REFIT, SCALE, SCALE_SPARSE = 0, 1, 2, 3
"""What a kept leaf adds: its own value, a value fitted with a ridge, its own value times a factor of the tree."""


@kernel
def sweep_blocks(
    leaves: np.ndarray,
    weight: np.ndarray,
    pull: np.ndarray,
    chance: np.ndarray,
    intercept: np.ndarray,
    tree_start: np.ndarray,
    tree_output: np.ndarray,
    right: np.ndarray,
    depth: np.ndarray,
    share: np.ndarray,
    own: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    part: np.ndarray,
    factor: np.ndarray,
    may_change: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
    values: int,
    layered: bool,
    frozen: bool,
    first: int,
    tolerance: float,
) -> tuple:
    """Update every tree that may change once; return how many did change, and the gain.

    Changes `pull`, `chance`, `status`, `part` and `factor`, with layers also `intercept`. An update must gain more than
    `tolerance`. `frozen` refits values without changing what is kept. The ridge draws fitted values to `centre` times
    their own.
    """
    n_trees = leaves.shape[0]
    largest = (tree_start[1:] - tree_start[:-1]).max() if n_trees > 0 else 1
    room = np.empty((5, largest, part.shape[1]))
    numbers = np.empty((3, largest))
    state = np.empty(largest, np.int8)
    changed, total = 0, 0.0
    for place in range(n_trees):
        tree = (first + place) % n_trees
        if may_change[tree]:
            gain = update_tree(
                tree,
                leaves[tree],
                weight,
                pull,
                chance,
                intercept,
                max(tree_output[tree], 0),
                tree_start[tree],
                tree_start[tree + 1],
                right,
                depth,
                share,
                own,
                as_leaf,
                as_split,
                status,
                part,
                factor,
                penalty,
                ridge,
                centre,
                values,
                layered,
                frozen,
                tolerance,
                room,
                numbers,
                state,
            )
            if gain > 0.0:
                total += gain
                changed += 1
    return changed, total


@kernel
def move_intercept(weight: np.ndarray, pull: np.ndarray, chance: np.ndarray, intercept: np.ndarray) -> float:
    """Move the intercept of every output to where the loss is least, or nearer; return the gain."""
    gain = 0.0
    total = weight.sum()
    newton = chance.shape[0] > 0
    for k in range(pull.shape[1]):
        slope, curve = 0.0, 0.0
        for i in range(weight.shape[0]):
            slope += pull[i, k]
            if newton:
                curve += weight[i] * chance[i, k] * (1.0 - chance[i, k])
        if not newton:
            step = slope / total
            for i in range(weight.shape[0]):
                pull[i, k] -= weight[i] * step
            intercept[k] += step
            gain += total * step * step
            continue
        for bend in (curve, 0.25 * total):
            step = slope / bend if bend > 0.0 else 0.0
            better = 0.0
            for i in range(weight.shape[0]):
                better += _less_loss(weight[i], pull[i, k], chance[i, k], step)
            if better > 0.0:
                for i in range(weight.shape[0]):
                    _shift(i, k, weight[i], step, pull, chance)
                intercept[k] += step
                gain += better
                break
    return gain


@kernel
def _less_loss(weight: float, pull: float, chance: float, step: float) -> float:
    """Return by how much a row's loss falls when its logit moves by `step`."""
    return (pull + weight * chance) * step - weight * np.log1p(chance * np.expm1(step))


@kernel
def _shift(i: int, k: int, weight: float, step: float, pull: np.ndarray, chance: np.ndarray) -> None:
    """Move logit k of row i by `step`; what it wins the other classes lose in proportion."""
    shrink = 1.0 / (1.0 + chance[i, k] * np.expm1(step))
    for other in range(chance.shape[1]):
        was = chance[i, other]
        now = was * shrink if other != k else was * np.exp(step) * shrink
        pull[i, other] -= weight * (now - was)
        chance[i, other] = now


@kernel
def update_tree(
    tree: int,
    leaf: np.ndarray,
    weight: np.ndarray,
    pull: np.ndarray,
    chance: np.ndarray,
    intercept: np.ndarray,
    column: int,
    start: int,
    stop: int,
    right: np.ndarray,
    depth: np.ndarray,
    share: np.ndarray,
    own: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    part: np.ndarray,
    factor: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
    values: int,
    layered: bool,
    frozen: bool,
    tolerance: float,
    room: np.ndarray,
    numbers: np.ndarray,
    state: np.ndarray,
) -> float:
    """Give one tree its best subtree; return the gain, 0 if it stays as it is."""
    if frozen and status[start] == 0:
        return 0.0
    n, width = stop - start, part.shape[1]
    pulled, sums, fitted, fresh = room[0], room[1], room[2], room[3]
    curve, flow, best = numbers[0], numbers[1], numbers[2]
    newton = chance.shape[0] > 0
    sum_rows(leaf, weight, pull, chance, column, n, width, pulled, curve)
    for attempt in range(2 if newton else 1):
        half = 0.5 if newton else 1.0
        # From the back: sums of what rows want from this tree, `sums`, and of their curvature, `flow`; then the cost of
        # every node as a leaf, relative to rows that get nothing, and of the best subtree there. `old` is the cost of
        # the tree as it is, on the same scale.
        old = _cost_of_factor(status[start], factor[tree], ridge, values, half)
        for v in range(n - 1, -1, -1):
            u = start + v
            if right[u] == -1:
                if newton:
                    flow[v] = curve[v] if attempt == 0 else 0.25 * share[u]
                else:
                    flow[v] = share[u]
                for k in range(width):
                    sums[v, k] = pulled[v, k] + flow[v] * part[u, k]
                    old += half * part[u, k] * (flow[v] * part[u, k] - 2.0 * sums[v, k])
            else:
                b = right[u] - start
                flow[v] = flow[v + 1] + flow[b]
                for k in range(width):
                    sums[v, k] = sums[v + 1, k] + sums[b, k]
            cost = 0.0
            for k in range(width):
                if values == REFIT:
                    bend, home = flow[v] + ridge, centre * own[u, k]
                    wanted = sums[v, k] + ridge * home
                    fitted[v, k] = wanted / bend if bend > 0.0 else 0.0
                    cost += ridge * home * home - fitted[v, k] * wanted
                else:
                    fitted[v, k] = own[u, k]
                    cost += own[u, k] * (flow[v] * own[u, k] - 2.0 * sums[v, k])
            best[v] = half * cost + penalty * as_leaf[u]
            state[v] = 2
            if status[u] == 1:
                old += penalty * as_split[u]
            elif status[u] == 2:
                old += penalty * as_leaf[u]
                if values == REFIT:
                    for k in range(width):
                        old += half * ridge * (part[u, k] - centre * own[u, k]) ** 2
            if right[u] != -1 and not layered:
                both = best[v + 1] + best[right[u] - start] + penalty * as_split[u]
                if (frozen and status[u] == 1) or (not frozen and both < best[v]):
                    best[v] = both
                    state[v] = 1
        new, times = best[0], 1.0
        if layered:
            free = not newton and values <= REFIT and not frozen  # the intercept may move with the tree
            new, times = _best_layer(
                start,
                n,
                right,
                depth,
                own,
                as_leaf,
                as_split,
                sums,
                flow,
                fitted,
                best,
                state,
                penalty,
                ridge,
                values,
                free,
            )
        elif new >= 0.0 and not frozen:
            new, state[0] = 0.0, 0
        gain = old - new
        if gain > tolerance or newton:
            _spread(start, n, right, state, fitted, times, fresh)
        if newton:
            gain = _true_gain(
                leaf,
                weight,
                pull,
                chance,
                column,
                start,
                n,
                own,
                as_leaf,
                as_split,
                status,
                part,
                state,
                fresh,
                penalty,
                ridge,
                centre,
            )
        if gain > tolerance:
            move_rows(leaf, weight, pull, chance, column, start, width, part, fresh)
            for v in range(n):
                status[start + v] = state[v]
                for k in range(width):
                    part[start + v, k] = fresh[v, k]
            factor[tree] = times if state[0] != 0 else 0.0
            if layered and not newton and values <= REFIT:
                move_intercept(weight, pull, chance, intercept)  # its gain is in the cost of the layer
            return gain
    return 0.0


@kernel
def sum_rows(
    leaf: np.ndarray,
    weight: np.ndarray,
    pull: np.ndarray,
    chance: np.ndarray,
    column: int,
    n: int,
    width: int,
    pulled: np.ndarray,
    curve: np.ndarray,
) -> None:
    """Sum the pull of the rows in each leaf of a tree, and their curvature."""
    for v in range(n):
        curve[v] = 0.0
        for k in range(width):
            pulled[v, k] = 0.0
    if chance.shape[0] > 0:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            pulled[v, 0] += pull[i, column]
            curve[v] += weight[i] * chance[i, column] * (1.0 - chance[i, column])
    elif width == 1:
        for i in range(leaf.shape[0]):
            pulled[leaf[i], 0] += pull[i, column]
    else:
        for i in range(leaf.shape[0]):
            v = leaf[i]
            for k in range(width):
                pulled[v, k] += pull[i, k]


@kernel
def _best_layer(
    start: int,
    n: int,
    right: np.ndarray,
    depth: np.ndarray,
    own: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    sums: np.ndarray,
    flow: np.ndarray,
    fitted: np.ndarray,
    best: np.ndarray,
    state: np.ndarray,
    penalty: float,
    ridge: float,
    values: int,
    free: bool,
) -> tuple:
    """Choose the depth below which a tree is cut; return its cost and the factor of its values.

    `best` holds the costs of nodes as leaves, with the values `fitted`. `free` takes into account that the intercept
    then moves to the mean of what is left, which lowers the loss by (Σ residuals)² / Σ weights; before, it is at the
    mean. Writes the new status into `state`.
    """
    deepest = 0
    for v in range(n):
        deepest = max(deepest, depth[start + v])
    ends = np.zeros(deepest + 1)  # cost of the leaves when all below this depth is cut
    price = np.zeros(deepest + 1)  # the part of it that is penalty
    match = np.zeros(deepest + 1)  # ⟨pull, own values⟩ and ⟨own values, own values⟩ over the rows
    norm = np.zeros(deepest + 1)
    added = np.zeros((deepest + 1, own.shape[1]))  # Σ weight · value over the rows
    for v in range(n):
        u = start + v
        last = deepest if right[u] == -1 else depth[u]
        inner, square = 0.0, 0.0
        if values >= SCALE:
            for k in range(own.shape[1]):
                inner += own[u, k] * sums[v, k]
                square += own[u, k] * own[u, k] * flow[v]
        for d in range(depth[u], last + 1):
            ends[d] += best[v]
            price[d] += penalty * as_leaf[u]
            match[d] += inner
            norm[d] += square
            for k in range(own.shape[1]):
                added[d, k] += flow[v] * fitted[v, k]
        if right[u] != -1:
            for d in range(depth[u] + 1, deepest + 1):
                ends[d] += penalty * as_split[u]
                price[d] += penalty * as_split[u]
    least, cut, times = 0.0, -1, 1.0
    if free:
        for k in range(own.shape[1]):
            least -= sums[0, k] ** 2 / flow[0]
    for d in range(deepest + 1):
        cost, factor = ends[d], 1.0
        if free:
            for k in range(own.shape[1]):
                cost -= (sums[0, k] - added[d, k]) ** 2 / flow[0]
        if values == SCALE:
            factor = match[d] / (norm[d] + ridge) if norm[d] + ridge > 0.0 else 0.0
            cost = price[d] - factor * match[d]
        elif values == SCALE_SPARSE:
            factor = match[d] / norm[d] if norm[d] > 0.0 else 0.0
            cost = price[d] - factor * match[d] + ridge
        if cost < least:
            least, cut, times = cost, d, factor
    for v in range(n):
        u = start + v
        if depth[u] > cut:
            state[v] = 0
        else:
            state[v] = 2 if depth[u] == cut or right[u] == -1 else 1
    return least, times


@kernel
def _spread(
    start: int, n: int, right: np.ndarray, state: np.ndarray, fitted: np.ndarray, times: float, fresh: np.ndarray
) -> None:
    """Clear the status of what is below kept leaves, and write what each node adds: its leaf's value, or nothing."""
    width = fitted.shape[1]
    for v in range(n):
        if v == 0 or state[v] == 2:
            for k in range(width):
                fresh[v, k] = times * fitted[v, k] if state[v] == 2 else 0.0
        elif state[v] == 1:
            for k in range(width):
                fresh[v, k] = 0.0
        if right[start + v] != -1 and state[v] != 1:  # children are not there, and say what their parent says
            a, b = v + 1, right[start + v] - start
            state[a] = state[b] = 0
            for k in range(width):
                fresh[a, k] = fresh[b, k] = fresh[v, k]


@kernel
def _cost_of_factor(status: int, factor: float, ridge: float, values: int, half: float) -> float:
    """Return what the factor of a tree costs, if it is there."""
    if status != 0 and values == SCALE:
        return half * ridge * factor * factor
    if status != 0 and values == SCALE_SPARSE:
        return half * ridge
    return 0.0


@kernel
def _true_gain(
    leaf: np.ndarray,
    weight: np.ndarray,
    pull: np.ndarray,
    chance: np.ndarray,
    column: int,
    start: int,
    n: int,
    own: np.ndarray,
    as_leaf: np.ndarray,
    as_split: np.ndarray,
    status: np.ndarray,
    part: np.ndarray,
    state: np.ndarray,
    fresh: np.ndarray,
    penalty: float,
    ridge: float,
    centre: float,
) -> float:
    """Return by how much loss, penalty and ridge together fall, for losses of logits with values refitted or kept."""
    gain = 0.0
    for v in range(n):
        u = start + v
        if status[u] == 1:
            gain += penalty * as_split[u]
        elif status[u] == 2:
            gain += penalty * as_leaf[u] + 0.5 * ridge * (part[u, 0] - centre * own[u, 0]) ** 2
        if state[v] == 1:
            gain -= penalty * as_split[u]
        elif state[v] == 2:
            gain -= penalty * as_leaf[u] + 0.5 * ridge * (fresh[v, 0] - centre * own[u, 0]) ** 2
    for i in range(leaf.shape[0]):
        step = fresh[leaf[i], 0] - part[start + leaf[i], 0]
        if step != 0.0:
            gain += _less_loss(weight[i], pull[i, column], chance[i, column], step)
    return gain


@kernel
def move_rows(
    leaf: np.ndarray,
    weight: np.ndarray,
    pull: np.ndarray,
    chance: np.ndarray,
    column: int,
    start: int,
    width: int,
    part: np.ndarray,
    fresh: np.ndarray,
) -> None:
    """Bring the rows up to date with what a tree now adds."""
    newton = chance.shape[0] > 0
    for i in range(leaf.shape[0]):
        v = leaf[i]
        if newton:
            step = fresh[v, 0] - part[start + v, 0]
            if step != 0.0:
                _shift(i, column, weight[i], step, pull, chance)
        elif width == 1:
            pull[i, column] -= weight[i] * (fresh[v, 0] - part[start + v, 0])
        else:
            for k in range(width):
                pull[i, k] -= weight[i] * (fresh[v, k] - part[start + v, k])
