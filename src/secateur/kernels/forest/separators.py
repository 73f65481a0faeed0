"""Compare the values on both sides of splits with monotonic constraints, and move those that are not in order."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def separator(middle: float, in_use: bool, highest_below: float, lowest_above: float, low: float, high: float) -> float:
    """Return the number nearest to `middle` that separates the values on both sides of a split, within [low, high].

    If the split is in use and its values are in order, the result lies between the highest value on the lower side and
    the lowest on the upper side, so that the current values stay feasible.
    """
    if in_use and highest_below <= lowest_above:
        middle = min(max(middle, highest_below), lowest_above)
    return min(max(middle, low), high)


@kernel
def all_in_order(right: np.ndarray, sign: np.ndarray, value: np.ndarray) -> bool:
    """Return whether all nodes on one side of every constrained split have values up to those on the other side.

    Then every pruning with these values respects the constraints. `value` and `sign` are (n_nodes, width).
    """
    n_nodes = value.shape[0]
    low, high = np.empty(n_nodes), np.empty(n_nodes)
    for k in range(value.shape[1]):
        # Reverse preorder: the range of the values of a node and of all nodes below it.
        for u in range(n_nodes - 1, -1, -1):
            low[u] = high[u] = value[u, k]
            if right[u] == -1:
                continue
            a, b = u + 1, right[u]
            if sign[u, k] > 0 and high[a] > low[b]:
                return False
            if sign[u, k] < 0 and high[b] > low[a]:
                return False
            low[u], high[u] = min(low[u], min(low[a], low[b])), max(high[u], max(high[a], high[b]))
    return True


@kernel
def order_values(
    tree_start: np.ndarray,
    right: np.ndarray,
    sign: np.ndarray,
    keep: np.ndarray,
    weight: np.ndarray,
    value: np.ndarray,
) -> None:
    """Clip the values of kept nodes in place so that both sides of every constrained split are in order.

    `value` and `sign` are (n_nodes, width); `sign` is 1 where values on the left must not exceed those on the right.
    A separator halfway between the weighted means of both sides divides the interval of a split that is not in order;
    one between the values of both sides leaves a split in order as it is.
    """
    n_nodes = value.shape[0]
    total, mean = np.empty(n_nodes), np.empty(n_nodes)
    low, high = np.empty(n_nodes), np.empty(n_nodes)
    for k in range(value.shape[1]):
        # Reverse preorder: weight, mean and range of the values of the kept leaves below each kept node.
        for u in range(n_nodes - 1, -1, -1):
            if not keep[u]:
                continue
            if right[u] == -1 or not keep[u + 1]:
                total[u], mean[u], low[u], high[u] = weight[u], value[u, k], value[u, k], value[u, k]
                continue
            a, b = u + 1, right[u]
            total[u] = total[a] + total[b]
            mean[u] = 0.5 * (mean[a] + mean[b])
            if total[u] > 0.0:
                mean[u] = (total[a] * mean[a] + total[b] * mean[b]) / total[u]
            low[u], high[u] = min(low[a], low[b]), max(high[a], high[b])
        for tree in range(tree_start.shape[0] - 1):
            low[tree_start[tree]], high[tree_start[tree]] = -np.inf, np.inf
        # Preorder. Invariant: the bounds of u are final, those of its children still the range of their values.
        for u in range(n_nodes):
            if not keep[u]:
                continue
            value[u, k] = min(max(value[u, k], low[u]), high[u])
            if right[u] == -1 or not keep[u + 1]:
                continue
            below, above = u + 1, right[u]
            if sign[u, k] == 0:
                low[below], high[below] = low[u], high[u]
                low[above], high[above] = low[u], high[u]
                continue
            if sign[u, k] < 0:
                below, above = above, below
            middle = 0.5 * (mean[below] + mean[above])
            middle = separator(middle, True, high[below], low[above], low[u], high[u])
            low[below], high[below] = low[u], middle
            low[above], high[above] = middle, high[u]
