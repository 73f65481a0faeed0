"""Compare the models that `prune` searches for with those selected from the whole path."""

import warnings
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from benchmarks.discovery import Table, data_sets
from benchmarks.load import DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.tables.prune_against_training import KINDS, Case, loss_of, rows, split
from secateur.selection.choice import choose_point
from secateur.selection.evaluated_path import evaluated_path

_CASES = {
    f"{case.kind} {case.data}": case
    for case in (
        Case("LightGBM", "satimage", 100, 6000),
        Case("LightGBM", "letter", 40, 6000),
        Case("LightGBM", "covertype", 50, 6000),
        Case("LightGBM", "banknote", 100, 1372),
        Case("XGBoost", "puma32H", 200, 6000),
        Case("XGBoost", "mammographic_masses", 100, 961),
        Case("XGBoost", "concrete", 200, 1030),
        Case("GradientBoosting", "mercedes", 150, 4209),
        Case("HistGradientBoosting", "cbm_naval_kMc", 100, 6000),
        Case("RandomForest", "wine_quality_red", 100, 1599),
        Case("RandomForest", "musk1", 100, 476),
        Case("RandomForest", "breast_cancer", 100, 569),
        Case("ExtraTrees", "2dplanes", 60, 4000),
        Case("CatBoost", "stock", 150, 950),
        Case("CatBoost", "socmob", 150, 1156),
    )
}
_TUNED = ("LightGBM satimage", "LightGBM letter")
"""Models that the search was tuned on; they do not count in the findings."""
_QUICK = {"GradientBoosting diabetes": Case("GradientBoosting", "diabetes", 5, 200)}
_LIMITS: dict[str, dict[str, Any]] = {
    "50 nodes": {"max_nodes": 50},
    "500 nodes": {"max_nodes": 500},
    "5000 nodes": {"max_nodes": 5000},
    "1 % loss": {"max_loss_increase": 0.01},
    "5 % loss": {"max_loss_increase": 0.05},
}
_NOTES = [
    "60 % of the rows for training and pruning, 20 % for validation, 20 % for testing. The search was tuned on other "
    "data sets, and on satimage and letter, which show models of many classes and do not count in the findings.",
    "search: `prune`. whole: the same selection rule on the whole path of four ridges and original values.",
    "loss_ratio: test loss of search over that of whole, geometric mean over seeds; log loss of classifiers, squared "
    "error of regressors. nodes_ratio, time_ratio: the same for the number of nodes and the CPU time.",
    "Findings: geometric means over models, and standard errors over models of the logarithm.",
]


def run(quick: bool) -> Result:
    seeds = range(1 if quick else 3)
    found: list[Row] = []
    skipped = []
    for name, case in (_QUICK if quick else _CASES).items():
        try:
            outcomes = [row for seed in seeds for row in measure(case, seed)]
        except (DataNotFoundError, KeyError, ImportError) as error:
            skipped.append(f"{name}: {error}")
            continue
        for limit in _LIMITS:
            of_limit = [row for row in outcomes if row["limit"] == limit]
            if of_limit:
                found.append({"model": name, "limit": limit, **_means(of_limit)})
    new = [row for row in found if row["model"] not in _TUNED]
    findings = [{"limit": limit, **_overall([row for row in new if row["limit"] == limit])} for limit in _LIMITS]
    targets = [
        Target(
            f"test loss of search over whole path, {one['limit']}",
            one["loss_ratio"],
            at_most=1.0 + one["standard_error"],
        )
        for one in findings
    ]
    return Result(found, len(seeds), _NOTES, targets, findings, skipped)


def measure(case: Case, seed: int) -> Iterator[Row]:
    """Yield the ratios of one model for every limit; limits that no pruning satisfies are left out."""
    data = load(data_sets()[case.data]).sample(case.n_rows, seed)
    parts = split(data, seed)
    model = KINDS[case.kind].make(data.task, case.n_trees, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*rows(parts.train))
        for name, limit in _LIMITS.items():
            outcome = {}
            for search in (True, False):
                began = process_time()
                options = {"validation": rows(parts.validation), "search": search, **limit}
                path = evaluated_path(model, *rows(parts.train), **options)
                chosen = choose_point(path, **limit)
                seconds = process_time() - began
                outcome[search] = loss_of(chosen.to_model(), parts.test), chosen.row["n_nodes"], seconds
            ratios = np.array(outcome[True]) / np.array(outcome[False])
            yield {
                "limit": name,
                **dict(zip(("loss_ratio", "nodes_ratio", "time_ratio"), ratios.tolist(), strict=True)),
            }


def _means(rows: list[Row]) -> Row:
    """Return the geometric means of the ratios."""
    names = ("loss_ratio", "nodes_ratio", "time_ratio")
    return {name: float(np.exp(np.mean([np.log(row[name]) for row in rows]))) for name in names}


def _overall(rows: list[Row]) -> Row:
    """Return the geometric means over models, with the standard error of the loss ratio."""
    spread = np.std([np.log(row["loss_ratio"]) for row in rows], ddof=1) if len(rows) > 1 else 0.0
    return {**_means(rows), "standard_error": float(spread / np.sqrt(max(len(rows), 1)))}


TABLE = Table("search_quality", "Models that prune searches for, against those of the whole path", run)
