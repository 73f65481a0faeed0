"""Count how often the chosen pruning exceeds a limit in truth, with and without `confidence`."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np
import xgboost
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from secateur.data.rows import read_sample
from secateur.losses import loss_named
from secateur.path import Path
from secateur.path.changed_rows import certify_changed
from secateur.path.confidence import certify_mean
from secateur.path.rules import choose

Floats = NDArray[np.float64]

_CONFIDENCE = 0.95
_LIMITS = (0.02, 0.05)
_CHANGES = (0.01, 0.05)
_ROWS = (200, 1000, 5000)
DATA_SETS = {
    "adult": "lightgbm",
    "covertype": "forest",
    "letter": "forest",
    "satimage": "forest",
    "pendigits": "xgboost",
    "houses": "forest",
    "fried": "lightgbm",
    "house_16H": "xgboost",
    "pol": "forest",
}
_NOTES = [
    "A model is trained on 1500 rows, and a path of prunings is computed once on the same rows by the default solver "
    "(at most 256 points, as in prune). Forests have 30 full trees; LightGBM 60 trees of 15 leaves; XGBoost 40 rounds "
    "of depth 4. Up to 14000 other rows are the pool: its losses are the truth. Each draw takes n validation rows from "
    "the pool with replacement.",
    "loss: max_loss_increase. present: the cheapest point whose loss, plus half a standard error, is within the limit. "
    "confidence: the cheapest point certified with a confidence of 0.95 by the step-down bootstrap.",
    "errors: the same for the zero-one loss of classifiers, which differs on few rows. confidence adds three rows with "
    "the largest possible difference, 1.",
    "changed: the share of rows whose predicted label differs from the unpruned model's; classification only. present: "
    "the cheapest point whose share is within the limit. confidence: exact binomial tests, one sequence per run.",
    "exceeded_%: draws in which the chosen point exceeds the limit in the pool. times_smaller: geometric mean of nodes "
    "before over nodes after. none_%: draws in which no pruning is certified, so that the model is returned as it is.",
    "Over 200 draws, a true rate of 5 % is measured with a standard error of 1.5 points.",
]


@dataclass(frozen=True, eq=False)
class Population:
    """The prunings of a model with their losses on every row of the pool; point 0 is the unpruned model.

    Attributes
    ----------
    path : Path
    losses : (n_rows, n_points)
    errors, changed : (n_rows, n_points), or None for regression
        Whether the predicted label is wrong, and whether it differs from that of the unpruned model.
    """

    path: Path
    losses: Floats
    errors: Floats | None = None
    changed: NDArray[np.bool_] | None = None


def run(quick: bool) -> Result:
    n_draws = 2 if quick else 200
    found, skipped = {}, []
    for name, kind in list(DATA_SETS.items())[3:4] if quick else DATA_SETS.items():
        try:
            found[name, kind] = load(data_sets()[name]).sample(400 if quick else 15_500, 0)
        except DataNotFoundError as error:
            skipped.append(str(error))
    parts = Parallel(n_jobs=1 if quick else 2)(
        delayed(measure)(name, kind, data, n_draws, quick) for (name, kind), data in found.items()
    )
    rows = [row for part in parts for row in part]
    findings = list(summarise(rows))
    targets = [
        Target(f"exceeded with confidence, {what}, largest of all rows, %", largest(rows, what), at_most=5.0)
        for what in ("loss", "errors", "changed")
    ]
    return Result(rows, n_draws, _NOTES, targets, findings, skipped)


def measure(name: str, kind: str, data: Data, n_draws: int, quick: bool) -> list[Row]:
    """Return the rows of one data set."""
    people = population(data, kind, quick)
    return [{"data": name, "model": kind, **row} for row in simulate(people, n_draws, quick)]


def population(data: Data, kind: str, quick: bool) -> Population:
    """Train a model, compute a path, and return the losses and changes of the other rows."""
    n_train = 200 if quick else 1_500
    train, pool = slice(None, n_train), slice(n_train, None)
    # Rows of a class that the model does not know are left out.
    known = np.isin(data.y, data.y[train]) | (data.task == "regression")
    y = np.unique(data.y[known], return_inverse=True)[1] if data.task == "classification" else data.y
    data = replace(data, X=data.X[known], y=y)
    model = model_of(kind, data.task, quick).fit(data.X[train], data.y[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = sc.prune_path(model, data.X[train], data.y[train]).thin(20 if quick else 256)
    loss, sample = loss_named(path.info.loss), read_sample(path.source, data.X[pool], data.y[pool])
    found = [path.on_rows(point, sample) for point in range(len(path))]
    losses = np.array([at.losses(loss) for at in found]).T
    if data.task == "regression":
        return Population(path, losses)
    labels = np.array([at.labels().ravel() for at in found]).T
    errors = (labels != data.y[pool][:, None]).astype(float)
    return Population(path, losses, errors, labels != labels[:, :1])


def model_of(kind: str, task: str, quick: bool) -> Any:
    """Return an unfitted model."""
    classes = task == "classification"
    if kind == "forest":
        return (RandomForestClassifier if classes else RandomForestRegressor)(3 if quick else 30, random_state=0)
    if kind == "lightgbm":
        booster = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
        return booster(n_estimators=60, num_leaves=15, verbose=-1, n_jobs=1)
    return (xgboost.XGBClassifier if classes else xgboost.XGBRegressor)(
        n_estimators=40, max_depth=4, learning_rate=0.2, n_jobs=1
    )


def simulate(people: Population, n_draws: int, quick: bool) -> Iterator[Row]:
    """Yield, for each limit and number of rows, how often each rule exceeds the limit, and how far it prunes."""
    for what, limits in {"loss": _LIMITS, "errors": _LIMITS, "changed": _CHANGES}.items():
        values = {"loss": people.losses, "errors": people.errors, "changed": people.changed}[what]
        for limit in limits if values is not None else ():
            if what == "changed":
                exceeds = values.mean(axis=0) > limit
                rules: dict[str, Rule] = {"present": _few_changed, "confidence": _certified_changed}
            else:
                exceeds = values.mean(axis=0) > (1 + limit) * values[:, 0].mean()
                rules = {"present": _present, "confidence": _certified_errors if what == "errors" else _certified}
            for n_rows in _ROWS[:1] if quick else _ROWS:
                drawing = {"what": what, "limit_%": 100 * limit, "rows": n_rows}
                yield {**drawing, **outcome(people.path, values, exceeds, rules, limit, n_rows, n_draws)}


Rule = Callable[[Path, NDArray[Any], float, np.random.Generator], int]
"""Gets a path, the losses or changes of the validation rows, a limit and a generator; returns a point."""


def outcome(
    path: Path,
    values: NDArray[Any],
    exceeds: NDArray[np.bool_],
    rules: dict[str, Rule],
    limit: float,
    n_rows: int,
    n_draws: int,
) -> Row:
    """Return the rates and sizes of the points that the rules choose on the same draws."""
    rng = np.random.default_rng(0)
    nodes = path.table["n_nodes"]
    chosen: dict[str, list[int]] = {name: [] for name in rules}
    for _ in range(n_draws):
        drawn = values[rng.integers(0, len(values), n_rows)]
        for name, rule in rules.items():
            chosen[name].append(rule(path, drawn, limit, rng))
    row: Row = {}
    for name, points in chosen.items():
        row[f"{name}_exceeded_%"] = 100 * float(np.mean(exceeds[points] & (np.array(points) > 0)))
        row[f"{name}_times_smaller"] = float(np.exp(np.mean(np.log(nodes[0] / nodes[points]))))
    row["confidence_none_%"] = 100 * float(np.mean(np.array(chosen["confidence"]) == 0))
    return row


def _present(path: Path, losses: Floats, limit: float, rng: np.random.Generator) -> int:
    increase_se = (losses - losses[:, :1]).std(axis=0) / np.sqrt(len(losses))
    table = {**path.table, "loss": losses.mean(axis=0), "increase_se": increase_se}
    return choose(table, path.info, {"max_loss_increase": limit}, guard=0.5)


def _certified(path: Path, losses: Floats, limit: float, rng: np.random.Generator, largest: float | None = None) -> int:
    differences = losses[:, 1:] - (1 + limit) * losses[:, :1]
    return cheapest(path, certify_mean(differences.T, _CONFIDENCE, rng, largest=largest).certified)


def _certified_errors(path: Path, losses: Floats, limit: float, rng: np.random.Generator) -> int:
    return _certified(path, losses, limit, rng, largest=1.0)


def _few_changed(path: Path, changed: NDArray[np.bool_], limit: float, rng: np.random.Generator) -> int:
    return cheapest(path, changed[:, 1:].mean(axis=0) <= limit)


def _certified_changed(path: Path, changed: NDArray[np.bool_], limit: float, rng: np.random.Generator) -> int:
    runs, nodes = runs_of(path)[1:], path.table["n_nodes"][1:]
    return cheapest(
        path, certify_changed(changed[:, 1:].sum(axis=0), len(changed), runs, nodes, limit, _CONFIDENCE).certified
    )


def runs_of(path: Path) -> NDArray[np.intp]:
    """Return the number of the solver's run for each point."""
    columns = np.array([path.table[name] for name in path.info.runs]).reshape(len(path.info.runs), len(path))
    return np.unique(columns, axis=1, return_inverse=True)[1]


