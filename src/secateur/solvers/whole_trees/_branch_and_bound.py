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
Indices = NDArray[np.intp]

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
class SubsetSolution:
    """The best subset found for a budget, its objective, and a lower bound on the objective of all feasible subsets."""

    chosen: Indices
    objective: float
    bound: float


@dataclass(frozen=True, eq=False)
class Node:
    """A node of the search tree: the feasible subsets that contain `inside` and otherwise only trees of `open`.

    `bound` is a lower bound on their objectives. `fraction` is the fraction of each open tree in the relaxation of the
    parent node.
    """

    bound: float
    inside: Indices
    open: Indices
    fraction: Floats
    number: int = 0

    def __lt__(self, other: "Node") -> bool:
        return (self.bound, self.number) < (other.bound, other.number)


class Incumbent:
    """The incumbent: the best feasible subset so far, initially the empty one."""

    def __init__(self, trees: TreeGram, budget: int) -> None:
        self.trees, self.budget = trees, budget
        self.chosen, self.objective = np.empty(0, np.intp), trees.square

    @property
    def cutoff(self) -> float:
        """The bound at which a node can be discarded, as it cannot improve on the incumbent."""
        return self.objective - self.trees.slack

    def offer(self, *parts: Indices) -> None:
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


def solve(trees: TreeGram, chosen: Indices) -> tuple[float, Floats]:
    """Return the objective of a subset of trees and its optimal weights."""
    match = trees.match[chosen]
    beta = np.asarray(np.linalg.solve(trees.gram[np.ix_(chosen, chosen)], match), np.float64)
    return trees.square - float(beta @ match), beta


def search(trees: TreeGram, budget: int, starts: Iterable[Indices], deadline: float) -> SubsetSolution:
    """Return the best subset found before the deadline (of `time.monotonic`), and a certified lower bound.

    The search is best first.

    Loop invariant: every feasible subset is in a node of `queue`, or its objective is at least `incumbent.cutoff`.
    """
    incumbent = Incumbent(trees, budget)
    for chosen in (*starts, forward(trees, budget, 0.0), forward(trees, budget, 1.0)):
        incumbent.offer(chosen)
    exchange(trees, incumbent, deadline)
    fits = np.flatnonzero(trees.size <= budget)
    # No subset has a lower objective than all trees together.
    full_bound = solve(trees, fits)[0] - trees.slack
    fraction = np.full(len(fits), budget / max(trees.size[fits].sum(), 1))
    queue, n_nodes = [Node(full_bound, np.empty(0, np.intp), fits, fraction)], 1
    while queue and queue[0].bound < incumbent.cutoff and time.monotonic() < deadline:
        for child in _branch(trees, heapq.heappop(queue), incumbent, deadline):
            heapq.heappush(queue, replace(child, number=n_nodes))
            n_nodes += 1
    bound = min(incumbent.cutoff, queue[0].bound if queue else np.inf)
    return SubsetSolution(incumbent.chosen, max(incumbent.objective, 0.0), max(bound, 0.0))


def forward(trees: TreeGram, budget: int, power: float) -> Indices:
    """Return a subset by greedy forward selection, each time of the tree with the largest gain / size**power.

    Loop invariant: `gram` and `match` are those of the trees after projecting out the trees chosen so far.
    """
    gram, match, capacity = trees.gram.copy(), trees.match.copy(), budget
    chosen: list[int] = []
    candidates = trees.size <= capacity
    while candidates.any():
        gain = match**2 / np.maximum(np.diag(gram), trees.ridge) / trees.size**power
        tree = int(np.where(candidates, gain, -1.0).argmax())
        chosen.append(tree)
        capacity -= int(trees.size[tree])
        candidates[tree] = False
        candidates &= trees.size <= capacity
        column = gram[tree] / max(gram[tree, tree], trees.ridge)
        match = match - column * match[tree]
        gram = gram - np.outer(column, gram[tree])
    return np.array(chosen, np.intp)


def exchange(trees: TreeGram, incumbent: Incumbent, deadline: float) -> None:
    """Improve the incumbent by exchanges: replace one tree by a greedy selection, until no replacement helps."""
    exchanged: set[int] = set()
    while len(exchanged) < len(incumbent.chosen) and time.monotonic() < deadline:
        tree = next(int(tree) for tree in incumbent.chosen if int(tree) not in exchanged)
        exchanged.add(tree)
        kept = incumbent.chosen[incumbent.chosen != tree]
        others = np.setdiff1d(np.arange(len(trees.match)), incumbent.chosen)
        before, capacity = incumbent.objective, incumbent.budget - int(trees.size[kept].sum())
        incumbent.offer(kept, others[forward(_without(trees, kept, others), capacity, 0.0)])
        if incumbent.objective < before:
            exchanged = {tree for tree in exchanged if tree in incumbent.chosen}


def _branch(trees: TreeGram, node: Node, incumbent: Incumbent, deadline: float) -> list[Node]:
    """Offer subsets of this node to the incumbent; return child nodes that cover all subsets that may improve on it.

    A node is solved directly if all open trees fit or no three of them do. Otherwise it branches on the tree with the
    most fractional value, weighted by its gain.
    """
    capacity = incumbent.budget - int(trees.size[node.inside].sum())
    fits = trees.size[node.open] <= capacity
    candidates, fraction = node.open[fits], node.fraction[fits]
    size = trees.size[candidates]
    if size.sum() <= capacity:
        incumbent.offer(node.inside, candidates)
        return []
    rest = _without(trees, node.inside, candidates)
    if np.sort(size)[:3].sum() > capacity:
        incumbent.offer(node.inside, candidates[_best_two(rest, capacity)])
        return []
    bound, fraction, gain = relax(rest, capacity, fraction, incumbent.cutoff, deadline)
    bound = max(bound, node.bound)
    incumbent.offer(node.inside, candidates[_round_down(fraction, size, capacity)])
    if bound >= incumbent.cutoff:
        return []
    tree = int((fraction * (1 - fraction) * gain).argmax())
    candidates, chosen, fraction = np.delete(candidates, tree), candidates[[tree]], np.delete(fraction, tree)
    return [
        Node(bound, np.append(node.inside, chosen), candidates, fraction),
        Node(bound, node.inside, candidates, fraction),
    ]


