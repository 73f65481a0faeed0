"""Run the two experiments of Liu and Mazumder 2023, section 4: data, folds, means and targets."""

import warnings
from itertools import groupby
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.discovery import data_sets
from benchmarks.ensemble_contest import PARTS, contest_bagging, contest_boosting
from benchmarks.folds import make_fold
from benchmarks.load import DataNotFoundError, load
from benchmarks.results import Result, Row, Target

_DATA = (
    "humandevel",
    "triazines",
    "tecator",
    "autoMpg",
    "no2",
    "boston",
    "stock",
    "socmob",
    "Moneyball",
    "balloon",
    "abalone",
    "mercedes",
    "wine_quality",
    "wind",
    "cpu_small",
    "puma32H",
    "bank32nh",
    "pol",
    "houses",
    "house_16H",
    "2dplanes",
)
_QUICK = ("diabetes",)
_FOLDS = 5
_SMALL, _REPEATS = 1_000, 5
"""Data sets with fewer rows than _SMALL have small test folds, so cross-validation is repeated _REPEATS times."""
_CONTESTS: dict[str, tuple[Any, int]] = {"boosting": (contest_boosting, 2_000), "bagging": (contest_bagging, 1_000)}
"""The function of each experiment, and its maximum number of rows."""
_METHODS = (
    "auto",
    "node_refit",
    "node_keep",
    "ForestPrune",
    "FP_polished",
    "TreeLasso",
    "BestSubset",
    "FewerTrees",
    "WeakestLink",
    "grown_small",
)
_UNAVAILABLE = ["space_ga, mtp, kin8nm and elevators, used in the paper: not available in datasets/"]
_COMMON = [
    "Five folds: a fifth of the rows for testing, a fifth for validation, the rest for training. Text is encoded as "
    "integers, missing values are replaced by means, targets have variance 1; all statistics come from the training "
    "rows, while the paper's code scales each part separately.",
    "Every path is computed on the training rows of the ensemble (half of the validation rows instead was far worse "
    "for forests), and points are selected on the validation rows. After selection, auto and its parts are refitted on "
    "both, as prune() does by default when it holds rows out. Errors are mean squared errors on the test rows; a "
    "constant has an error of about 1.",
    "auto: the default of prune() for ensembles; its ridges were chosen on other data sets. node_refit and node_keep "
    "are its parts: only ridge 25, and only original values. ForestPrune: layers and original values; FP_polished: "
    "with tree weights by ridge regression, penalty 0.01 as in the paper's code. BestSubset: one second per path. "
    "grown_small: the best of boosters (depth 1, 2, 3, 5; learning rate 0.1, 0.3, 1) and forests (depth 4, 8, "
    "12, 20; 1 to 100 trees) trained directly.",
    "rival: the best of the other methods except the parts of auto. lead_%: the advantage of auto, in % of the rival's "
    "error (of its times smaller; in percentage points for change %); ±: standard errors over folds.",
    "Second grid: means over data sets (geometric for times smaller) and the number of data sets on which auto is the "
    "best; ± is the standard error over data sets of the lead over the best other column. seconds: processor time per "
    "fold.",
]
_NOTES = {
    "boosting": [
        f"250 trees of depth 5, learning rate 0.1, subsample 0.25; at most {_CONTESTS['boosting'][1]} rows, to limit "
        "the run time.",
        f"For data sets of fewer than {_SMALL} rows the five-fold cross-validation is repeated {_REPEATS} times, "
        "because their test folds are small.",
        "error: test error of the model with the lowest validation loss within the node budget, or of any size (best). "
        "The paper's code selects the largest model within the budget, and so does prune(): for each ridge of auto the "
        "largest model is a candidate, and the validation rows choose the ridge (likewise for the parts of auto). "
        "auto, ForestPrune and BestSubset are given the budget.",
    ],
    "bagging": [
        f"500 trees of depth at most 20, √features per split; at most {_CONTESTS['bagging'][1]} rows, to limit the run "
        "time.",
        "times smaller: nodes before / nodes after pruning (geometric means) for the smallest model whose validation "
        "loss, plus half a standard error as in prune(), exceeds that of the ensemble by at most the limit. The limit "
        "is a fraction of the ensemble's loss; in the paper's code it is a fraction of the target's variance, which "
        "allows more. change %: change of the test error of that model. same size %: change of the test error of the "
        "model that is best on validation with at most as many nodes as auto has at this limit. If no model is small "
        "enough, a constant is used.",
    ],
}