def cheapest(path: Path, allowed: NDArray[np.bool_]) -> int:
    """Return the cheapest of the allowed points, which are numbered from 1; 0, the unpruned model, without any."""
    points = np.flatnonzero(allowed) + 1
    return int(points[path.table["cost"][points].argmin()]) if len(points) else 0


def summarise(rows: list[Row]) -> Iterator[Row]:
    """Yield means over data sets for each limit and number of rows."""
    by = ("what", "limit_%", "rows")
    for key in dict.fromkeys(tuple(row[name] for name in by) for row in rows):
        same = [row for row in rows if tuple(row[name] for name in by) == key]
        mean: Row = {}
        for rule in ("present", "confidence"):
            exceeded = [row[f"{rule}_exceeded_%"] for row in same]
            mean[f"{rule}_exceeded_%"] = float(np.mean(exceeded))
            mean[f"{rule}_worst_%"] = float(max(exceeded))
            mean[f"{rule}_times_smaller"] = float(
                np.exp(np.mean(np.log([row[f"{rule}_times_smaller"] for row in same])))
            )
        yield {**dict(zip(by, key, strict=True)), **mean}


def largest(rows: list[Row], what: str) -> float | None:
    """Return the largest rate with confidence."""
    return max((row["confidence_exceeded_%"] for row in rows if row["what"] == what), default=None)


TABLE = Table("confidence", "How often a chosen pruning exceeds its limit in truth", run)
