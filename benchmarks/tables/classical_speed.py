"""Time the classical methods: every size of one tree, and every method on a forest."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.measure import Job, growth, seconds, take_turns
from benchmarks.results import Result, Row, Target

_LEAVES = (625, 1_250, 2_500, 5_000)
_SOLVERS = (
    sc.solvers.WeakestLink(),
    sc.solvers.ReducedError(),
    sc.solvers.ReducedError(raising=True),
    sc.solvers.PessimisticError(),
    sc.solvers.MinimumError(),
    sc.solvers.OptimalSize(max_leaves=30),
)
_NOTES = [
    "First grid: prune_path with each solver on a random forest of 500 full trees (letter; half of the rows for "
    "training, the other half for pruning), end to end, against training the forest in one thread. fraction: seconds / "
    "training seconds.",
    "OptimalSize on the forest is limited to 30 leaves per tree; WeakestLink is included for comparison.",
    "Second grid: OptimalSize without limit, all sizes of a tree grown on noise; growth: the exponent b of seconds "
    "= c * leaves^b.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 3
    skipped = []
    try:
        data = load(data_sets()["letter"])
    except DataNotFoundError as error:
        data = load(data_sets()["digits"])
        skipped.append(f"letter, with digits in its place: {error}")
    rows = on_a_forest(data.sample(300 if quick else 20_000, seed=0), 3 if quick else 500)
    sizes = every_size(_LEAVES[:2] if quick else _LEAVES, repeats)
    exponent = growth([row["leaves"] for row in sizes], [row["seconds"] for row in sizes])
    targets = [
        Target("largest fraction of the training time", max(row["fraction"] for row in rows), at_most=1.0),
        Target("seconds for all sizes of the largest tree", sizes[-1]["seconds"], at_most=10.0),
    ]
    return Result(rows, repeats, _NOTES, targets, [*sizes, {"leaves": "growth", "seconds": exponent}], skipped)


def on_a_forest(data: Data, n_trees: int) -> list[Row]:
    """Return the time of every solver on one forest, as a fraction of its training time."""
    half = len(data.y) // 2
    train, other = slice(0, half), slice(half, None)
    forest = RandomForestClassifier(n_trees, random_state=0)
    training = seconds(partial(forest.fit, data.X[train], data.y[train]))
    small = clone(forest).set_params(n_estimators=2, max_depth=4).fit(data.X[train], data.y[train])
    rows = []
    for solver in _SOLVERS:
        prune(small, data.X[other], data.y[other], solver)  # compiles
        time = seconds(partial(prune, forest, data.X[other], data.y[other], solver))
        nodes = sc.as_forest(forest).n_nodes
        rows.append({"solver": repr(solver), "nodes": nodes, "seconds": time, "fraction": time / training})
    return rows


def every_size(sizes: tuple[int, ...], repeats: int) -> list[Row]:
    """Return the time OptimalSize takes for trees of growing size."""
    rng = np.random.default_rng(0)
    rows = []
    for n_leaves in sizes:
        X, y = rng.random((2 * n_leaves, 5)), rng.random(2 * n_leaves)
        tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, random_state=0).fit(X, y)
        prune(tree, X, y, sc.solvers.OptimalSize(2))
        time = take_turns({"all": Job(partial(prune, tree, X, y, sc.solvers.OptimalSize()))}, repeats)["all"]
        rows.append({"leaves": int(tree.get_n_leaves()), "depth": int(tree.get_depth()), "seconds": time})
    return rows


def prune(model: Any, X: Any, y: Any, solver: sc.solvers.Solver) -> sc.Path:
    return sc.prune_path(model, X, y, solver=solver)


TABLE = Table("classical_speed", "Speed of the classical methods on a tree and on a forest", run)
