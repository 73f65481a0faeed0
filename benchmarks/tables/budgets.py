"""Compare test errors within feature budgets: MinCut, CostDescent, retraining, LightGBM's penalties, BudgetRF."""

import io
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.budget_contest import SHARES, BudgetContest, best_within, unreached
from benchmarks.discovery import Table, data_sets
from benchmarks.feature_contest import PriceList
from benchmarks.feature_curves import error_of
from benchmarks.load import SHARED, DataNotFoundError, load
from benchmarks.results import Result, Row, Target

_DATA = (
    "sonar",
    "heart",
    "ann_thyroid",
    "breast_cancer",
    "digits",
    "spambase",
    "pendigits",
    "letter",
    "covertype",
)
_PRICED = {"heart": "heart_costs.csv", "ann_thyroid": "ann_thyroid_costs.csv"}
_SEEDS = 5
_TREES, _ROWS = 40, 4_000
_METHODS = (
    "cut_ensemble",
    "cut_individual",
    "cost_descent",
    "regrow",
    "top_k",
    "per_price",
    "lightgbm_cegb",
    "budget_rf",
    "budget_rf_cut",
)
_SHOWN = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
_NOTES = [
    f"RandomForestClassifier of {_TREES} trees; random splits of at most {_ROWS} rows, drawn again for each of "
    f"{_SEEDS} seeds: 40 % training, 20 % validation, 40 % test rows (60/20/20 for data sets below 1000 rows). heart "
    "and ann_thyroid have real prices and groups; in all other data sets every feature costs 1.",
    "Every method yields candidate models. Within a budget the candidate with the lowest validation error is "
    "selected; ties go to the cheapest. Every method also has a constant model of price 0 as a candidate. The price "
    "of a model is the mean price of the distinct features that a training row needs, computed in the same way for "
    "all methods. Budgets are 5, 10, … 100 % of the price of the unpruned forest.",
    "excess: test error minus that of the unpruned forest, averaged over the twenty budgets and then over seeds; ±: "
    "standard error over seeds. The following columns are test errors within some budgets. gap: the part of a "
    "budget that the most expensive candidate within it leaves unused; the largest over budgets, averaged over "
    "seeds, in units of the price of the most expensive feature with its group.",
    "cut_ensemble, cut_individual: MinCut. cost_descent: CostDescent given all budgets. regrow: the same with "
    "regrow=True, clones trained on fewer features and pruned. top_k, per_price: forests retrained on the most "
    "important features (by importance, or importance per price) within a budget. lightgbm_cegb: boosters of as "
    "many rounds with each of LightGBM's three penalties at eleven trade-offs. budget_rf: BudgetForestClassifier of "
    "1 to 40 trees, alpha 0, 2, 8; budget_rf_cut: those, and the largest pruned by MinCut, the pipeline of the "
    "paper.",
    "Small data sets have few validation rows: 42 in sonar, 54 in heart. seconds: processor time, of cost_descent "
    "and regrow together.",
]


def run(quick: bool) -> Result:
    found, skipped = [], []
    for name in ("breast_cancer",) if quick else _DATA:
        try:
            load(data_sets()[name])
            found.append(name)
        except DataNotFoundError as error:
            skipped.append(str(error))
    tasks = [(name, seed) for seed in range(1 if quick else _SEEDS) for name in found]
    outcomes = Parallel(1 if quick else 2, verbose=0 if quick else 10, batch_size=1)(
        delayed(measure)(name, seed, quick) for name, seed in tasks[::-1]
    )
    measured = [row for outcome in outcomes for row in outcome]
    rows = [summarise(name, method, measured) for name in found for method in ("unpruned", *_METHODS)]
    return Result(
        rows, 1 if quick else _SEEDS, _NOTES, targets(rows, found), overall(rows), skipped, draw(measured, found)
    )


def measure(name: str, seed: int, quick: bool) -> list[Row]:
    """Return the test errors of every method within budgets on one split."""
    prices = PriceList.read(SHARED / "costs" / _PRICED[name]) if name in _PRICED else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n_trees, n_rows = (5, 300) if quick else (_TREES, _ROWS)
        contest = BudgetContest.draw(load(data_sets()[name]), prices, n_trees, n_rows, seed)
        whole, unpruned = contest.whole, error_of(contest.model, contest.test)
        dearest = max(contest.prices.total((k,)) for k in range(len(contest.prices.prices)))
        budgets = [share * whole for share in SHARES]
        rows = [{"data": name, "method": "unpruned", "errors": [unpruned] * len(SHARES), "gap": None, "seconds": None}]
        seconds: dict[str, float] = {}
        for method, offers in contest.offers(seconds):
            errors = [best_within(offers, budget).error for budget in budgets]
            gap = unreached(offers, budgets) / dearest
            rows.append({"data": name, "method": method, "errors": errors, "gap": gap, "seconds": seconds[method]})
    return [{**row, "excess": float(np.mean(row["errors"])) - unpruned} for row in rows]


