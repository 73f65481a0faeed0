"""Measure time and page size of the report of a long path on a large forest."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from benchmarks.discovery import Table
from benchmarks.measure import Job, take_turns
from benchmarks.results import Result, Target

_NOTES = [
    "RandomForestRegressor on Friedman's first function, leaves of three rows; the whole path of WeakestLink, "
    "thinned to the given number of points and evaluated on the same number of other rows.",
    "seconds: time of sc.report, including writing the page to disk; with rows: also calibration, time per "
    "prediction and similar measurements on the other rows. predict: time of the model's own predict on these rows, "
    "for comparison.",
]
_SIZES = ((100, 100, 2_000), (1_000, 1_000, 2_000))
"""Trees, points, rows."""


def run(quick: bool) -> Result:
    rows, targets, repeats = [], [], 1 if quick else 3
    for n_trees, n_points, n_rows in ((10, 20, 200),) if quick else _SIZES:
        X, y = make_friedman1(2 * n_rows, noise=1.0, random_state=0)
        model = RandomForestRegressor(n_trees, min_samples_leaf=3, random_state=0).fit(X[:n_rows], y[:n_rows])
        rest = X[n_rows:], y[n_rows:]
        path = sc.prune_path(model, *rest, solver="weakest_link")
        path = path.take(np.unique(np.linspace(0, len(path) - 1, n_points).astype(int))).evaluate(*rest)
        with TemporaryDirectory() as folder:
            page, measured = Path(folder) / "page.html", Path(folder) / "measured.html"
            jobs = {
                "report": Job(lambda path=path, page=page: sc.report(path, page, force=True)),
                "with rows": Job(lambda path=path, page=measured, rest=rest: sc.report(path, page, *rest, force=True)),
                "predict": Job(lambda model=model, X=rest[0]: model.predict(X)),
            }
            times = take_turns(jobs, repeats)
            sizes = {"report": page.stat().st_size, "with rows": measured.stat().st_size}
        facts = {"trees": n_trees, "nodes": path.forest.n_nodes, "points": len(path)}
        rows += [
            {**facts, "what": what, "seconds": times[what], "MB": sizes.get(what, 0) / 1e6 or None} for what in times
        ]
    last = {row["what"]: row for row in rows[-3:]}
    targets += [
        Target("seconds of the report of the largest path", None if quick else last["report"]["seconds"], at_most=20.0),
        Target("MB of the page of the largest path", None if quick else last["with rows"]["MB"], at_most=5.0),
    ]
    return Result(rows, repeats, _NOTES, targets)


TABLE = Table("report_size", "Time and size of the report of 1000 points on a forest of 1000 trees", run)
