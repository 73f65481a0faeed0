"""Certify a bounded loss by betting, which holds for any number of rows, and compare it with the bootstrap."""

from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.discovery import Table, data_sets
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.tables.confidence import Population, cheapest, population, runs_of
from secateur.path.confidence import certify_mean

Floats = NDArray[np.float64]

_DATA = ("adult", "covertype", "letter", "satimage", "pendigits")
_LIMITS = (0.02, 0.05)
_ROWS = (200, 1000, 5000)
_CONFIDENCE = 0.95
_LARGEST = 2.0
"""The largest squared error of class probabilities, summed over the classes."""
_BETS = 0.9
"""Bets are at most this share of the largest that cannot lose everything (Waudby-Smith and Ramdas 2024, section 4)."""
_NOTES = [
    "Random forests of 30 full trees are trained on 1500 rows. A path of prunings is computed once on the same rows "
    "by the default solver (at most 256 points). Predictions are class probabilities, so that squared errors are "
    "between 0 and 2. Up to 14000 other rows are the pool: its losses are the truth. Each draw takes n validation rows "
    "from the pool with replacement. The limit is an increase of the loss.",
    "bootstrap: the step-down test that confidence=0.95 uses; it holds for many rows. betting: one-sided bets with the "
    "predictable plug-in of Waudby-Smith and Ramdas (2024, section 4); each run of the solver, from its largest point "
    "down to the first that fails, has the same share of the error; it holds for any number of rows.",
    "exceeded_%: draws in which the chosen point exceeds the limit in the pool. times_smaller: geometric mean of nodes "
    "before over nodes after.",
]


def run(quick: bool) -> Result:
    n_draws = 2 if quick else 60
    found, skipped = {}, []
    for name in _DATA[3:4] if quick else _DATA:
        try:
            found[name] = load(data_sets()[name]).sample(400 if quick else 15_500, 0)
        except DataNotFoundError as error:
            skipped.append(str(error))
    parts = Parallel(n_jobs=1 if quick else 2)(
        delayed(measure)(name, data, n_draws, quick) for name, data in found.items()
    )
    rows = [row for part in parts for row in part]
    targets = [
        Target(f"exceeded by {rule}, largest of all rows, %", largest(rows, f"{rule}_exceeded_%"), at_most=5.0)
        for rule in ("bootstrap", "betting")
    ]
    return Result(rows, n_draws, _NOTES, targets, list(summarise(rows)), skipped)


def measure(name: str, data: Data, n_draws: int, quick: bool) -> list[Row]:
    """Return the rows of one data set."""
    people = population(data, "forest", quick)
    return [{"data": name, **row} for row in simulate(people, n_draws, quick)]


def simulate(people: Population, n_draws: int, quick: bool) -> Iterator[Row]:
    """Yield, for each limit and number of rows, how often each test exceeds the limit, and how far it prunes."""
    path, losses, nodes = people.path, people.losses, people.path.table["n_nodes"]
    runs, truth = runs_of(path)[1:], losses.mean(axis=0)
    for limit in _LIMITS[:1] if quick else _LIMITS:
        for n_rows in _ROWS[:1] if quick else _ROWS:
            rng = np.random.default_rng(0)
            chosen: dict[str, list[int]] = {"bootstrap": [], "betting": []}
            for _ in range(n_draws):
                drawn = losses[rng.integers(0, len(losses), n_rows)]
                differences = (drawn[:, 1:] - (1 + limit) * drawn[:, :1]).T
                chosen["bootstrap"].append(cheapest(path, certify_mean(differences, _CONFIDENCE, rng).certified))
                chosen["betting"].append(cheapest(path, bet(differences, limit, runs, nodes[1:])))
            row: Row = {"limit_%": 100 * limit, "rows": n_rows}
            for rule, points in chosen.items():
                row[f"{rule}_exceeded_%"] = 100 * float(np.mean(truth[points] > (1 + limit) * truth[0]))
                row[f"{rule}_times_smaller"] = float(np.exp(np.mean(np.log(nodes[0] / nodes[points]))))
                row[f"{rule}_none_%"] = 100 * float(np.mean(np.array(points) == 0))
            yield row


def bet(differences: Floats, limit: float, runs: NDArray[np.intp], nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the certified points: those of each run, from the largest down, before the first that is not."""
    alpha = (1 - _CONFIDENCE) / len(np.unique(runs))
    low, high = -(1 + limit) * _LARGEST, _LARGEST
    passed = capital((differences - low) / (high - low), -low / (high - low), alpha) >= 1 / alpha
    certified = np.zeros(len(runs), bool)
    for one in np.unique(runs):
        points = np.flatnonzero(runs == one)
        points = points[np.argsort(-nodes[points], kind="stable")]
        certified[points] = np.logical_and.accumulate(passed[points])
    return certified


def capital(values: Floats, mean: float, alpha: float) -> Floats:
    """Return the largest capital of bets that the mean of numbers in [0, 1] is below `mean`, (n_points,).

    If it is not, the capital reaches 1 / alpha with probability at most alpha (Ville).
    """
    n_rows = values.shape[1]
    seen = np.arange(1, n_rows + 1)
    centre = (0.5 + np.cumsum(values, axis=1)) / (seen + 1)
    variance = (0.25 + np.cumsum((values - centre) ** 2, axis=1)) / (seen + 1)
    # A bet uses the rows before.
    before = np.hstack([np.full((len(values), 1), 0.25), variance[:, :-1]])
    bets = np.minimum(np.sqrt(2 * np.log(1 / alpha) / (n_rows * before)), _BETS / (1 - mean))
    return np.asarray(np.exp(np.cumsum(np.log1p(bets * (mean - values)), axis=1).max(axis=1)))


def summarise(rows: list[Row]) -> Iterator[Row]:
    """Yield means over data sets for each limit and number of rows."""
    for limit, n_rows in dict.fromkeys((row["limit_%"], row["rows"]) for row in rows):
        same = [row for row in rows if (row["limit_%"], row["rows"]) == (limit, n_rows)]
        mean: Row = {"limit_%": limit, "rows": n_rows}
        for rule in ("bootstrap", "betting"):
            mean[f"{rule}_exceeded_%"] = float(np.mean([row[f"{rule}_exceeded_%"] for row in same]))
            sizes = np.log([row[f"{rule}_times_smaller"] for row in same])
            mean[f"{rule}_times_smaller"] = float(np.exp(sizes.mean()))
        yield mean


def largest(rows: list[Row], column: str) -> float | None:
    """Return the largest number of a column."""
    return max((row[column] for row in rows), default=None)


TABLE = Table("betting", "A bounded loss certified by betting or by the bootstrap", run)
