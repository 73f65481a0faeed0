"""Rows on their way down all trees at once, each tree as far as the features bought so far allow.

A *column* is what can be bought; `asks[v]` is the column split v needs, −1 at a leaf. For row i, `state[i, c]` is 0 if
column c has not been asked for, `THERE` if its value is in X, `ASKED` if it is on its way; `at[i, t]` is the node the
row stands at in tree t, `waits[i, t]` the column asked for there, `gain[i, c]` how much is left open by the trees that
wait for column c, and `least[i]`, `most[i]` are bounds of the sums.
"""

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.forest.routing import category_goes_left

THERE, ASKED = 1, 2
NOTHING, TOO_DEAR, WAITING = -1, -2, -3
"""What `next_column` says instead of a column: no tree is stuck, none that is can be paid for, or all wait."""


@kernel
def leaves_below(
    right: np.ndarray, term: np.ndarray, bits: np.ndarray, low: np.ndarray, high: np.ndarray, settled: np.ndarray
) -> None:
    """Write the least and the largest term of the leaves below each node, and where a tree may go without looking.

    `term` (n_nodes, width) is what a node adds, `bits` the same as integers. `settled[v]` is a leaf below v if all
    leaves below it add the same to the last bit, and v itself otherwise.
    """
    for v in range(right.shape[0] - 1, -1, -1):  # children come before their parents
        settled[v] = v
        if right[v] == -1:
            low[v], high[v] = term[v], term[v]
            continue
        a, b = settled[v + 1], settled[right[v]]
        alike = right[a] == -1 and right[b] == -1
        for k in range(term.shape[1]):
            low[v, k] = min(low[v + 1, k], low[right[v], k])
            high[v, k] = max(high[v + 1, k], high[right[v], k])
            alike = alike and bits[a, k] == bits[b, k]
        if alike:
            settled[v] = a


@kernel
def walk(
    rows: np.ndarray,
    X: np.ndarray,
    state: np.ndarray,
    at: np.ndarray,
    waits: np.ndarray,
    gain: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    right: np.ndarray,
    feature: np.ndarray,
    asks: np.ndarray,
    threshold: np.ndarray,
    default_left: np.ndarray,
    category_row: np.ndarray,
    category_start: np.ndarray,
    category_code: np.ndarray,
    category_left: np.ndarray,
    other_left: np.ndarray,
    settled: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    width: np.ndarray,
    tree_output: np.ndarray,
) -> None:
    """Move each tree of each of the rows down to a leaf, or to a split whose column is not there."""
    categorical = category_row.shape[0] > 0
    for i in rows:
        for tree in range(at.shape[1]):
            column = waits[i, tree]
            if column == -1 or state[i, column] != THERE:
                continue
            first = at[i, tree]
            v = first
            while asks[v] != -1 and state[i, asks[v]] == THERE:
                x = X[i, feature[v]]
                if np.isnan(x):
                    left = default_left[v]
                elif not categorical or category_row[v] == -1:
                    left = x <= threshold[v]
                else:
                    left = category_goes_left(
                        x, category_row[v], category_start, category_code, category_left, other_left
                    )
                v = settled[v + 1 if left else right[v]]
            at[i, tree], waits[i, tree] = v, asks[v]
            gain[i, column] -= width[first]
            if asks[v] != -1:
                gain[i, asks[v]] += width[v]
            output = tree_output[tree]
            for k in range(low.shape[1]):
                to = k if output < 0 else output
                least[i, to] += low[v, k] - low[first, k]
                most[i, to] += high[v, k] - high[first, k]


@kernel
def next_column(
    rows: np.ndarray,
    state: np.ndarray,
    waits: np.ndarray,
    gain: np.ndarray,
    resources: np.ndarray,
    prices: np.ndarray,
    owned: np.ndarray,
    paid: np.ndarray,
    max_cost: float,
    wanted: np.ndarray,
) -> None:
    """Write to `wanted[j]` the column to buy next for row `rows[j]`.

    It is the one that leaves open the most per price, free ones first, and of equal ones the first. `resources`,
    `prices` and `owned` are those of a `PriceTable`.
    """
    n_columns = state.shape[1]
    met = np.full(n_columns, -1, np.int64)
    for j in range(rows.shape[0]):
        i = rows[j]
        best, best_rate, best_free, waiting = NOTHING, -np.inf, False, False
        for tree in range(waits.shape[1]):
            column = waits[i, tree]
            if column == -1 or met[column] == j:
                continue
            met[column] = j
            if state[i, column] == ASKED:
                waiting = True
                continue
            if best == NOTHING:
                best = TOO_DEAR
            price = _price(resources[column], prices[i if prices.shape[0] > 1 else 0], owned[i])
            if paid[i] + price > max_cost:
                continue
            free = price == 0.0
            rate = gain[i, column] if free else gain[i, column] / price
            better = rate > best_rate or (rate == best_rate and column < best)
            if best < 0 or (free and not best_free) or (free == best_free and better):
                best, best_rate, best_free = column, rate, free
        wanted[j] = WAITING if waiting and best < 0 else best


@kernel
def _price(resources: np.ndarray, prices: np.ndarray, owned: np.ndarray) -> float:
    """Return what must be paid for what is not owned yet."""
    total = 0.0
    for resource in resources:
        if resource != -1 and not owned[resource]:
            total += prices[resource]
    return total