def summarise(data: str, method: str, measured: list[Row]) -> Row:
    """Return the means over seeds."""
    same = [row for row in measured if (row["data"], row["method"]) == (data, method)]
    excess = np.array([row["excess"] for row in same])
    errors = np.mean([row["errors"] for row in same], axis=0)
    shown = {f"{100 * share:g}_%": float(errors[round(20 * share) - 1]) for share in _SHOWN}
    means = {
        name: None if same[0][name] is None else float(np.mean([row[name] for row in same]))
        for name in ("gap", "seconds")
    }
    spread = float(excess.std(ddof=min(1, len(excess) - 1)) / len(excess) ** 0.5)
    return {"data": data, "method": method, "excess": float(excess.mean()), "±": spread, **shown, **means}


def overall(rows: list[Row]) -> list[Row]:
    """Return the mean excess of every method over data sets, and the number of data sets on which it is the lowest."""
    found = []
    data = list(dict.fromkeys(row["data"] for row in rows))
    excess = {m: np.array([_excess(rows, name, m) for name in data]) for m in _METHODS}
    lowest = np.min(list(excess.values()), axis=0)
    for method, values in excess.items():
        found.append(
            {"method": method, "mean_excess": float(values.mean()), "best_on": int((values <= lowest + 1e-12).sum())}
        )
    return found


def _excess(rows: list[Row], data: str, method: str) -> float:
    return float(next(row["excess"] for row in rows if (row["data"], row["method"]) == (data, method)))


def targets(rows: list[Row], found: list[str]) -> list[Target]:
    """Return the targets of CostDescent, with and without regrowing."""
    whole = len(found) == len(_DATA)
    promised = []
    for method in ("cost_descent", "regrow"):
        cuts = [min(_excess(rows, name, f"cut_{scope}") for scope in ("ensemble", "individual")) for name in found]
        retrained = [min(_excess(rows, name, other) for other in ("top_k", "per_price")) for name in found]
        own = [_excess(rows, name, method) for name in found]
        below = sum(a < b for a, b in zip(own, cuts, strict=True))
        level = sum(a <= b for a, b in zip(own, retrained, strict=True))
        what = f"data sets on which {method} has"
        promised += [
            Target(f"{what} less excess than the better MinCut", below if whole else None, at_least=8),
            Target(f"{what} at most the excess of retraining", level if whole else None, at_least=5),
        ]
    gaps = [row["gap"] for row in rows if row["method"] == "cost_descent"]
    what = "largest gap of cost_descent, in prices of the most expensive feature"
    promised.append(Target(what, max(gaps) if whole else None, at_most=1))
    return promised


def draw(measured: list[Row], found: list[str]) -> bytes:
    """Return the curves of all data sets as a picture."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    n_rows = -(-len(found) // 3)
    figure = Figure(figsize=(13, 3.4 * n_rows))
    axes = figure.subplots(n_rows, min(3, len(found)), squeeze=False)
    colours: dict[str, Any] = dict(zip(_METHODS, colormaps["tab10"].colors, strict=False))
    for axis, name in zip(axes.flat, found, strict=False):
        for method in ("unpruned", *_METHODS):
            errors = np.mean([r["errors"] for r in measured if (r["data"], r["method"]) == (name, method)], axis=0)
            style = {"color": "black", "linestyle": ":"} if method == "unpruned" else {"color": colours[method]}
            width = 2.4 if method in ("cost_descent", "regrow") else 1.1
            axis.plot(100 * np.array(SHARES), errors, label=method, linewidth=width, **style)
        axis.set_title(name, fontsize=10)
        axis.set_ylim(0, None)
    for axis in axes[-1]:
        axis.set_xlabel("budget, % of the unpruned price")
    for axis in axes[:, 0]:
        axis.set_ylabel("test error")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="lower center", ncol=5, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.05 if n_rows > 1 else 0.2, 1, 1))
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


TABLE = Table("budgets", "Test error within feature budgets", run)
