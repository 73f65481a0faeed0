"""Find the best weighted subset of trees within a node budget, by branch and bound on the Gram matrix of the trees.

The lower bound is the perspective relaxation (Günlük and Linderoth 2010), written so that any vector gives a valid
bound. A search stopped early therefore still returns a certified bound.

References
----------
Günlük and Linderoth (2010), Perspective reformulations of mixed integer nonlinear programs with indicator variables,
Mathematical Programming.
"""

import heapq
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

# Ridge relative to the mean diagonal of the Gram matrix; it makes the weights unique.
_RIDGE = 1e-6
# Tolerance for rounding errors in bounds, relative to the squared error without trees.
_PRECISION = 1e-9
# Maximum number of alternating updates per relaxation.
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class TreeGram:
    """The quadratic objective of tree weights β, square − 2β'm + β'Gβ, and the sizes of the trees.

    Attributes
    ----------
    gram : (n_trees, n_trees)
        G, positive definite: its smallest eigenvalue is at least `ridge`.
    match : (n_trees,)
        m, the inner products of the trees with the target.
    square : float
        The objective of β = 0.
    size : (n_trees,)
        Number of nodes of each tree.
    ridge : float
    slack : float
        Allowance for rounding errors; bounds are lowered by it.
    """

    gram: Floats
    match: Floats
    square: float
    size: NDArray[np.int64]
    ridge: float
    slack: float


