"""Describe a path as one dict of plain values, which the HTML page and `secateur report --json` show."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import fit_to_show
from secateur.costs import Cost
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InvalidInputError
from secateur.forest.routing import route
from secateur.path import Path, Pruned
from secateur.path.combine import JoinedPath
from secateur.path.rules import certificate
from secateur.plotting.split_labels import class_names
from secateur.reporting._json import plain
from secateur.reporting.benchmark import benchmark
from secateur.reporting.feature_table import describe_bills, describe_features
from secateur.reporting.measure import calibration, spread
from secateur.reporting.model_summary import describe_model, versions
from secateur.reporting.tree_shapes import describe_trees

FORMAT, VERSION = "secateur report", 1
# Maximum numbers of points at which calibration and prices, times, and leaf values are given.
MOST_MEASURED = 24
MOST_TIMED = 8
MOST_VALUED = 256
SECONDS_PER_POINT = 0.2
"""The time spent on measuring the latency of a point."""
_OMITTED_FACTS = ("model_file", "model_sha256")


def describe(
    path: Path,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    cost: Cost | None = None,
    baselines: Mapping[str, Path] | None = None,
    point: int | None = None,
    **limits: float | None,
) -> dict[str, Any]:
    """Return the contents of a report as a dict of JSON values; the arguments are those of `report`.

    The keys are documented in docs/report.md.
    """
    sample = None if X is None else _rows(path, X, y, sample_weight)
    has_targets = sample is not None and (y is not None or not path.source.supervised)
    if sample is not None and has_targets and "loss" not in path.table:
        path = path.evaluate_sample(sample, rows="the rows passed to the report")
    chosen = _chosen(path, point, limits)
    path = path.with_bytes()
    valued_points = spread(len(path), MOST_VALUED, [chosen.point])
    features = describe_features(path)
    summary = chosen.summary()
    path.table["bytes"][[0, chosen.point]] = summary["before"]["bytes"], summary["after"]["bytes"]
    measured = None
    if sample is not None:
        measured = _measured(path, sample, X, chosen.point, cost, features["number"], has_targets)
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(path.source),
        "model": describe_model(path.source),
        "classes": class_names(path.source),
        "solver": path.solver,
        "facts": {name: fact for name, fact in path.info.to_json().items() if name not in _OMITTED_FACTS},
        "risk_is_loss": _risk_is_loss(path),
        "table": path.table,
        "point": chosen.point,
        "summary": summary,
        "sure": _uncertainty(path),
        "trees": [] if isinstance(path, JoinedPath) else describe_trees(path, chosen.point, valued_points),
        "features": features,
        "measured": measured,
        "baselines": {fit_to_show(name): _baseline(name, other) for name, other in (baselines or {}).items()},
        "code": {"python": "small = path[{point}].to_model()"},
    }
    described: dict[str, Any] = plain(facts)
    return described


def _rows(path: Path, X: Any, y: Any, sample_weight: Any) -> LocalRows:
    """Return the routed rows; rows without targets suffice to measure times and prices, but not the loss."""
    if y is not None or not path.source.supervised:
        return read_sample(path.source, X, y, sample_weight)
    rows = path.source.rows(X)
    weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, np.float64)
    return LocalRows(route(path.forest, rows), np.zeros((len(rows), 1)), weight)


def _chosen(path: Path, point: int | None, limits: Mapping[str, Any]) -> Pruned:
    """Return the point the page opens at."""
    return path.select(**limits) if point is None else path[point]


def _risk_is_loss(path: Path) -> bool:
    """Return whether the risk on the pruning rows is the same quantity as the loss on other rows."""
    same_loss: bool = path.info.same_loss
    of_ensemble = path.info.is_ensemble_risk
    return same_loss and (of_ensemble or (path.forest.n_trees == 1 and path.forest.trees_predict_target))


def _uncertainty(path: Path) -> dict[str, Any]:
    """Return the one-standard-error summary of the loss, and the certified gap of each point, if any."""
    certificates = [certificate(path.table, point, None) for point in range(len(path))]
    gaps = None if certificates[0] is None else [found and found["gap"] for found in certificates]
    if "loss" not in path.table:
        return {"gap": gaps}
    loss = path.table["loss"]
    best = int(loss.argmin())
    bound = float(loss[best] + path.table["loss_se"][best])
    within = np.flatnonzero(loss <= bound)
    cheapest = int(within[path.table["cost"][within].argmin()])
    return {"gap": gaps, "best": best, "one_se": bound, "within": len(within), "cheapest": cheapest}


def _measured(
    path: Path, sample: LocalRows, X: Any, chosen: int, cost: Cost | None, shown: list[int], has_targets: bool
) -> dict[str, Any]:
    """Return calibration, prices and prediction times at some points; times at fewer points, since timing is slow."""
    required = [0, chosen, len(path) - 1]
    points, timed = spread(len(path), MOST_MEASURED, required), spread(len(path), MOST_TIMED, required)
    prunings = {f"point {point}": path[point] for point in timed.tolist()}
    measured: dict[str, Any] = {
        "rows": len(sample),
        "timed": timed,
        "latency": benchmark(prunings, X, seconds=SECONDS_PER_POINT).summary(),
    }
    if isinstance(path, JoinedPath):
        return measured
    measured["points"] = points
    if has_targets:
        measured["calibration"] = [calibration(path, sample, int(point)) for point in points]
    if cost is not None and cost.shared:
        measured["bills"] = describe_bills(path, sample, cost, points, shown)
    return measured


def _baseline(name: str, path: Path) -> dict[str, NDArray[Any]]:
    if "loss" not in path.table:
        raise InvalidInputError(
            f"Baseline {name!r} has not been evaluated, so it has no loss to plot. Call its evaluate(X, y) with the "
            "rows on which the path was evaluated."
        )
    columns = ("n_nodes", "n_leaves", "n_trees", "n_features", "depth", "cost", "loss", "loss_se")
    return {column: path.table[column] for column in columns}
