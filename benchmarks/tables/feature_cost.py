"""Reproduce table 1 of Nan, Wang and Saligrama 2016 and the curves of Dercksen 2017, and compare real-price budgets."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.feature_contest import POINTS, Contest, PriceList
from benchmarks.feature_curves import (
    Floats,
    cheapest,
    divide,
    error_of,
    grow,
    match,
    part,
    spread,
    trace,
    vote_error,
)
from benchmarks.load import SHARED, Data, DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from secateur.costs import FeatureCost
from secateur.solvers import MinCut
from secateur.training import BudgetForestClassifier

_SCOPES: tuple[Any, ...] = ("ensemble", "individual")
_LEVELS = ("low", "high")


class Paper(NamedTuple):
    """Values of table 1 of the paper for a data set: errors, and costs in % of the unpruned one, by level and scope."""

    n_trees: int
    cost: float
    error: float
    errors: dict[str, tuple[float, float]]
    costs: dict[str, tuple[float, float]]

    def rise(self, level: str) -> float:
        """Return how far a level is above the unpruned error, the mean of both scopes; at least 0."""
        return max(0.0, float(np.mean(self.errors[level])) - self.error)


_PAPER = {
    "sonar": Paper(
        90,
        49.9715,
        0.1539,
        {"low": (0.1838, 0.1890), "high": (0.2121, 0.2139)},
        {"low": (45.20, 74.31), "high": (16.48, 28.11)},
    ),
    "heart": Paper(
        90,
        12.1670,
        0.1721,
        {"low": (0.1711, 0.1719), "high": (0.1977, 0.1973)},
        {"low": (73.26, 96.20), "high": (47.75, 75.86)},
    ),
    "covertype": Paper(
        40,
        13.9005,
        0.1122,
        {"low": (0.1135, 0.1137), "high": (0.1220, 0.1228)},
        {"low": (88.10, 93.24), "high": (65.16, 78.82)},
    ),
}
_QUICK_PAPER = {"breast_cancer": _PAPER["sonar"]._replace(n_trees=5)}
_REPEATS = {"sonar": 100, "heart": 100, "covertype": 10}
"""Of 10 folds each, but for covertype, which is drawn anew each time."""
_DRAWN = {"covertype": (8_000, 10_000)}
"""How many rows train, and how many test."""
_THESIS = {"iris": 0.97, "glass": 0.766, "vehicle": 0.712}
_SPLITS = 20
_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
_PRICED = {"heart": 20, "ann_thyroid": 10}
"""Random splits of each."""
_BUDGETS = (0.1, 0.25, 0.5, 0.75, 1.0)
_METHODS = ("unpruned", "prune", "ensemble", "individual", "top_k", "per_price")
_NOTES = [
    "ensemble, individual: MinCut(scope=...). error: fraction of test rows with a wrong label, predicted by the mean "
    "of the leaf distributions, as in the paper of 2016. cost: price of the distinct features of a test row; cost_%: "
    "in % of that of the unpruned forest. ±: standard deviations over folds and repeats, not of the mean.",
    "Nan 2016: the forests are BudgetRF's, BudgetForestClassifier(alpha=0), as in the paper. sonar and heart, 90 "
    f"trees, {_REPEATS['sonar']} repeats of 10-fold cross-validation, as in the paper; covertype, 40 trees, "
    f"{_DRAWN['covertype'][0]} training and {_DRAWN['covertype'][1]} test rows drawn {_REPEATS['covertype']} times "
    "(the paper: the splits of Nan 2015, 10 runs). Every feature costs 1. As in the paper's formulas, paths are made "
    "on the training rows, each node predicting their most frequent label (errors='train'). As in its table, levels "
    "are matched on test rows: errors and costs are averaged over folds, penalty by penalty, and the cheapest penalty "
    "is selected at which the mean error exceeds the unpruned one by the same amount as in the paper (mean of its two "
    "methods, at least 0), interpolated linearly between penalties. This selection uses the test rows, and inside a "
    f"jump of the path it mixes both ends. At most {POINTS} points of a path are evaluated, evenly spread over the "
    "logarithm of the nodes. Left out: MiniBooNE and CIFAR, which are not among the data sets of these "
    "benchmarks.",
    "chosen_rise, chosen_cost_%: without use of the test rows. A quarter of the training rows is held out before "
    "another forest is trained. In each fold the cheapest point is selected whose error on the held-out rows "
    "exceeds that of the unpruned forest by at most the same rise; chosen_rise is the resulting increase of the "
    "test error.",
    "Dercksen 2017: RandomForestClassifier with default settings except for the number of trees; iris, glass and "
    "vehicle, 20 trees as in its example. Its accuracies of unpruned forests (97, 76.6, "
    f"71.2 %) are shown as errors under paper_error; {_SPLITS} random splits, 70 % of the rows for training and "
    "pruning, 30 % for testing. Every feature costs 1. limit: the position of the point on the path, from 0 (unpruned) "
    "to 1 (most pruned). vote_error: the error if the majority vote of the trees predicts. In the thesis every tree "
    "pays for its own features, which is the objective of individual; the cost shown is that of distinct features.",
    "Second grid, real prices: heart (Statlog) with prices and groups of heart_costs.csv, ann_thyroid with those of "
    "ann_thyroid_costs.csv and without FTI, which has no price. RandomForestClassifier, 100 trees; random splits, "
    f"{_PRICED['heart']} of heart and {_PRICED['ann_thyroid']} of ann_thyroid, 60 % training, 20 % validation, 20 % "
    "test rows. budget_%: in % of the cost of the unpruned forest, both on training rows; within the budget the point "
    "with the lowest validation error is selected, and ties go to the cheapest. cost %: on test rows, which may be "
    "slightly above the budget. prune: "
    "prune(model, X_train, y_train, cost=FeatureCost(...), max_cost=budget, validation=(X_val, y_val)), whose default "
    "joins the points of MinCut and CostDescent. ensemble, individual: the same with these solvers.",
    "top_k: a forest retrained on the most important features, added in decreasing order while the budget allows; "
    "per_price: the same in the order of importance / additional price. Each is the best on validation rows among the "
    "forests for 5, 10, ... % up to the budget, a constant and, at 100 %, the unpruned forest. Every row pays for "
    "all features of a retrained forest. best: the method with the lowest mean error; empty if several tie.",
]


class Task(NamedTuple):
    """A unit of work: the part of the table it belongs to, a function, and its arguments."""

    kind: str
    work: Callable[..., list[Row]]
    given: tuple[Any, ...]


def run(quick: bool) -> Result:
    tasks, skipped = list_tasks(quick)
    outcomes = Parallel(1 if quick else 2, verbose=0 if quick else 5, batch_size=1)(
        delayed(_quietly)(task) for task in tasks[::-1]
    )
    found: dict[str, list[Row]] = {"paper": [], "thesis": [], "prices": []}
    for task, outcome in zip(tasks, outcomes[::-1], strict=True):
        found[task.kind] += outcome
    rows = [*paper_rows(found["paper"], _QUICK_PAPER if quick else _PAPER), *thesis_rows(found["thesis"])]
    repeats = 1 if quick else max(*_REPEATS.values(), *_PRICED.values())
    return Result(rows, repeats, _NOTES, targets(rows, quick), price_rows(found["prices"]), skipped)


def list_tasks(quick: bool) -> tuple[list[Task], list[str]]:
    """Return all units of work, the longest last, and the omitted data sets."""
    tasks: list[Task] = []
    skipped: list[str] = []
    for name, paper in (_QUICK_PAPER if quick else _PAPER).items():
        data = _load(name, quick, skipped)
        for seed in range(_REPEATS.get(name, 1)) if data else ():
            drawn = _DRAWN.get(name)
            rows = data.sample(sum(drawn), seed) if drawn else data
            tasks.append(Task("paper", measure_paper, (rows, paper, seed, drawn and drawn[0])))
    for name in ("iris",) if quick else _THESIS:
        data = _load(name, quick, skipped)
        for seed in range(1 if quick else _SPLITS) if data else ():
            tasks.append(Task("thesis", measure_thesis, (data, seed, 3 if quick else 20)))
    for name, n_splits in ({"breast_cancer": 1} if quick else _PRICED).items():
        prices, data = _invented() if quick else _read_prices(name, skipped), _load(name, quick, skipped)
        if prices and data:
            tasks += [Task("prices", measure_prices, (data, prices, s, 5 if quick else 100)) for s in range(n_splits)]
    return tasks, list(dict.fromkeys(skipped))


def _load(name: str, quick: bool, skipped: list[str]) -> Any:
    """Return a data set, a part of it for quick runs; None if it is not available."""
    try:
        data = load(data_sets()[name])
    except DataNotFoundError as error:
        skipped.append(str(error))
        return None
    return data.sample(150, seed=0) if quick else data


def _read_prices(name: str, skipped: list[str]) -> PriceList | None:
    file = SHARED / "costs" / f"{name}_costs.csv"
    if file.is_file():
        return PriceList.read(file)
    skipped.append(f"{name} at real prices: there is no {file}")
    return None


def _invented() -> PriceList:
    """Return prices of 30 features to try resources with: 1, 2 or 3, and 5 for any of the first three."""
    return PriceList(np.arange(30), np.arange(30.0) % 3 + 1, {"first": (5.0, [0, 1, 2])})


def _quietly(task: Task) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return task.work(*task.given)


def measure_paper(data: Data, paper: Paper, seed: int, n_train: int | None) -> list[Row]:
    """Return curves on test rows, and points selected on validation rows, for every fold and scope of one repeat."""
    rows = []
    for train, test in _folds(data, seed, n_train):
        fewer, validation = divide(train, 0.25, seed)
        whole, part_of_it = (_budget_forest(rows, paper.n_trees, seed) for rows in (train, fewer))
        for scope in _SCOPES:
            curve = trace(_path(whole, train, scope).thin(POINTS), test, FeatureCost())
            path = _path(part_of_it, fewer, scope).thin(POINTS)
            judged, tested = (trace(path, some, FeatureCost()) for some in (validation, test))
            chosen = {level: cheapest(judged, tested, paper.rise(level)) for level in _LEVELS}
            rows.append({"data": data.name, "scope": scope, "curve": curve, "chosen": chosen})
    return rows


def _folds(data: Data, seed: int, n_train: int | None) -> Iterator[tuple[Data, Data]]:
    """Yield rows to train and to test: ten folds, or the first rows and the others."""
    if n_train is not None:
        yield part(data, np.arange(n_train)), part(data, np.arange(n_train, len(data.y)))
        return
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(data.X, data.y):
        yield part(data, train), part(data, test)


def _budget_forest(data: Data, n_trees: int, seed: int) -> Any:
    return BudgetForestClassifier(n_estimators=n_trees, random_state=seed).fit(data.X, data.y)


def _path(model: Any, rows: Data, scope: Any) -> sc.Path:
    """Return a path as the paper makes it."""
    return sc.prune_path(model, rows.X, rows.y, solver=MinCut(scope=scope, errors="train"))


def paper_rows(found: list[Row], papers: dict[str, Paper]) -> Iterator[Row]:
    """Yield the rows of table 1: unpruned, and each scope at each level."""
    for name, paper in papers.items():
        same = {scope: [row for row in found if (row["data"], row["scope"]) == (name, scope)] for scope in _SCOPES}
        if not same["ensemble"]:
            continue
        common = {"of": "Nan 2016", "data": name}
        before = spread([(row["curve"].error[0], row["curve"].cost[0]) for row in same["ensemble"]])
        yield {
            **common,
            "method": "unpruned",
            "limit": "",
            **before,
            "cost_%": 100.0,
            "paper_error": paper.error,
            "paper_cost": paper.cost,
        }
        for level in _LEVELS:
            for k, scope in enumerate(_SCOPES):
                matched = match([row["curve"] for row in same[scope]], paper.rise(level))
                chosen = spread([row["chosen"][level] for row in same[scope]])
                yield {
                    **common,
                    "method": scope,
                    "limit": f"{level}, +{paper.rise(level):.4f}",
                    **matched,
                    "cost_%": 100 * matched["cost"] / before["cost"],
                    "paper_error": paper.errors[level][k],
                    "paper_cost_%": paper.costs[level][k],
                    "chosen_rise": chosen["error"],
                    "±_rise": chosen["±_error"],
                    "chosen_cost_%": 100 * chosen["cost"],
                    "±_chosen_cost": 100 * chosen["±_cost"],
                }


def measure_thesis(data: Data, seed: int, n_trees: int) -> list[Row]:
    """Return the errors of mean and vote, and the cost, at fixed fractions of the path of each scope."""
    train, test = divide(data, 0.3, seed)
    model = grow(train, n_trees, seed)
    rows = []
    for scope in _SCOPES:
        path = _path(model, train, scope)
        for share in _SHARES:
            small = path[round(share * (len(path) - 1))].to_model()
            errors = {"error": error_of(small, test), "vote_error": vote_error(small, test)}
            cost = FeatureCost().mean_price(small, test.X)
            rows.append({"data": data.name, "scope": scope, "share": share, **errors, "cost": cost})
    return rows


def thesis_rows(found: list[Row]) -> Iterator[Row]:
    """Yield the means over splits: unpruned, and for each scope and fraction of the path."""
    for name, scope, share in dict.fromkeys((row["data"], row["scope"], row["share"]) for row in found):
        if share == 0 and scope != _SCOPES[0]:
            continue  # unpruned is unpruned
        same = [row for row in found if (row["data"], row["scope"], row["share"]) == (name, scope, share)]
        whole = [row["cost"] for row in found if (row["data"], row["scope"], row["share"]) == (name, scope, 0)]
        values = spread([(row["error"], row["cost"]) for row in same])
        yield {
            "of": "Dercksen 2017",
            "data": name,
            "method": scope if share else "unpruned",
            "limit": f"{share:g}" if share else "",
            **values,
            "cost_%": 100 * values["cost"] / float(np.mean(whole)),
            "paper_error": None if share else 1 - _THESIS[name],
            "vote_error": float(np.mean([row["vote_error"] for row in same])),
        }


def measure_prices(data: Data, prices: PriceList, seed: int, n_trees: int) -> list[Row]:
    """Return the results of every method within every budget on one random split."""
    rest, test = divide(replace(data, X=np.ascontiguousarray(data.X[:, prices.columns])), 0.2, seed)
    train, validation = divide(rest, 0.25, seed)
    contest = Contest(grow(train, n_trees, seed), train, validation, test, prices, seed)
    return [{"data": data.name, **row} for row in contest.outcomes(_BUDGETS)]


def price_rows(found: list[Row]) -> list[Row]:
    """Return means and standard deviations over splits, a column for each method."""
    rows = []
    for name, budget in dict.fromkeys((row["data"], row["budget"]) for row in found):
        same = [row for row in found if (row["data"], row["budget"]) == (name, budget)]
        errors, costs = ({method: _column(same, method, what) for method in _METHODS} for what in ("error", "cost"))
        means = {method: float(values.mean()) for method, values in errors.items()}
        common = {"data": name, "budget_%": round(100 * budget)}
        rows += [
            {**common, "measure": "error", **means, "best": _best(means)},
            {**common, "measure": "±", **{method: float(values.std()) for method, values in errors.items()}},
            {**common, "measure": "cost %", **{method: 100 * float(one.mean()) for method, one in costs.items()}},
            {**common, "measure": "± cost", **{method: 100 * float(one.std()) for method, one in costs.items()}},
        ]
    return rows


def _best(means: dict[str, float]) -> str | None:
    """Return the method with the lowest error, None in case of a tie."""
    errors = {method: error for method, error in means.items() if method != "unpruned"}
    best = [method for method, error in errors.items() if error <= min(errors.values()) + 1e-12]
    return best[0] if len(best) == 1 else None


def _column(rows: list[Row], method: str, what: str) -> Floats:
    return np.array([row[what] for row in rows if row["method"] == method])


def targets(rows: list[Row], quick: bool) -> list[Target]:
    """Return the target from the paper: at the same error, pruning as an ensemble is always cheaper."""
    levels = {(row["data"], row["limit"]) for row in rows if row["of"] == "Nan 2016" and row["limit"]}
    costs = {(row["data"], row["limit"], row["method"]): row["cost_%"] for row in rows}
    cheaper = sum(costs[*level, "ensemble"] < costs[*level, "individual"] for level in levels)
    n_levels = len(_PAPER) * len(_LEVELS)
    what = f"matched error levels (of {n_levels}) at which ensemble is cheaper than individual, as in the paper"
    return [Target(what, None if quick or len(levels) < n_levels else cheaper, at_least=n_levels)]


TABLE = Table("feature_cost", "Pruning by feature cost", run)