def run(kind: str, quick: bool) -> Result:
    """Return the result of one experiment, "boosting" or "bagging"."""
    found, skipped = find_data(_QUICK if quick else _DATA, _UNAVAILABLE)
    tasks = [(name, kind, fold) for name in found for fold in range(_n_folds(name, kind))]
    if quick:
        tasks = [task for task in tasks if task[2] == 0]
    outcomes = Parallel(1 if quick else 2, verbose=0 if quick else 5, batch_size=1)(
        delayed(measure)(*task, quick) for task in tasks[::-1]
    )
    rows = summarise([row for outcome in outcomes[::-1] for row in outcome])
    summary = mean_rows(rows)
    seconds = mean_seconds([row for outcome in outcomes for row in outcome])
    targets = promises(summary, len(found))
    return Result(rows, _FOLDS, _NOTES[kind] + _COMMON, targets, summary + seconds, skipped)


def _n_folds(name: str, kind: str) -> int:
    """Return the number of folds over all repeats; each repeat has five folds."""
    small = kind == "boosting" and len(load(data_sets()[name]).y) < _SMALL
    return _FOLDS * (_REPEATS if small else 1)


def find_data(names: tuple[str, ...], unavailable: list[str]) -> tuple[list[str], list[str]]:
    """Return the data sets that can be loaded; and `unavailable` with the reasons why others cannot."""
    found, skipped = [], list(unavailable)
    for name in names:
        try:
            load(data_sets()[name])
            found.append(name)
        except DataNotFoundError as error:
            skipped.append(str(error))
    return found, skipped


