"""Pruning in threads, in processes and after a fork gives the same bits as alone; errors in threads are raised."""

from typing import Any

from tests.hardening.alone import alone
from tests.hardening.checks import Figures

LONG = 5
_LIMIT = 1800.0  # seconds after which a process counts as deadlocked
_MODULE = "tests.hardening.faults.sharing"


def run(scale: int) -> Figures:
    """Run every pruning `scale` times in each way."""
    digests = alone(_MODULE, "digests_around", scale, limit=_LIMIT, OMP_NUM_THREADS="2")
    expected = digests.pop("alone")
    digests["8 threads"] = alone(_MODULE, "digests_in_threads", scale, limit=_LIMIT, OMP_NUM_THREADS="2")
    found = {
        way: [(what, _wrong(way, what, digest, expected)) for what, digest in rows] for way, rows in digests.items()
    }
    rows = [
        {"where": _NAMES.get(way, way), "tried": len(rows), "as in one process": _n_right(rows)}
        for way, rows in found.items()
    ]
    return Figures(
        rows, [f"{way}, {what}: {text}" for way, rows in found.items() for what, text in rows if text], _NOTES
    )


def _wrong(way: str, what: str, digest: str, expected: dict[str, str]) -> str:
    """Return the error, or whether a digest differs from the expected one; empty if it does not."""
    if what not in expected:
        return digest
    return "" if digest == expected[what] else "other bits than in one process"


def _n_right(rows: list[tuple[str, Any]]) -> int:
    return sum(not text for _, text in rows)


_NAMES = {"errors": "a thread of a solver, or a progress callback, that raises"}

_NOTES = [
    "*tried*: prunings of models of scikit-learn, XGBoost, LightGBM, CatBoost and Spark by weakest_link, of a forest "
    "by block_descent and by cost_descent, and an evaluated path. *as in one process*: results that are the same bit "
    "for bit as those of a single process.",
    "The eight threads start to prune as soon as their process starts, so they also load compiled code at the same "
    "time.",
    "Forks come from a process that has done all these prunings itself, also in threads: by `os.fork` and by a pool "
    "of `multiprocessing`. OpenMP uses two threads, because libraries that use it may deadlock in a fork.",
    "Two commands write to one file at the same time: with `--force` both succeed; without it one succeeds and the "
    "other exits with 1. The file is the same as that of a single command.",
    "An error in a thread ends the call with that same error. Spark workers are tested in "
    "`tests/spark/test_inside_workers.py`.",
]
