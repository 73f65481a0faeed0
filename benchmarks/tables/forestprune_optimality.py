"""Measure how often block descent solves ForestPrune's problem to optimality, and figure 3 of Liu and Mazumder 2023."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

from benchmarks.discovery import Table, data_sets
from benchmarks.ensemble_tables import find_data
from benchmarks.load import Data, load
from benchmarks.results import Result, Row, Target
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows, read_sample
from secateur.libraries import adapt
from secateur.losses import default_loss
from secateur.problem import Problem
from secateur.solvers import BlockDescent
from secateur.solvers.base import decreasing_penalties
from secateur.solvers.ensemble._gram_descent import GramDescent
from secateur.solvers.ensemble.gram import Gram, gram_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DATA = ("autoMpg", "no2", "boston", "stock", "socmob", "Moneyball", "abalone", "wine_quality", "cpu_small", "houses")
_QUICK = ("diabetes",)
_MOST_ROWS = 2_000
_PENALTIES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
_LAYERS = BlockDescent(granularity="layer", values="keep")
_SMALL: dict[str, Callable[[], Any]] = {
    "bagging": lambda: RandomForestRegressor(5, max_depth=4, max_features=1 / 3, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=5, max_depth=4, learning_rate=0.3, random_state=0),
}
_LARGE: dict[str, Callable[[], Any]] = {
    "bagging": lambda: RandomForestRegressor(200, max_depth=6, max_features=1 / 3, random_state=0),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=200, max_depth=5, subsample=0.25, random_state=0),
}
_WAYS = ("descent", "warm", "search", "warm_search", "three_updates")
_STARTS = ("cold", "warm", "warm_search", "cold_three", "warm_three")
_NOTES = [
    "Problem (1) of the paper, on real data (at most 2000 rows). First grid: ensembles of 5 trees of depth at most 4, "
    "and all their depths (at most 7776) enumerated, at five penalties: a node costs .03 to .0003 of the loss without "
    "trees. problems: with a different optimum than dropping every tree. In % of these: descent, block descent from "
    "the empty ensemble; warm, with warm starts along the penalties; search and warm_search, the same with "
    "local_search=20; three_updates, a descent with the stopping rule of the authors' code: three updates of trees in "
    "a row that change the objective by less than 1e-6. worst_%: the largest excess of the objective over the optimum "
    "by warm_search.",
    "Second grid, figure 3 of the paper: 200 trees of depth 6 (bagging) or 5 (boosting) and 50 penalties. passes: "
    "updates of trees on the whole path / number of trees. excess_%: mean excess of the objective over the best of all "
    "starts, over penalties. stuck_%: penalties at which a descent changed nothing, though another start is better by "
    "more than a thousandth. Means over data sets; largest_excess_%: the data set with the largest. cold: from the "
    "empty ensemble at every penalty. warm: from the result at the penalty before. search: with local_search=20. "
    "_three: with the stopping rule of the authors' code.",
    "The local search differs from algorithm 3 of the paper: it starts at the first unused tree in the model's own "
    "order, also for bagging, where the paper sorts trees by training performance; that tree gets its best depth "
    "instead of its full depth; and an attempt that does not lower the objective is undone.",
]


def run(quick: bool) -> Result:
    found, skipped = find_data(_QUICK if quick else _DATA, unavailable=[])
    small, large = [], []
    for name in found:
        data = load(data_sets()[name]).sample(200 if quick else _MOST_ROWS, seed=0)
        data = replace(data, X=np.nan_to_num(data.X), y=(data.y - data.y.mean()) / data.y.std())
        for kind in _SMALL:
            small.append({"data": name, "ensemble": kind, **enumerate_depths(layers_of(_SMALL[kind](), data))})
            ways = walk_paths(layers_of(_LARGE[kind](), data), 5 if quick else 50)
            large += [{"ensemble": kind, **way} for way in ways]
    return Result(small, 1, _NOTES, targets(small), mean_rows(large), skipped)


def layers_of(model: Any, data: Data) -> "Layers":
    """Return the problem of a model that is trained and pruned on the same rows."""
    adapter = adapt(model.fit(data.X, data.y))
    problem = Problem(adapter.forest, read_sample(adapter, data.X, data.y), default_loss(adapter.forest), NodeCost())
    assert isinstance(problem.sample, LocalRows)
    gram = gram_of(problem.forest, problem.sample)
    return Layers(problem, gram, GramDescent(problem.forest, problem.prices, gram, _LAYERS.settings("keep", 0.0)))


@dataclass(frozen=True, eq=False)
class Layers:
    """Problem (1) on the inner products of the layers; `first` is a descent before its first step."""

    problem: Problem
    gram: Gram
    first: GramDescent

    def descent(self, local_search: int = 0) -> GramDescent:
        """Return a new descent from the empty ensemble."""
        settings = replace(_LAYERS, local_search=local_search).settings("keep", 0.0)
        return GramDescent(self.problem.forest, self.problem.prices, self.gram, settings)

    def objective(self, depths: Ints, penalty: float) -> Floats:
        """Return the objective of depths of all trees, -1 for a dropped tree, (n, n_trees), computed directly."""
        start = self.first.column_start
        tree = np.repeat(np.arange(len(start) - 1), np.diff(start))
        z = (np.arange(start[-1]) - start[tree] < depths[:, tree]).astype(np.float64)
        index = start[:-1] + np.arange(len(start) - 1) + np.maximum(depths, 0)
        price = np.where(depths >= 0, self.first.price[index], 0.0).sum(axis=1)
        loss = self.first.scale - 2 * z @ self.first.match + np.einsum("ij,ij->i", z @ self.first.inner, z)
        return np.asarray(loss + penalty * price)

    def three_updates(self, depths: Ints, penalty: float) -> tuple[Ints, int]:
        """Return the depths where the authors' descent stops, and its number of updates."""
        depths, start = depths.copy(), self.first.column_start
        quiet = updates = 0
        neg_gradient = self.first.match - self.first.inner @ self._z(depths)
        while quiet < 3 and updates < 100_000:
            tree = updates % len(depths)
            a, b = start[tree], start[tree + 1]
            block, old = self.first.inner[a:b, a:b], max(depths[tree], 0)
            linear = neg_gradient[a:b] + block[:, :old].sum(axis=1)
            # loss[d]: that of depth d, relative to the tree dropped.
            loss = np.concatenate([[0.0], np.diagonal(np.cumsum(np.cumsum(block, 0), 1)) - 2 * np.cumsum(linear)])
            prices = self.first.price[a + tree : b + tree + 1]
            value = np.concatenate([[0.0], loss + penalty * prices])
            new = int(value.argmin()) - 1
            quiet = quiet + 1 if value[depths[tree] + 1] - value[new + 1] < 1e-6 else 0
            neg_gradient += self.first.inner[:, a : a + old].sum(axis=1)
            neg_gradient -= self.first.inner[:, a : a + max(new, 0)].sum(axis=1)
            depths[tree] = new
            updates += 1
        return depths, updates

    def _z(self, depths: Ints) -> Floats:
        start = self.first.column_start
        tree = np.repeat(np.arange(len(start) - 1), np.diff(start))
        return (np.arange(start[-1]) - start[tree] < depths[tree]).astype(np.float64)