def _without(trees: TreeGram, inside: Indices, others: Indices) -> TreeGram:
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


def _best_two(trees: TreeGram, capacity: int) -> Indices:
    """Return the one or two trees of at most `capacity` nodes in all with the lowest objective, by enumeration."""
    square_norm = np.diag(trees.gram)
    cross = np.outer(trees.match**2, square_norm)
    gain = cross + cross.T - 2 * np.outer(trees.match, trees.match) * trees.gram
    volume = np.outer(square_norm, square_norm) - trees.gram**2
    size = trees.size[:, None] + trees.size
    for matrix, alone in ((gain, trees.match**2), (volume, square_norm), (size, trees.size)):
        np.fill_diagonal(matrix, alone)
    gain = np.where(size <= capacity, gain / np.maximum(volume, 1e-300), -1.0)
    return np.unique(np.array(np.unravel_index(gain.argmax(), gain.shape)))


def relax(
    trees: TreeGram, capacity: int, fraction: Floats, cutoff: float, deadline: float
) -> tuple[float, Floats, Floats]:
    """Return a lower bound on the objective of subsets of at most `capacity` nodes, and each tree's fraction and gain.

    Let D be a diagonal with G − D positive semidefinite. As β'(G − D)β ≥ 2β'(G − D)v − v'(G − D)v, a subset S lowers
    the objective, whatever v is, by at most

        v'(G − D)v + Σ_{t in S} gain_t,    gain_t = (m − (G − D)v)_t² / D_t,

    whose sum is at most the optimum of the fractional knapsack problem. The v with the best bound solves
    (G − D + D / z) v = m for some fractions z. The best fractions for a given v are proportional to |v| sqrt(D / size),
    clipped at 1, and use `capacity` nodes in all. The two are updated alternately, until the bound reaches `cutoff`
    or can hardly improve.
    """
    diagonal, size = _diagonal(trees), trees.size.astype(np.float64)
    rest = trees.gram - np.diag(diagonal)
    best = (-np.inf, fraction, np.zeros(len(size)))
    for _ in range(_ROUNDS):
        fraction = np.maximum(fraction, 1e-8)
        v = np.linalg.solve(rest + np.diag(diagonal / fraction), trees.match)
        along = rest @ v
        gain = (trees.match - along) ** 2 / diagonal
        lowered = float(v @ along) + _knapsack(gain, size, capacity)
        bound = trees.square - lowered - trees.slack
        if bound > best[0]:
            best = (bound, fraction, gain)
        # Upper bound on the further improvement of the bound.
        max_improvement = lowered - float(trees.match @ v)
        if best[0] >= cutoff or max_improvement < 0.01 * (cutoff - bound) or time.monotonic() >= deadline:
            break
        fraction = _fractions(np.abs(v) * np.sqrt(diagonal / size), size, capacity)
    return best


def _diagonal(trees: TreeGram) -> Floats:
    """Return a large diagonal D, (n_trees,), such that gram − D is positive semidefinite.

    D is a multiple of 1 / diag(G⁻¹), the squared norm of each tree's residual after projection on the other trees.
    """
    square_norm = np.maximum(1 / np.diag(np.linalg.inv(trees.gram)), trees.ridge)
    scaled = trees.gram / np.sqrt(np.outer(square_norm, square_norm))
    # Lower the smallest eigenvalue by the rounding error, so that gram − D stays positive semidefinite.
    least = float(np.linalg.eigvalsh(scaled)[0]) - 1e-13 * float(np.trace(scaled))
    return least * square_norm if least > 0 else np.full(len(square_norm), trees.ridge / 2)


def _knapsack(gain: Floats, size: Floats, capacity: float) -> float:
    """Return the optimum of the fractional knapsack problem."""
    order = np.argsort(-gain / size)
    before = np.cumsum(size[order]) - size[order]
    return float(np.clip((capacity - before) / size[order], 0.0, 1.0) @ gain[order])


def _fractions(wish: Floats, size: Floats, capacity: float) -> Floats:
    """Return min(1, c · wish) with c such that Σ size · fraction = capacity. Requires Σ size > capacity."""
    order = np.argsort(-wish)
    size, sorted_wish = size[order], wish[order]
    # before[k]: nodes of the trees with fraction 1, if tree k is the first with a smaller one.
    before = np.cumsum(size) - size
    factor = (capacity - before) / np.maximum(np.cumsum((size * sorted_wish)[::-1])[::-1], 1e-300)
    first = int(np.argmax(factor * sorted_wish <= 1))
    return np.minimum(1.0, factor[first] * wish)


def _round_down(fraction: Floats, size: NDArray[np.int64], capacity: int) -> Indices:
    """Return a feasible subset by rounding: take trees by decreasing fraction as long as they fit."""
    taken = []
    for tree in np.argsort(-fraction, kind="stable"):
        if size[tree] <= capacity:
            taken.append(tree)
            capacity -= int(size[tree])
    return np.array(taken, np.intp)
