"""Compare the elapsed time of pruning in two threads with that in one."""

import warnings
from collections.abc import Callable
from statistics import geometric_mean
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

import secateur as sc
from benchmarks.discovery import Table, data_sets
from benchmarks.load import DataNotFoundError, load
from benchmarks.results import Result, Row, Target
from benchmarks.tables.prune_against_training import CASES, KINDS, Parts, rows, split

_ROUNDS = 3
_MODELS = ("LightGBM satimage", "XGBoost spambase", "HistGradientBoosting spambase")
_CALLS = ("path", "clones")
_NOTES = [
    "path: prune_path(model, X, y) on the training rows, which descends for four ridges and for original values.",
    "clones: prune(model, X, y, max_nodes=500) with the training rows, fewer than 5000, which trains and prunes five "
    "clones.",
    "one, two: elapsed seconds with n_jobs=1 and n_jobs=2, which take turns; the least of three. speed_up: one / two. "
    "Both give the same model, which a test checks bit for bit.",
]


def run(quick: bool) -> Result:
    """Measure every call of every model."""
    found: list[Row] = []
    skipped = []
    for name in _MODELS[1:2] if quick else _MODELS:
        try:
            data = load(data_sets()[CASES[name].data]).sample(400 if quick else 20_000, 0)
        except DataNotFoundError as error:
            skipped.append(f"{name}: {error}")
            continue
        parts = split(data, 0)
        case = CASES[name]
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KINDS[case.kind].make(data.task, 10 if quick else case.n_trees, 0).fit(*rows(parts.train))
            for call in _CALLS:
                found.append({"model": name, "call": call, **in_turns(work(call, model, parts), quick)})
    ratios = [row["speed_up"] for row in found]
    target = Target("speed-up of two threads, geometric mean", geometric_mean(ratios) if ratios else None, at_least=1.6)
    return Result(found, 1 if quick else _ROUNDS, _NOTES, [target], [], skipped)


def work(call: str, model: Any, parts: Parts) -> Callable[[int], object]:
    """Return the call as a function of `n_jobs`."""
    if call == "path":
        return lambda n_jobs: sc.prune_path(model, *rows(parts.train), n_jobs=n_jobs)
    return lambda n_jobs: sc.prune(model, *rows(parts.train), max_nodes=500, n_jobs=n_jobs)


def in_turns(call: Callable[[int], object], quick: bool) -> Row:
    """Return the least elapsed seconds with one thread and with two."""
    taken: dict[int, list[float]] = {1: [], 2: []}
    call(1)
    for _ in range(1 if quick else _ROUNDS):
        for n_jobs, seconds in taken.items():
            began = perf_counter()
            call(n_jobs)
            seconds.append(perf_counter() - began)
    one, two = min(taken[1]), min(taken[2])
    return {"one": one, "two": two, "speed_up": one / two}


TABLE = Table("threads", "Elapsed time of pruning in one thread and in two", run)