def enumerate_depths(layers: Layers) -> Row:
    """Return how often each way finds the optimum, by enumeration."""
    deepest = np.diff(layers.first.column_start)
    every = np.array(list(itertools.product(*(range(-1, depth + 1) for depth in deepest))))
    warm, warm_search = layers.descent(), layers.descent(20)
    hits: dict[str, list[bool]] = {name: [] for name in _WAYS}
    worst = 0.0
    for penalty in (share * layers.first.scale / _root_price(layers) for share in _PENALTIES):
        values = layers.objective(every, penalty)
        if every[values.argmin()].max() < 0:
            continue
        found = {}
        for name, descent in {
            "descent": layers.descent(),
            "warm": warm,
            "search": layers.descent(20),
            "warm_search": warm_search,
        }.items():
            descent.descend(penalty)
            descent.search(penalty)
            found[name] = descent.state.depth
        found["three_updates"], _ = layers.three_updates(np.full(len(deepest), -1), penalty)
        for name, depths in found.items():
            excess = float(layers.objective(depths[None], penalty)[0] / values.min() - 1)
            hits[name].append(excess < 1e-9)
            worst = max(worst, excess if name == "warm_search" else 0.0)
    shares = {f"{name}_%": 100 * float(np.mean(hit)) if hit else None for name, hit in hits.items()}
    return {"combinations": len(every), "problems": len(hits["warm"]), **shares, "worst_%": 100 * worst}


