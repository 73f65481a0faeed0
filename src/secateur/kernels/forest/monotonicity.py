"""Find, for every split on a constrained feature, how far the leaves on its two sides are in the wrong order.

Two rows that differ in one feature only are separated at a split on that feature, and above and below it they satisfy
the same conditions on all other features. So a leaf on the left of a split and a leaf on its right must be in order if
their regions have a common value of every other feature. Each leaf in turn restricts the region, and the other side of
every constrained split above it is traversed within this region.
"""

from typing import NamedTuple

import numpy as np

from secateur.kernels._jit import kernel
from secateur.kernels.forest.routing import CategoryLists, category_goes_left


class SplitTests(NamedTuple):
    """The trees of a forest and the tests of their splits.

    Attributes
    ----------
    tree_start, right, parent, feature, default_left
        As in `Forest`.
    last_left : (n_nodes,)
        The largest rank that a numeric split routes left.
    categories : CategoryLists
        The lists of the categorical splits; `row` has the index of a split's list, -1 for a numeric split.
    """

    tree_start: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    feature: np.ndarray
    default_left: np.ndarray
    last_left: np.ndarray
    categories: CategoryLists


class Region(NamedTuple):
    """The values of each feature that satisfy all conditions on the way to a node.

    Attributes
    ----------
    low, high : (n_features,)
        The interval of ranks of a numeric feature; not used for a feature with categorical splits.
    missing : (n_features,)
        Whether a missing value is among them.
    probe_start, probe, probe_rank
        Numbers that the splits on a feature with categorical splits tell apart, one for each class of equally routed
        numbers: `probe[probe_start[f] : probe_start[f + 1]]`; none for a numeric feature.
    violated : (n_probes,)
        The number of conditions that each probe does not satisfy.
    saved_low, saved_high, saved_missing : (n_nodes,)
        What held for the feature of a node's parent before the node was entered.
    """

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    probe_start: np.ndarray
    probe: np.ndarray
    probe_rank: np.ndarray
    violated: np.ndarray
    saved_low: np.ndarray
    saved_high: np.ndarray
    saved_missing: np.ndarray


