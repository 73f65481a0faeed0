"""Time methods in alternating rounds and report the median of each."""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """A function to be timed.

    Attributes
    ----------
    run : callable
    minus : callable, optional
        Work that `run` includes but that is not to be measured; its time is subtracted.
    """

    run: Callable[[], Any]
    minus: Callable[[], Any] | None = None


def take_turns(jobs: Mapping[str, Job], repeats: int) -> dict[str, float]:
    """Return the seconds of each job, the median over rounds in which every job runs once.

    So a temporary slowdown of the machine affects all jobs equally.
    """
    runs: dict[str, list[float]] = {name: [] for name in jobs}
    parts: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            runs[name].append(seconds(job.run))
            parts[name].append(seconds(job.minus) if job.minus else 0.0)
    return {name: median(runs[name]) - median(parts[name]) for name in jobs}


def seconds(work: Callable[[], Any]) -> float:
    """Return the seconds of one call, with the garbage collector disabled."""
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        work()
        return perf_counter() - start
    finally:
        gc.enable()


def growth(sizes: list[int], times: list[float]) -> float | None:
    """Return b of time ≈ c · size^b, by least squares on logarithms; None if some time is not positive."""
    if len(sizes) < 2 or min(times) <= 0:
        return None
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
