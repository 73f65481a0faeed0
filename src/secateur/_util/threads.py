"""Run independent tasks side by side in threads; kernels release the interpreter lock."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib
from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")


def has_threads(n_jobs: int | None) -> bool:
    """Return whether `n_jobs` stands for more than one thread."""
    return bool(joblib.effective_n_jobs(n_jobs) > 1)


def in_threads(function: Callable[[T], R], items: Iterable[T], n_jobs: int | None) -> list[R]:
    """Return `[function(item) for item in items]`, computed by at most `n_jobs` threads.

    The tasks must not depend on each other, so that the results are the same for any number of threads. `n_jobs` is
    that of scikit-learn: None is 1 unless inside a `joblib.parallel_config`, −1 is the number of cores. The first
    exception cancels the tasks that have not begun.
    """
    tasks = list(items)
    if not has_threads(n_jobs) or len(tasks) < 2:
        return [function(task) for task in tasks]
    with ThreadPoolExecutor(min(joblib.effective_n_jobs(n_jobs), len(tasks)), initializer=_one_openmp_thread) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def _one_openmp_thread() -> None:
    """Let libraries that train with OpenMP use one thread; the setting is that of the calling thread."""
    threadpool_limits(1, user_api="openmp")
