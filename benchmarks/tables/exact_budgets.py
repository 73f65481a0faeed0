"""Compare MinCut within feature budgets that no penalty reaches with the best pruning, found by integer programming."""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target

_DATA = ("sonar", "heart", "breast_cancer", "glass")
_QUICK = ("breast_cancer",)
_SHARES = (0.1, 0.25, 0.5, 0.75)
_TREES = (10, 40)
_SPLITS = 3
_MOST_ROWS = 600
_LIMIT = 20.0
_NOTES = [
    "Random forests, every feature at price 1. Half of at most 600 rows train, a quarter prunes and one tests. "
    f"Means over {_SPLITS} splits. budget: a fraction of the average price of the unpruned forest.",
    "Problem (IP3), the mean error of the trees on the pruning rows: cut, the best point of MinCut within the budget; "
    f"exact, LinearProgram(max_cost=…), stopped after {_LIMIT:g} s; least, the Lagrangian bound, MinCut's certificate. "
    "gap_%: how far cut is above that bound. excess_%: how far cut is above the best pruning, by the bound of the "
    "integer program. solved: in how many splits the integer program proved its solution. seconds: for one budget.",
    "test_: errors of the whole forest on the test rows. descent: CostDescent, which minimises the ensemble's own "
    "loss: its best point on the pruning rows within the budget.",
]


def run(quick: bool) -> Result:
    rows, skipped = [], []
    for name in _QUICK if quick else _DATA:
        try:
            data = load(data_sets()[name]).sample(200 if quick else _MOST_ROWS, seed=0)
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        for n_trees in _TREES[:1] if quick else _TREES:
            splits = [measure(data, n_trees, seed) for seed in range(1 if quick else _SPLITS)]
            rows += [mean_of([split[share] for split in splits]) for share in splits[0]]
    below = [row["exact"] - row["least"] for row in rows]
    targets = [Target("least difference of exact and the bound of MinCut", min(below, default=None), at_least=-1e-9)]
    return Result(rows, 1 if quick else _SPLITS, _NOTES, targets, skipped=skipped)


def measure(data: Data, n_trees: int, seed: int) -> dict[float, Row]:
    """Return a row for each budget."""
    X, X_rest, y, y_rest = train_test_split(data.X, data.y, test_size=0.5, random_state=seed, stratify=data.y)
    X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=seed)
    forest = RandomForestClassifier(n_trees, random_state=seed).fit(np.nan_to_num(X), y)
    X_prune, X_test = np.nan_to_num(X_prune), np.nan_to_num(X_test)
    rows: dict[str, Any] = {"cost": sc.costs.FeatureCost(np.ones(X.shape[1])), "loss": "zero_one"}
    by_cut = sc.prune_path(forest, X_prune, y_prune, solver="min_cut", **rows)
    full, found = float(by_cut.table["cost"][0]), {}
    for share in _SHARES:
        budget = share * full
        cut = by_cut.select(max_cost=budget, rule="lowest")
        begin = time.perf_counter()
        solver = sc.solvers.LinearProgram(penalties=1, max_cost=budget, time_limit=_LIMIT)
        by_program = sc.prune_path(forest, X_prune, y_prune, solver=solver, **rows)
        seconds = time.perf_counter() - begin
        (point,) = np.flatnonzero(by_program.table["budget"] == budget)
        exact = by_program[int(point)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            descent = sc.solvers.CostDescent(max_cost=budget)
            by_descent = sc.prune_path(forest, X_prune, y_prune, solver=descent, cost=rows["cost"])
        chosen = by_descent.select(max_cost=budget, rule="lowest")
        least, bound = cut.summary()["optimality"]["least_risk"], exact.row["bound"]
        found[share] = {
            "data": data.name,
            "trees": n_trees,
            "budget": share,
            "cut": cut.row["risk"],
            "least": least,
            "exact": exact.row["risk"],
            "gap_%": percent(cut.row["risk"], least),
            "excess_%": percent(cut.row["risk"], bound),
            "solved": float(exact.row["gap"] <= 1e-5),
            "seconds": seconds,
            "test_unpruned": float(np.mean(forest.predict(X_test) != y_test)),
            **{
                f"test_{name}": float(np.mean(point.to_model().predict(X_test) != y_test))
                for name, point in (("cut", cut), ("exact", exact), ("descent", chosen))
            },
        }
    return found


def percent(value: float, least: float) -> float:
    """Return how far a value is above another, in %."""
    return 100 * (value / max(least, 1e-300) - 1) if value > least else 0.0


def mean_of(rows: list[Row]) -> Row:
    """Return the means over splits; `solved` is a number of splits."""
    first = rows[0]
    means = {name: float(np.mean([row[name] for row in rows])) for name in first if name not in ("data", "trees")}
    return {"data": first["data"], "trees": first["trees"], **means, "solved": round(means["solved"] * len(rows))}


TABLE = Table("exact_budgets", "Feature budgets inside a jump, met exactly", run)
