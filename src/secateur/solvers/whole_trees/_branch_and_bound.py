"""The best weighted subset of trees within a node budget, by branch and bound on the Gram matrix of the trees.

The bound is the perspective relaxation (Günlük and Linderoth 2010) in a form in which any vector gives a valid bound,
so that a search that ends early has nothing to take back.
"""

import heapq
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_RIDGE = 1e-6
_PRECISION = 1e-9
_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class TreeGram:
    """What the search knows of the trees; the objective of weights β is square − 2β'm + β'Gβ.

    Attributes
    ----------
    gram : (n_trees, n_trees)
        Positive definite: at least `ridge` in every direction.
    match : (n_trees,)
    square : float
    size : (n_trees,)
        Nodes of each tree.
    ridge : float
    slack : float
        What may be the work of rounding; bounds are lowered by it.
    """

    gram: Floats
    match: Floats
    square: float
    size: NDArray[np.int64]
    ridge: float
    slack: float


@dataclass(frozen=True, eq=False)
class Found:
    """The best subset known for a budget, its objective, and a lower bound on that of every subset within it."""

    chosen: Places
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class Node:
    """All subsets that fit, have the trees `inside` and of the others only some of `open`; none is below the bound.

    `share` is how much of each open tree the relaxation of the node above took.
    """

    bound: float
    inside: Places
    open: Places
    share: Floats
    number: int = 0

    def __lt__(self, other: "Node") -> bool:
        return (self.bound, self.number) < (other.bound, other.number)


class Best:
    """The best subset offered so far; without an offer the empty one."""

    def __init__(self, trees: TreeGram, budget: int) -> None:
        self.trees, self.budget = trees, budget
        self.chosen, self.objective = np.empty(0, np.intp), trees.square

    @property
    def enough(self) -> float:
        """The bound from which on a node cannot hold anything better."""
        return self.objective - self.trees.slack

    def offer(self, *parts: Places) -> None:
        """Take a subset, given in parts, if it fits and is better."""
        chosen = np.concatenate(parts)
        if self.trees.size[chosen].sum() <= self.budget:
            objective = solve(self.trees, chosen)[0]
            if objective < self.objective:
                self.chosen, self.objective = chosen, objective


def pose(gram: Floats, match: Floats, square: float, size: NDArray[np.int64]) -> TreeGram:
    """Return the question, its ridge put in."""
    ridge = max(_RIDGE * float(np.trace(gram)) / max(len(match), 1), 1e-300)
    return TreeGram(gram + ridge * np.eye(len(match)), match, square, size, ridge, _PRECISION * square)


def solve(trees: TreeGram, chosen: Places) -> tuple[float, Floats]:
    """Return the objective of a subset and its weights."""
    match = trees.match[chosen]
    beta = np.asarray(np.linalg.solve(trees.gram[np.ix_(chosen, chosen)], match), np.float64)
    return trees.square - float(beta @ match), beta


def search(trees: TreeGram, budget: int, starts: Iterable[Places], deadline: float) -> Found:
    """Return the best subset found until the deadline (of `time.monotonic`), and what is proved about all others.

    Invariant: a subset that fits is in a node of `queue`, or its objective is at least `best.enough`.
    """
    best = Best(trees, budget)
    for chosen in (*starts, forward(trees, budget, 0.0), forward(trees, budget, 1.0)):
        best.offer(chosen)
    _exchange(trees, best, deadline)
    fits = np.flatnonzero(trees.size <= budget)
    all_of_them = solve(trees, fits)[0] - trees.slack  # a subset is no better than all
    share = np.full(len(fits), budget / max(trees.size[fits].sum(), 1))
    queue, n_nodes = [Node(all_of_them, np.empty(0, np.intp), fits, share)], 1
    while queue and queue[0].bound < best.enough and time.monotonic() < deadline:
        for child in _branch(trees, heapq.heappop(queue), best, deadline):
            heapq.heappush(queue, replace(child, number=n_nodes))
            n_nodes += 1
    bound = min(best.enough, queue[0].bound if queue else np.inf)
    return Found(best.chosen, max(best.objective, 0.0), max(bound, 0.0))


def forward(trees: TreeGram, budget: int, power: float) -> Places:
    """Return a subset by greedy forward selection: each time the tree that gains most per size to the `power`."""
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
    """Offer the best subset with one tree replaced by what then gains most, until no tree is worth replacing."""
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
    """Offer what this node has to the best; return nodes with all of its subsets that may be better still."""
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
    """Return the question that is left for other trees when those inside are in, with the best weights."""
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
    """Return the one or two trees, of at most `left` nodes, with the lowest objective."""
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
    """Return a lower bound for all subsets of at most `left` nodes, and the share and gain of each tree in it.

    Let D be a diagonal with G − D positive semidefinite. As β'(G − D)β ≥ 2β'(G − D)v − v'(G − D)v, a subset S lowers
    the objective, whatever v is, by at most

        v'(G − D)v + Σ_{t in S} gain_t,    gain_t = (m − (G − D)v)_t² / D_t,

    of which the sum is no more than a knapsack gains that may take parts of trees. The v with the best bound solves
    (G − D + D / z) v = m for some shares z, and the best shares for a v are z ~ |v| sqrt(D / size), at most 1, of
    `left` nodes in all. The two are improved in turn, until the bound is `enough` or nearly as good as it gets.
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
        to_come = lowered - float(trees.match @ v)  # by how much the bound may still rise
        if best[0] >= enough or to_come < 0.01 * (enough - bound) or time.monotonic() >= deadline:
            break
        share = _shares(np.abs(v) * np.sqrt(floor / size), size, left)
    return best


def _floor(trees: TreeGram) -> Floats:
    """Return a diagonal D, as large as is easily had, such that gram − D is positive semidefinite.

    It is a multiple of what each tree has that the others together do not.
    """
    original = np.maximum(1 / np.diag(np.linalg.inv(trees.gram)), trees.ridge)
    scaled = trees.gram / np.sqrt(np.outer(original, original))
    least = float(np.linalg.eigvalsh(scaled)[0]) - 1e-13 * float(np.trace(scaled))  # less what rounding may have added
    return least * original if least > 0 else np.full(len(original), trees.ridge / 2)


def _knapsack(gain: Floats, size: Floats, left: float) -> float:
    """Return the most that can be gained with `left` nodes if parts of trees may be taken."""
    order = np.argsort(-gain / size)
    before = np.cumsum(size[order]) - size[order]
    return float(np.clip((left - before) / size[order], 0.0, 1.0) @ gain[order])


def _shares(wish: Floats, size: Floats, left: float) -> Floats:
    """Return min(1, c · wish) with the c for which Σ size · share is `left`; all trees together are larger."""
    order = np.argsort(-wish)
    size, falling = size[order], wish[order]
    before = np.cumsum(size) - size  # nodes of the trees that are taken whole, if tree k is the first that is not
    factor = (left - before) / np.maximum(np.cumsum((size * falling)[::-1])[::-1], 1e-300)
    first = int(np.argmax(factor * falling <= 1))
    return np.minimum(1.0, factor[first] * wish)


def _fill(share: Floats, size: NDArray[np.int64], left: int) -> Places:
    """Return the trees of the largest shares that fit, one after the other."""
    taken = []
    for tree in np.argsort(-share, kind="stable"):
        if size[tree] <= left:
            taken.append(tree)
            left -= int(size[tree])
    return np.array(taken, np.intp)
