"""Time the whole cost-complexity path of one tree, and its growth with the size of the tree."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.discovery import Table, data_sets, jobs, methods
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.measure import growth, take_turns
from benchmarks.results import Result, Row, Target
from benchmarks.tasks import PathTask, largest_difference

_ROWS = {
    "noise": (2_000, 6_000, 18_000, 52_000),
    "fried": (2_500, 10_000, 40_768),
    "covertype": (2_000, 14_000, 98_000),
}
_LARGE = 100_000
_NOTES = [
    "sklearn: cost_complexity_pruning_path(X, y) minus a plain fit, both medians.",
    "secateur: prune_path(tree, X, y, cost='leaves') from the fitted tree to the whole path, end to end. "
    "secateur_solver: the same after routing. secateur_kernel: only the kernel, given the risks of the nodes.",
    "ratio_x: the time of sklearn divided by the time of x in the same rounds.",
    "difference: the largest relative difference between the distinct penalties of secateur and of scikit-learn "
    "(within 1e-7 they count as one); empty if their numbers differ.",
    "growth: the exponent b of seconds = c * nodes^b, by least squares on logarithms.",
    "covertype has labels drawn at random from its 7 classes, so that full trees are large.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 3
    rows, skipped, findings = [], [], []
    warm_up()
    for name, sizes in _ROWS.items():
        try:
            data = load(data_sets()[name])
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        series = list(measure_series(data, sizes[:1] if quick else sizes, repeats))
        rows += series
        findings.append(growth_row(name, series))
    large = [row["ratio_secateur"] for row in rows if row["nodes"] >= _LARGE]
    speed = Target(f"smallest ratio at {_LARGE} nodes or more", min(large, default=None), at_least=20)
    return Result(rows, repeats, _NOTES, [speed], findings, skipped)


def warm_up() -> None:
    """Run every method once on a tiny tree, so that compilation is not timed."""
    rng = np.random.default_rng(0)
    for model, y in [(DecisionTreeRegressor(), rng.random(50)), (DecisionTreeClassifier(), np.arange(50) % 3)]:
        X = rng.random((50, 10))
        for job in jobs("path", PathTask(model.fit(X, y), X, y)).values():
            job.run()


def measure_series(data: Data, sizes: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """Yield a row for each number of training rows."""
    for n_rows in sizes:
        sample = data.sample(n_rows, seed=0)
        model: Any = DecisionTreeRegressor(random_state=0)
        y = sample.y
        if data.task == "classification":
            model, y = DecisionTreeClassifier(random_state=0), np.random.default_rng(0).integers(7, size=n_rows)
        task = PathTask(model.fit(sample.X, y), sample.X, y)
        ways = jobs("path", task)
        times = take_turns(ways, repeats)
        yield {
            "data": data.name,
            "rows": n_rows,
            "nodes": model.tree_.node_count,
            **{f"seconds_{name}": time for name, time in times.items()},
            **{f"ratio_{name}": times["sklearn"] / time for name, time in times.items() if name != "sklearn"},
            "difference": largest_difference(ways["secateur"].run(), np.sort(ways["sklearn"].run())),
        }


def growth_row(name: str, series: list[Row]) -> Row:
    """Return the exponent of the time of each method."""
    nodes = [row["nodes"] for row in series]
    columns = [f"seconds_{method}" for method in methods("path")]
    times = {column: [row[column] for row in series if column in row] for column in columns}
    exponents = {column: growth(nodes, time) for column, time in times.items() if len(time) == len(nodes)}
    return {"data": name, **{column.replace("seconds", "growth"): b for column, b in exponents.items()}}


TABLE = Table("weakest_link_speed", "Speed of the cost-complexity path of one tree", run)
