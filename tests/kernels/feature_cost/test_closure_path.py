"""Closures of nodes and items: against all closures, and items against sets."""

import itertools
from fractions import Fraction

import numpy as np
from hypothesis import given
from tests.strategies import examples, generators

from secateur import kernels


def random_closure(rng, n=6, m=4):
    """Return parents, profits, prices and needs; all nodes together are the smallest best closure for free."""
    while True:
        parent = np.array([-1 if rng.random() < 0.4 else int(rng.integers(h)) if h else -1 for h in range(n)], np.int32)
        profit = rng.integers(-3, 6, n)
        if kernels.profitable_splits(parent, profit).all():
            break
    needs = [np.flatnonzero(rng.random(m) < 0.35) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(need) for need in needs])]).astype(np.int64)
    return parent, profit, rng.integers(1, 5, m), start, np.concatenate(needs).astype(np.int32), needs


def closures(parent):
    """Yield all sets of nodes that have their parents in them."""
    for inside in itertools.product((False, True), repeat=len(parent)):
        if all(not taken or above == -1 or inside[above] for taken, above in zip(inside, parent, strict=True)):
            yield {h for h, taken in enumerate(inside) if taken}


@examples(150)
@given(rng=generators)
def test_every_node_leaves_where_the_smallest_best_closure_loses_it(rng):
    parent, profit, price, start, need, needs = random_closure(rng)
    over, under, counts = kernels.closure_path(parent, profit, price, start, need)
    every = list(closures(parent))
    finite = sorted({Fraction(int(a), int(b)) for a, b in zip(over, under, strict=True) if b})
    tried = [*finite, *(x + Fraction(1, 1000) for x in finite), Fraction(1, 997), Fraction(100)]
    for penalty in tried:

        def worth(inside, penalty=penalty):
            items = set().union(*(needs[h].tolist() for h in inside)) if inside else set()
            return sum(int(profit[h]) for h in inside) - penalty * sum(int(price[j]) for j in items)

        values = [worth(inside) for inside in every]
        best = [inside for inside, value in zip(every, values, strict=True) if value == max(values)]
        found = {h for h in range(len(parent)) if under[h] == 0 or Fraction(int(over[h]), int(under[h])) > penalty}
        assert found == set.intersection(*best)
    assert counts[0] <= 2 * counts[1]


@given(rng=generators)
def test_items_are_equal_that_the_same_nodes_need(rng):
    n, m = 5, 12
    needs = [np.flatnonzero(rng.random(m) < 0.5) for _ in range(n)]
    start = np.concatenate([[0], np.cumsum([len(need) for need in needs])]).astype(np.int64)
    of, n_classes = kernels.equal_items(m, start, np.concatenate(needs).astype(np.int32))
    wanted_by = [frozenset(h for h in range(n) if j in needs[h]) for j in range(m)]
    assert n_classes == len(set(wanted_by))
    assert all((of[a] == of[b]) == (wanted_by[a] == wanted_by[b]) for a in range(m) for b in range(m))


@given(rng=generators)
def test_what_is_inseparable_leaves_together(rng):
    parent, profit, price, start, need, _ = random_closure(rng, n=7)
    over, under, _ = kernels.closure_path(parent, profit, price, start, need)
    head = kernels.inseparable(parent, profit, np.diff(start))
    for h in range(len(parent)):
        assert head[head[h]] == head[h] <= h
        assert over[h] * under[head[h]] == over[head[h]] * under[h]