@kernel
def order_violations(tests: SplitTests, region: Region, sign: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the largest difference between two leaves in the wrong order on the two sides of each split, (n_nodes,).

    It is 0 at leaves, at splits whose sides are in order, and at splits on features of `sign` 0. `region` admits all
    values, and does so again afterwards. A constrained feature must not have categorical splits.
    """
    lowest, highest = _leaf_range(tests.right, value)
    excess = np.zeros(value.shape[0])
    for tree in range(tests.tree_start.shape[0] - 1):
        root = tests.tree_start[tree]
        v, inside = root, True
        # Invariant: `region` holds the conditions on the way to v; `inside` says that some row satisfies them all.
        while v != -1:
            if inside and tests.right[v] == -1:
                _compare_leaf(v, root, tests, region, sign, value, lowest, highest, excess)
            v = _next_node(v, inside, root, tests, region)
            if v != -1:
                inside = _enter(v, tests, region)
    return excess


@kernel
def _leaf_range(right: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of the leaves below each node."""
    lowest, highest = value.copy(), value.copy()
    for v in range(right.shape[0] - 1, -1, -1):
        if right[v] != -1:
            lowest[v] = min(lowest[v + 1], lowest[right[v]])
            highest[v] = max(highest[v + 1], highest[right[v]])
    return lowest, highest


@kernel
def _compare_leaf(
    leaf: int,
    root: int,
    tests: SplitTests,
    region: Region,
    sign: np.ndarray,
    value: np.ndarray,
    lowest: np.ndarray,
    highest: np.ndarray,
    excess: np.ndarray,
) -> None:
    """Compare a leaf, whose region is given, with the leaves on the right of every constrained split it is left of."""
    below = leaf
    while below != root:
        u = tests.parent[below]
        f = tests.feature[u]
        # A leaf that only missing values of the feature reach is not below any other.
        if below == u + 1 and sign[f] != 0 and region.low[f] <= region.high[f]:
            bound = lowest if sign[f] > 0 else highest
            if sign[f] * (value[leaf] - bound[tests.right[u]]) > excess[u]:
                low, high, missing = region.low[f], region.high[f], region.missing[f]
                # On the right of u the feature has the values at u that are routed there; all others keep the leaf's.
                region.low[f], region.high[f] = region.saved_low[below], region.saved_high[below]
                region.missing[f] = False
                excess[u] = _largest_excess(tests.right[u], value[leaf], sign[f], bound, excess[u], tests, region)
                region.low[f], region.high[f], region.missing[f] = low, high, missing
        below = u


@kernel
def _largest_excess(
    first: int, value: float, sign: int, bound: np.ndarray, found: float, tests: SplitTests, region: Region
) -> float:
    """Return the largest of `found` and `sign * (value - leaf value)` over leaves below `first` within the region.

    `bound` is the leaf value below each node for which the difference is largest; at a leaf it is the leaf's value.
    """
    v = first
    inside = _enter(v, tests, region)
    # Invariant: as in `order_violations`, but `inside` also says that a leaf below v may exceed what was found.
    while v != -1:
        if inside and tests.right[v] == -1:
            found = sign * (value - bound[v])
        v = _next_node(v, inside, first, tests, region)
        if v != -1:
            inside = _enter(v, tests, region) and sign * (value - bound[v]) > found
    _leave(first, tests, region)
    return found


@kernel
def _next_node(v: int, inside: bool, root: int, tests: SplitTests, region: Region) -> int:
    """Return the node after v in the preorder of the subtree of `root`, without descendants of v unless `inside`.

    Conditions of nodes that do not contain the next one are removed from the region. -1 follows the last node.
    """
    if inside and tests.right[v] != -1:
        return v + 1
    while v != root:
        _leave(v, tests, region)
        u = tests.parent[v]
        if v == u + 1:
            return tests.right[u]
        v = u
    return -1


@kernel
def _enter(v: int, tests: SplitTests, region: Region) -> bool:
    """Add the condition between v and its parent to the region; return whether some value of the feature is left."""
    u = tests.parent[v]
    f, goes_left = tests.feature[u], v == u + 1
    low, high, missing = region.low[f], region.high[f], region.missing[f]
    region.saved_low[v], region.saved_high[v], region.saved_missing[v] = low, high, missing
    missing = missing and tests.default_left[u] == goes_left
    region.missing[f] = missing
    if region.probe_start[f] < region.probe_start[f + 1]:
        return _exclude_probes(u, goes_left, 1, tests, region) or missing
    if goes_left:
        high = min(high, tests.last_left[u])
    else:
        low = max(low, tests.last_left[u] + 1)
    region.low[f], region.high[f] = low, high
    return low <= high or missing


@kernel
def _leave(v: int, tests: SplitTests, region: Region) -> None:
    """Remove the condition between v and its parent from the region."""
    u = tests.parent[v]
    f = tests.feature[u]
    region.low[f], region.high[f], region.missing[f] = (
        region.saved_low[v],
        region.saved_high[v],
        region.saved_missing[v],
    )
    if region.probe_start[f] < region.probe_start[f + 1]:
        _exclude_probes(u, v == u + 1, -1, tests, region)


@kernel
def _exclude_probes(u: int, goes_left: bool, change: int, tests: SplitTests, region: Region) -> bool:
    """Add `change` to the violations of the probes that split u routes to the other side; return if one has none."""
    some = False
    for i in range(region.probe_start[tests.feature[u]], region.probe_start[tests.feature[u] + 1]):
        if tests.categories.row[u] == -1:
            left = region.probe_rank[i] <= tests.last_left[u]
        else:
            left = category_goes_left(region.probe[i], tests.categories.row[u], tests.categories)
        if left != goes_left:
            region.violated[i] += change
        some = some or region.violated[i] == 0
    return some
