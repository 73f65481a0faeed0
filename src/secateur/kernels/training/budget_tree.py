"""Grow a decision tree greedily by the least price of progress (Nan, Wang, Saligrama 2015).

The impurity of class counts n is `F(n) = Σ_{i≠j} [[n_i − α]₊ [n_j − α]₊ − α²]₊` (threshold-Pairs). A split of a node S
by a feature of price c has the price of progress `max over both sides of c / (F(S) − F(side))`. When a row of class i
moves from the right side to the left, only terms with class i change, so both impurities are updated in O(classes).

Every column is sorted once, before all trees. A split partitions all columns stably, so the rows of a node stay sorted:
`order[k, start:end]` are the rows of a node sorted by feature k, missing values last, and `values[k, start:end]` their
values.

References
----------
Nan, Wang, Saligrama (2015): Feature-Budgeted Random Forest. ICML, pp. 1983-1991.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secateur.kernels._jit import kernel

_ROUNDING = 1e-12


class SortedRows(NamedTuple):
    """The rows to grow a tree on.

    Attributes
    ----------
    order, values : (n_features, n_drawn)
        The rows drawn, sorted by each feature, missing values last, and their values.
    label, weight : (n_rows,)
        Class and weight of all rows.
    """

    order: NDArray[np.int32]
    values: NDArray[np.float32]
    label: NDArray[np.int32]
    weight: NDArray[np.float64]


class FeaturePrices(NamedTuple):
    """The prices of features.

    Attributes
    ----------
    resources : (n_features, 2)
        The resources a feature needs, −1 for none.
    prices : (n_resources,)
    reuse : float
        The fraction of its price that a resource costs below the split that bought it.
    """

    resources: NDArray[np.int32]
    prices: NDArray[np.float64]
    reuse: float


class Growth(NamedTuple):
    """The parameters of growing.

    Attributes
    ----------
    alpha : float
        The threshold of the impurity.
    max_depth, min_leaf : int
        The largest depth of the tree, and the smallest number of rows in a leaf.
    n_candidates : int
        The number of non-constant features to draw at a node; more are drawn until one makes progress.
    """

    alpha: float
    max_depth: int
    min_leaf: int
    n_candidates: int


@kernel
def threshold_pairs(counts: np.ndarray, alpha: float) -> float:
    """Return the threshold-Pairs impurity F of class counts."""
    total = 0.0
    for i in range(len(counts)):
        a = max(counts[i] - alpha, 0.0)
        for j in range(i):
            total += max(a * max(counts[j] - alpha, 0.0) - alpha * alpha, 0.0)
    return 2.0 * total


@kernel
def drawn_in_order(columns: np.ndarray, order: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of positive weight in each sorted column, and their values, both (n_features, n_drawn)."""
    n_drawn = np.count_nonzero(weight > 0.0)
    rows = np.empty((len(order), n_drawn), np.int32)
    values = np.empty((len(order), n_drawn), np.float32)
    for k in range(len(order)):
        position = 0
        for row in order[k]:
            if weight[row] > 0.0:
                rows[k, position], values[k, position] = row, columns[k, row]
                position += 1
    return rows, values