def _root_price(layers: Layers) -> float:
    """Return the price of one node."""
    return float(layers.first.price[0])


def walk_paths(layers: Layers, n_penalties: int) -> list[Row]:
    """Return passes over the trees and excess of the objective of several ways to compute a path."""
    penalties = decreasing_penalties(n_penalties, 0.1 * layers.first.scale / _root_price(layers), 1e-4)
    n_trees = layers.problem.forest.n_trees
    values: dict[str, list[float]] = {name: [] for name in _STARTS}
    passes = dict.fromkeys(_STARTS, 0.0)
    still: dict[str, list[bool]] = {name: [] for name in _STARTS}
    warm = {name: layers.descent(20 if name == "warm_search" else 0) for name in ("warm", "warm_search")}
    three = np.full(n_trees, -1)
    for penalty in penalties:
        for name, descent in {"cold": layers.descent(), **warm}.items():
            before, updates = descent.state.depth.copy(), descent.updates
            descent.descend(penalty)
            descent.search(penalty)
            passes[name] += (descent.updates - updates) / n_trees
            values[name].append(descent.objective(penalty))
            still[name].append(bool((descent.state.depth == before).all()))
        for name, begin in (("cold_three", np.full(n_trees, -1)), ("warm_three", three)):
            depths, updates = layers.three_updates(begin, penalty)
            passes[name] += updates / n_trees
            values[name].append(float(layers.objective(depths[None], penalty)[0]))
            still[name].append(bool((depths == begin).all()))
        three = depths
    best = np.min(list(values.values()), axis=0)
    found = []
    for name in _STARTS:
        excess = 100 * (np.array(values[name]) / best - 1)
        stuck = float(100 * np.mean(np.array(still[name]) & (excess > 0.1)))
        found.append({"start": name, "passes": passes[name], "excess_%": float(excess.mean()), "stuck_%": stuck})
    return found


def mean_rows(rows: list[Row]) -> list[Row]:
    """Return the means over data sets for each kind of ensemble and start, and the largest mean excess."""
    found = []
    for kind, start in itertools.product(_SMALL, _STARTS):
        same = [row for row in rows if (row["ensemble"], row["start"]) == (kind, start)]
        means = {name: float(np.mean([row[name] for row in same])) for name in ("passes", "excess_%", "stuck_%")}
        worst = max(row["excess_%"] for row in same)
        found.append({"ensemble": kind, "start": start, "data_sets": len(same), **means, "largest_excess_%": worst})
    return found


def targets(rows: list[Row]) -> list[Target]:
    """Return the share of problems that are solved to optimality."""
    solved = [row for row in rows if row["problems"]]
    n = sum(row["problems"] for row in solved)
    share = sum(row["warm_search_%"] * row["problems"] for row in solved) / n if n else None
    return [Target(f"% of {n} problems whose optimum warm_search finds", share, at_least=95)]


TABLE = Table("forestprune_optimality", "How nearly block descent solves ForestPrune's problem", run)