@dataclass(frozen=True, eq=False)
class Found:
    """The best subset found for a budget, its objective, and a lower bound on the objective of all feasible subsets."""

    chosen: Places
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the search tree: the feasible subsets that contain `inside` and otherwise only trees of `open`.

    `bound` is a lower bound on their objectives. `share` is the fraction of each open tree in the relaxation of the
    parent node.
    """

    bound: float
    inside: Places
    open: Places
    share: Floats
    number: int = 0

    def __lt__(self, other: "Node") -> bool:
        return (self.bound, self.number) < (other.bound, other.number)


class Best:
    """The incumbent: the best feasible subset so far, initially the empty one."""

    def __init__(self, trees: TreeGram, budget: int) -> None:
        self.trees, self.budget = trees, budget
        self.chosen, self.objective = np.empty(0, np.intp), trees.square

    @property
    def enough(self) -> float:
        """The bound at which a node can be discarded, as it cannot improve on the incumbent."""
        return self.objective - self.trees.slack

    def offer(self, *parts: Places) -> None:
        """Replace the incumbent by the union of `parts` if that is feasible and better."""
        chosen = np.concatenate(parts)
        if self.trees.size[chosen].sum() <= self.budget:
            objective = solve(self.trees, chosen)[0]
            if objective < self.objective:
                self.chosen, self.objective = chosen, objective


def pose(gram: Floats, match: Floats, square: float, size: NDArray[np.int64]) -> TreeGram:
    """Return the problem, with the ridge added to the Gram matrix."""
    ridge = max(_RIDGE * float(np.trace(gram)) / max(len(match), 1), 1e-300)
    return TreeGram(gram + ridge * np.eye(len(match)), match, square, size, ridge, _PRECISION * square)


def solve(trees: TreeGram, chosen: Places) -> tuple[float, Floats]:
    """Return the objective of a subset of trees and its optimal weights."""
    match = trees.match[chosen]
    beta = np.asarray(np.linalg.solve(trees.gram[np.ix_(chosen, chosen)], match), np.float64)
    return trees.square - float(beta @ match), beta


def search(trees: TreeGram, budget: int, starts: Iterable[Places], deadline: float) -> Found:
    """Return the best subset found before the deadline (of `time.monotonic`), and a certified lower bound.

    The search is best first.

    Loop invariant: every feasible subset is in a node of `queue`, or its objective is at least `best.enough`.
    """
    best = Best(trees, budget)
    for chosen in (*starts, forward(trees, budget, 0.0), forward(trees, budget, 1.0)):
        best.offer(chosen)
    _exchange(trees, best, deadline)
    fits = np.flatnonzero(trees.size <= budget)
    # No subset has a lower objective than all trees together.
    all_of_them = solve(trees, fits)[0] - trees.slack
    share = np.full(len(fits), budget / max(trees.size[fits].sum(), 1))
    queue, n_nodes = [Node(all_of_them, np.empty(0, np.intp), fits, share)], 1
    while queue and queue[0].bound < best.enough and time.monotonic() < deadline:
        for child in _branch(trees, heapq.heappop(queue), best, deadline):
            heapq.heappush(queue, replace(child, number=n_nodes))
            n_nodes += 1
    bound = min(best.enough, queue[0].bound if queue else np.inf)
    return Found(best.chosen, max(best.objective, 0.0), max(bound, 0.0))


def forward(trees: TreeGram, budget: int, power: float) -> Places:
    """Return a subset by greedy forward selection, each time of the tree with the largest gain / size**power.

    Loop invariant: `gram` and `match` are those of the trees after projecting out the trees chosen so far.
    """
    gram, match, left = trees.gram.copy(), trees.match.copy(), budget
    chosen: list[int] = []
    open_ = trees.size <= left
    while open_.any():
        gain = match**2 / np.maximum(np.diag(gram), trees.ridge) / trees.size**power
        tree = int(np.where(open_, gain, -1.0).argmax())
        chosen.append(tree)
        left -= int(trees.size[tree])
        open_[tree] = False
        open_ &= trees.size <= left
        column = gram[tree] / max(gram[tree, tree], trees.ridge)
        match = match - column * match[tree]
        gram = gram - np.outer(column, gram[tree])
    return np.array(chosen, np.intp)


def _exchange(trees: TreeGram, best: Best, deadline: float) -> None:
    """Improve the incumbent by exchanges: replace one tree by a greedy selection, until no replacement helps."""
    tried: set[int] = set()
    while len(tried) < len(best.chosen) and time.monotonic() < deadline:
        tree = next(int(tree) for tree in best.chosen if int(tree) not in tried)
        tried.add(tree)
        kept = best.chosen[best.chosen != tree]
        others = np.setdiff1d(np.arange(len(trees.match)), best.chosen)
        before, left = best.objective, best.budget - int(trees.size[kept].sum())
        best.offer(kept, others[forward(_without(trees, kept, others), left, 0.0)])
        if best.objective < before:
            tried = {tree for tree in tried if tree in best.chosen}


def _branch(trees: TreeGram, node: Node, best: Best, deadline: float) -> list[Node]:
    """Offer subsets of this node to the incumbent; return child nodes that cover all subsets that may improve on it.

    A node is solved directly if all open trees fit or no three of them do. Otherwise it branches on the tree with the
    most fractional share, weighted by its gain.
    """
    left = best.budget - int(trees.size[node.inside].sum())
    fits = trees.size[node.open] <= left
    open_, share = node.open[fits], node.share[fits]
    size = trees.size[open_]
    if size.sum() <= left:
        best.offer(node.inside, open_)
        return []
    rest = _without(trees, node.inside, open_)
    if np.sort(size)[:3].sum() > left:
        best.offer(node.inside, open_[_best_two(rest, left)])
        return []
    bound, share, gain = relax(rest, left, share, best.enough, deadline)
    bound = max(bound, node.bound)
    best.offer(node.inside, open_[_fill(share, size, left)])
    if bound >= best.enough:
        return []
    tree = int((share * (1 - share) * gain).argmax())
    open_, tried, share = np.delete(open_, tree), open_[[tree]], np.delete(share, tree)
    return [Node(bound, np.append(node.inside, tried), open_, share), Node(bound, node.inside, open_, share)]


def _without(trees: TreeGram, inside: Places, others: Places) -> TreeGram:
    """Return the problem of the other trees with the weights of those inside eliminated (a Schur complement)."""
    across = trees.gram[np.ix_(inside, others)]
    solved = np.linalg.solve(trees.gram[np.ix_(inside, inside)], np.column_stack([across, trees.match[inside]]))
    return replace(
        trees,
        gram=trees.gram[np.ix_(others, others)] - across.T @ solved[:, :-1],
        match=trees.match[others] - across.T @ solved[:, -1],
        square=trees.square - float(trees.match[inside] @ solved[:, -1]),
        size=trees.size[others],
    )


def _best_two(trees: TreeGram, left: int) -> Places:
    """Return the one or two trees of at most `left` nodes in all with the lowest objective, by enumeration."""
    original = np.diag(trees.gram)
    cross = np.outer(trees.match**2, original)
    gain = cross + cross.T - 2 * np.outer(trees.match, trees.match) * trees.gram
    volume = np.outer(original, original) - trees.gram**2
    size = trees.size[:, None] + trees.size
    for matrix, alone in ((gain, trees.match**2), (volume, original), (size, trees.size)):
        np.fill_diagonal(matrix, alone)
    gain = np.where(size <= left, gain / np.maximum(volume, 1e-300), -1.0)
    return np.unique(np.array(np.unravel_index(gain.argmax(), gain.shape)))


def relax(trees: TreeGram, left: int, share: Floats, enough: float, deadline: float) -> tuple[float, Floats, Floats]:
    """Return a lower bound on the objective of all subsets of at most `left` nodes, with each tree's share and gain.

    Let D be a diagonal with G − D positive semidefinite. As β'(G − D)β ≥ 2β'(G − D)v − v'(G − D)v, a subset S lowers
    the objective, whatever v is, by at most

        v'(G − D)v + Σ_{t in S} gain_t,    gain_t = (m − (G − D)v)_t² / D_t,

    whose sum is at most the optimum of the fractional knapsack problem. The v with the best bound solves
    (G − D + D / z) v = m for some shares z. The best shares for a given v are proportional to |v| sqrt(D / size),
    clipped at 1, and use `left` nodes in all. The two are updated alternately, until the bound reaches `enough` or can
    hardly improve.
    """
    floor, size = _floor(trees), trees.size.astype(np.float64)
    rest = trees.gram - np.diag(floor)
    best = (-np.inf, share, np.zeros(len(size)))
    for _ in range(_ROUNDS):
        share = np.maximum(share, 1e-8)
        v = np.linalg.solve(rest + np.diag(floor / share), trees.match)
        along = rest @ v
        gain = (trees.match - along) ** 2 / floor
        lowered = float(v @ along) + _knapsack(gain, size, left)
        bound = trees.square - lowered - trees.slack
        if bound > best[0]:
            best = (bound, share, gain)
        # Upper bound on the further improvement of the bound.
        to_come = lowered - float(trees.match @ v)
        if best[0] >= enough or to_come < 0.01 * (enough - bound) or time.monotonic() >= deadline:
            break
        share = _shares(np.abs(v) * np.sqrt(floor / size), size, left)
    return best


def _floor(trees: TreeGram) -> Floats:
    """Return a large diagonal D, (n_trees,), such that gram − D is positive semidefinite.

    D is a multiple of 1 / diag(G⁻¹), the squared norm of each tree's residual after projection on the other trees.
    """
    original = np.maximum(1 / np.diag(np.linalg.inv(trees.gram)), trees.ridge)
    scaled = trees.gram / np.sqrt(np.outer(original, original))
    # Lower the smallest eigenvalue by the rounding error, so that gram − D stays positive semidefinite.
    least = float(np.linalg.eigvalsh(scaled)[0]) - 1e-13 * float(np.trace(scaled))
    return least * original if least > 0 else np.full(len(original), trees.ridge / 2)


def _knapsack(gain: Floats, size: Floats, left: float) -> float:
    """Return the optimum of the fractional knapsack problem with capacity `left`."""
    order = np.argsort(-gain / size)
    before = np.cumsum(size[order]) - size[order]
    return float(np.clip((left - before) / size[order], 0.0, 1.0) @ gain[order])


def _shares(wish: Floats, size: Floats, left: float) -> Floats:
    """Return share = min(1, c · wish) with c such that Σ size · share = left. Requires Σ size > left."""
    order = np.argsort(-wish)
    size, falling = size[order], wish[order]
    # before[k]: nodes of the trees with share 1, if tree k is the first with a smaller share.
    before = np.cumsum(size) - size
    factor = (left - before) / np.maximum(np.cumsum((size * falling)[::-1])[::-1], 1e-300)
    first = int(np.argmax(factor * falling <= 1))
    return np.minimum(1.0, factor[first] * wish)


def _fill(share: Floats, size: NDArray[np.int64], left: int) -> Places:
    """Return a feasible subset by rounding: take trees by decreasing share as long as they fit."""
    taken = []
    for tree in np.argsort(-share, kind="stable"):
        if size[tree] <= left:
            taken.append(tree)
            left -= int(size[tree])
    return np.array(taken, np.intp)