@kernel
def grow_budget_tree(
    rows: SortedRows, n_classes: int, prices: FeaturePrices, growth: Growth, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grow a tree in preorder; `order` and `values` of the rows are overwritten.

    Returns
    -------
    right, feature : (n_nodes,) int32, −1 at leaves
    threshold : (n_nodes,)
    missing_left : (n_nodes,) uint8
    n_rows : (n_nodes,) int64
    counts : (n_nodes, n_classes)
    """
    order, values, label, weight = rows
    n_features, n_drawn = order.shape
    capacity = 2 * n_drawn - 1
    right = np.full(capacity, -1, np.int32)
    parent = np.full(capacity, -1, np.int32)
    feature = np.full(capacity, -1, np.int32)
    threshold = np.full(capacity, -2.0)
    missing_left = np.zeros(capacity, np.uint8)
    n_rows = np.empty(capacity, np.int64)
    counts = np.empty((capacity, n_classes))

    # A pending node: the range of its rows, its depth, its parent, and whether it is a right child.
    pending = np.empty((n_drawn + 1, 5), np.int64)
    pending_counts = np.empty((n_drawn + 1, n_classes))
    _push(pending[0], 0, n_drawn, 0, -1, 0)
    goes_left = np.ones(len(label), np.uint8)
    _count_sides(order[0], goes_left, label, weight, pending_counts[0], pending_counts[1])
    n_pending, n_nodes = 1, 0

    row_buffer, value_buffer = np.empty(n_drawn, np.int32), np.empty(n_drawn, np.float32)
    left_counts = np.empty(n_classes)
    bought = np.zeros(len(prices.prices), np.bool_)
    candidates = np.arange(n_features)
    random = np.array([2 * seed + 1], np.uint64)
    # Invariant: the pending nodes have disjoint ranges of rows. Within the range of a node that may be split, rows are
    # sorted by every feature. The left child is on top of the stack, so nodes are numbered in preorder.
    while n_pending:
        n_pending -= 1
        start, end, depth, parent_node, is_right = pending[n_pending]
        n, node = end - start, n_nodes
        n_nodes += 1
        parent[node], n_rows[node] = parent_node, n
        counts[node] = pending_counts[n_pending]
        if is_right:
            right[parent_node] = node
        if _is_final(counts[node], n, depth, growth):
            continue
        _mark_bought(node, parent, feature, prices.resources, bought, True)
        k, cut, nan_left = best_split(
            rows, start, end, counts[node], prices, bought, growth, candidates, random, left_counts
        )
        _mark_bought(node, parent, feature, prices.resources, bought, False)
        if k == -1:
            continue
        column = values[k, start:end]
        n_present = _n_present(column)
        n_left = cut + n - n_present if nan_left else cut
        feature[node] = k
        threshold[node] = _midpoint(column, cut, n_present)
        missing_left[node] = nan_left if n_present < n else 2 * n_left > n
        for i in range(n):
            goes_left[order[k, start + i]] = i < cut or (nan_left and i >= n_present)
        left, right_ = pending_counts[n_pending + 1], pending_counts[n_pending]
        _count_sides(order[k, start:end], goes_left, label, weight, left, right_)
        _push(pending[n_pending], start + n_left, end, depth + 1, node, 1)
        _push(pending[n_pending + 1], start, start + n_left, depth + 1, node, 0)
        n_pending += 2
        # The columns need not be partitioned if both children are leaves.
        if not (_is_final(left, n_left, depth + 1, growth) and _is_final(right_, n - n_left, depth + 1, growth)):
            for j in range(n_features):
                _partition(order[j, start:end], values[j, start:end], goes_left, row_buffer, value_buffer)
    grown = slice(0, n_nodes)
    return (
        right[grown].copy(), feature[grown].copy(), threshold[grown].copy(),
        missing_left[grown].copy(), n_rows[grown].copy(), counts[grown].copy(),
    )  # fmt: skip


@kernel
def best_split(
    rows: SortedRows,
    start: int,
    end: int,
    counts: np.ndarray,
    prices: FeaturePrices,
    bought: np.ndarray,
    growth: Growth,
    candidates: np.ndarray,
    random: np.ndarray,
    left: np.ndarray,
) -> tuple[int, int, bool]:
    """Return the split with the least price of progress: its feature, its cut, and whether missing values go left.

    The cut is the number of present rows that go left. The feature is −1 if no split makes progress on both sides.
    Ties go to the larger progress (and so do splits that cost nothing), then to the lower feature, to missing values
    on the right, and to the lower threshold.
    """
    order, values, label, weight = rows
    alpha, min_leaf, n_candidates = growth.alpha, growth.min_leaf, growth.n_candidates
    n_features, n = len(order), end - start
    impurity = threshold_pairs(counts, alpha)
    best, cut, nan_left, best_ratio, best_progress = -1, 0, False, np.inf, 0.0
    n_seen = 0
    for i in range(n_features):
        if n_candidates < n_features:
            if n_seen >= n_candidates and best != -1:
                break
            j = i + _next_random(random) % (n_features - i)
            candidates[i], candidates[j] = candidates[j], candidates[i]
        k = candidates[i]
        if values[k, start] == values[k, end - 1] or np.isnan(values[k, start]):
            continue
        n_seen += 1
        column, sorted_rows = values[k, start:end], order[k, start:end]
        n_present = _n_present(column)
        price = _price(k, prices, bought)
        for side in range(1 if n_present == n else 2):
            if len(counts) == 2:
                n_left, worst = _scan_two(
                    column, sorted_rows, n_present, side == 1, label, weight, counts, alpha, min_leaf
                )
            else:
                n_left, worst = _scan(
                    column, sorted_rows, n_present, side == 1, label, weight, counts, alpha, min_leaf, impurity, left
                )
            progress = impurity - worst
            if n_left == 0 or progress <= _ROUNDING * impurity:
                continue
            ratio = price / progress
            tie = ratio == best_ratio and (progress > best_progress or (progress == best_progress and k < best))
            if ratio < best_ratio or tie:
                best, cut, nan_left, best_ratio, best_progress = k, n_left, side == 1, ratio, progress
    return best, cut, nan_left


@kernel
def _scan(
    values: np.ndarray,
    rows: np.ndarray,
    n_present: int,
    nan_left: bool,
    label: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
    alpha: float,
    min_leaf: int,
    impurity: float,
    left: np.ndarray,
) -> tuple[int, float]:
    """Return the number of present rows before the best cut, 0 for none, and the impurity of the worse side there.

    `left` is a buffer for the class counts on the left; those on the right are `counts` − `left`.
    """
    left[:] = 0.0
    left_impurity, right_impurity, n_before = 0.0, impurity, 0
    if nan_left:
        for row in rows[n_present:]:
            left[label[row]] += weight[row]
        left_impurity, right_impurity = threshold_pairs(left, alpha), threshold_pairs(counts - left, alpha)
        n_before = len(rows) - n_present
    left_total, total, floor = left.sum(), counts.sum(), alpha * alpha
    cut, best = 0, np.inf
    for i in range(_last_cut(len(rows), n_present, n_before, min_leaf)):
        # Invariant: left_impurity = F(left), right_impurity = F(counts - left), left_total = Σ left.
        c, w = label[rows[i]], weight[rows[i]]
        before, after = left[c], left[c] + w
        if alpha == 0.0:
            left_impurity += 2.0 * w * (left_total - before)
            right_impurity -= 2.0 * w * (total - left_total - (counts[c] - before))
        else:
            a, b = max(before - alpha, 0.0), max(after - alpha, 0.0)
            p, q = max(counts[c] - before - alpha, 0.0), max(counts[c] - after - alpha, 0.0)
            for j in range(len(counts)):
                if j != c:
                    x, y = max(left[j] - alpha, 0.0), max(counts[j] - left[j] - alpha, 0.0)
                    left_impurity += 2.0 * (max(b * x - floor, 0.0) - max(a * x - floor, 0.0))
                    right_impurity += 2.0 * (max(q * y - floor, 0.0) - max(p * y - floor, 0.0))
        left[c] = after
        left_total += w
        if n_before + i + 1 < min_leaf or (i + 1 < n_present and values[i + 1] == values[i]):
            continue
        worst = max(left_impurity, right_impurity, 0.0)
        if worst < best:
            cut, best = i + 1, worst
    return cut, best


@kernel
def _scan_two(
    values: np.ndarray,
    rows: np.ndarray,
    n_present: int,
    nan_left: bool,
    label: np.ndarray,
    weight: np.ndarray,
    counts: np.ndarray,
    alpha: float,
    min_leaf: int,
) -> tuple[int, float]:
    """Return the same as `_scan` for two classes.

    F is a single product there, so only the counts need updating.
    """
    first, second, n_before = 0.0, 0.0, 0
    if nan_left:
        n_before = len(rows) - n_present
        for row in rows[n_present:]:
            first += weight[row] * (1 - label[row])
            second += weight[row] * label[row]
    cut, best = 0, np.inf
    for i in range(_last_cut(len(rows), n_present, n_before, min_leaf)):
        # Invariant: first and second are the class counts on the left of the cut before row i.
        w, c = weight[rows[i]], label[rows[i]]
        first += w * (1 - c)
        second += w * c
        if n_before + i + 1 < min_leaf or (i + 1 < n_present and values[i + 1] == values[i]):
            continue
        left = max(first - alpha, 0.0) * max(second - alpha, 0.0)
        right = max(counts[0] - first - alpha, 0.0) * max(counts[1] - second - alpha, 0.0)
        worst = max(left - alpha * alpha, right - alpha * alpha, 0.0)
        if worst < best:
            cut, best = i + 1, worst
    return cut, 2.0 * best


@kernel
def _last_cut(n: int, n_present: int, n_before: int, min_leaf: int) -> int:
    """Return the largest number of present rows that may go left; all of them only if missing ones go right."""
    last = n_present if n_present < n and n_before == 0 else n_present - 1
    return min(last, n - min_leaf - n_before)


@kernel
def _is_final(counts: np.ndarray, n: int, depth: int, growth: Growth) -> bool:
    """Return whether a node must be a leaf: too few rows, maximum depth, or zero impurity."""
    return n < 2 * growth.min_leaf or depth >= growth.max_depth or threshold_pairs(counts, growth.alpha) <= 0.0


@kernel
def _price(k: int, prices: FeaturePrices, bought: np.ndarray) -> float:
    """Return the price of feature k, with resources bought by an ancestor at the fraction `reuse`."""
    price = 0.0
    for resource in prices.resources[k]:
        if resource != -1:
            price += prices.prices[resource] * (prices.reuse if bought[resource] else 1.0)
    return price


@kernel
def _mark_bought(
    node: int, parent: np.ndarray, feature: np.ndarray, resources: np.ndarray, bought: np.ndarray, mark: bool
) -> None:
    """Mark, or unmark, the resources bought by the ancestors of a node."""
    ancestor = parent[node]
    while ancestor != -1:
        for resource in resources[feature[ancestor]]:
            if resource != -1:
                bought[resource] = mark
        ancestor = parent[ancestor]


@kernel
def _n_present(values: np.ndarray) -> int:
    """Return the number of rows with a value, by bisection; missing values are last."""
    if not np.isnan(values[-1]):
        return len(values)
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if np.isnan(values[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _midpoint(values: np.ndarray, cut: int, n_present: int) -> float:
    """Return the midpoint of two float32 values, exact in float64, or infinity for a cut above all values."""
    if cut == n_present:
        return np.inf
    return np.float64(values[cut - 1]) / 2.0 + np.float64(values[cut]) / 2.0


@kernel
def _push(node: np.ndarray, start: int, end: int, depth: int, parent: int, is_right: int) -> None:
    """Write a pending node."""
    node[0], node[1], node[2], node[3], node[4] = start, end, depth, parent, is_right


@kernel
def _count_sides(
    rows: np.ndarray,
    goes_left: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
) -> None:
    """Write the class counts of the rows that go left and of those that go right."""
    left[:] = 0.0
    right[:] = 0.0
    for row in rows:
        if goes_left[row]:
            left[label[row]] += weight[row]
        else:
            right[label[row]] += weight[row]


@kernel
def _partition(
    rows: np.ndarray, values: np.ndarray, goes_left: np.ndarray, row_buffer: np.ndarray, value_buffer: np.ndarray
) -> None:
    """Partition a column stably: move the rows that go left to the front, in order on both sides."""
    n_left, n_right = 0, 0
    for i in range(len(rows)):
        row, value = rows[i], values[i]
        side = int(goes_left[row])
        # Invariant: n_left ≤ i, so nothing unread is overwritten. Both writes are unconditional; `side` advances one.
        rows[n_left], values[n_left] = row, value
        row_buffer[n_right], value_buffer[n_right] = row, value
        n_left += side
        n_right += 1 - side
    for i in range(n_right):
        rows[n_left + i], values[n_left + i] = row_buffer[i], value_buffer[i]


@kernel
def _next_random(random: np.ndarray) -> int:
    """Return the next integer of an xorshift generator, below 2^31."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return int(x >> np.uint64(33))