def measure(name: str, kind: str, fold: int, quick: bool) -> list[Row]:
    """Return the results of every method on one fold."""
    contest, most_rows = _CONTESTS[kind]
    data = load(data_sets()[name]).sample(300 if quick else most_rows, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows: list[Row] = contest(make_fold(data, fold % _FOLDS, _FOLDS, seed=fold // _FOLDS), quick)
    return [{**row, "rows": len(data.y), "features": data.X.shape[1], "fold": fold} for row in rows]


def summarise(outcomes: list[Row]) -> list[Row]:
    """Return a row for each experiment, measure, limit and data set, with the means of all methods over folds."""
    rows = []
    for (experiment, measure, limit, data), some in groupby(_sorted(outcomes), _key):
        same = list(some)
        values = {name: [row for row in same if row["method"] == name] for name in _METHODS}
        common = {"experiment": experiment, "measure": "", "limit": limit, "data": data}
        common |= {name: same[0][name] for name in ("rows", "features")}
        for shown, of_row in _MEASURES[measure].items():
            columns = {name: np.array([of_row(row) for row in found]) for name, found in values.items()}
            unpruned = np.mean([row["full_error"] for row in same]) if shown == "error" else None
            rows.append({**common, "measure": shown, "unpruned": unpruned, **_compare(shown, columns)})
    return rows


_MEASURES: dict[str, dict[str, Any]] = {
    "error": {"error": lambda row: row["error"]},
    "within": {
        "times smaller": lambda row: np.log(row["full_nodes"] / row["nodes"]),
        "change %": lambda row: 100 * (row["error"] / row["full_error"] - 1),
    },
    "same size": {"same size %": lambda row: 100 * (row["error"] / row["full_error"] - 1)},
}
"""The columns of each measure; `times smaller` is averaged as a logarithm."""


def _key(row: Row) -> tuple[str, str, str, str]:
    return row["experiment"], row["measure"], row["limit"], row["data"]


def _sorted(outcomes: list[Row]) -> list[Row]:
    """Return the rows ordered by the first occurrence of their measures, limits and data sets."""
    rank = {key: i for i, key in enumerate(dict.fromkeys(_key(row)[part] for part in range(4) for row in outcomes))}
    return sorted(outcomes, key=lambda row: [rank[key] for key in _key(row)])


def _compare(shown: str, columns: dict[str, Any]) -> Row:
    """Return the means, and the lead of auto over the best of the others."""
    sign = -1 if shown == "times smaller" else 1
    means = {name: float(values.mean()) for name, values in columns.items()}
    rival = min(
        (name for name in _METHODS if name != "auto" and name not in PARTS), key=lambda name: sign * means[name]
    )
    lead = sign * (columns[rival] - columns["auto"])
    if shown == "error":
        lead = 100 * lead / means[rival]
    if shown == "times smaller":
        lead = 100 * lead
        means = {name: float(np.exp(mean)) for name, mean in means.items()}
    error = lead.std(ddof=min(len(lead) - 1, 1)) / len(lead) ** 0.5
    return {**means, "rival": rival, "lead_%": float(lead.mean()), "±_lead": float(error)}


def mean_rows(rows: list[Row]) -> list[Row]:
    """Return the means over data sets, and how often auto is the best, by experiment, measure and limit."""
    found = []
    for key in dict.fromkeys((row["experiment"], row["measure"], row["limit"]) for row in rows):
        same = [row for row in rows if (row["experiment"], row["measure"], row["limit"]) == key]
        columns = {name: np.array([row[name] for row in same]) for name in _METHODS}
        if key[1] == "times smaller":
            columns = {name: np.log(values) for name, values in columns.items()}
        compared = _compare(key[1], columns)
        sign = -1 if key[1] == "times smaller" else 1
        own = sign * columns["auto"]
        others = {name: sign * values for name, values in columns.items() if name != "auto"}
        plain = np.min([values for name, values in others.items() if name not in PARTS], axis=0)
        found.append(
            {
                **dict(zip(("experiment", "measure", "limit"), key, strict=True)),
                "data_sets": len(same),
                **compared,
                "auto_best_on": int((own <= plain + 1e-12).sum()),
                "also_of_its_parts": int((own <= np.min(list(others.values()), axis=0) + 1e-12).sum()),
            }
        )
    return found


def mean_seconds(outcomes: list[Row]) -> list[Row]:
    """Return the mean processor time of each method per fold."""
    found = []
    for experiment in dict.fromkeys(row["experiment"] for row in outcomes):
        row: Row = {"experiment": experiment, "measure": "seconds"}
        for name in _METHODS:
            times = {
                (one["data"], one["fold"]): one["seconds"]
                for one in outcomes
                if one["experiment"] == experiment and one["method"] == name and one["seconds"] is not None
            }
            row[name] = float(np.mean(list(times.values()))) if times else None
        found.append(row)
    return found


def promises(summary: list[Row], n_data: int) -> list[Target]:
    """Return the targets: auto has the lowest error at every budget, and reduces forests by large factors."""
    found = []
    whole = n_data == len(_DATA)
    for row in summary:
        others = [row[name] for name in _METHODS if name != "auto"]
        if row["measure"] == "error":
            what = f"{row['experiment']}, {row['limit']}: mean test error of auto over that of the best other column"
            found.append(Target(what, row["auto"] / min(others) if whole else None, at_most=1.0))
        if row["measure"] == "times smaller" and row["limit"] == "5 %":
            what = f"{row['experiment']}, within {row['limit']}: nodes before / nodes after pruning by auto"
            found += [Target(what, row["auto"] if whole else None, at_least=bound) for bound in (20, 100)]
    return found
