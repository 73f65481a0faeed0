"""Run the same pruning in many threads and processes, and errors in threads."""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from tests.hardening.faults.outputs import LIBRARIES, digest_of_model, digest_of_path, small_forest, trained
from tests.hardening.faults.tables import command_files

import secateur as sc
from secateur.files.models import load_model

_N_THREADS = 8
_N_PROCESSES = 2
_PROGRAM = [sys.executable, "-c", "from secateur.cli import main; main()"]


def prunings() -> list[str]:
    """Return the names of the prunings done in threads and processes."""
    return [*LIBRARIES, "block_descent", "cost_descent", "evaluate"]


def pruned(name: str) -> str:
    """Return a digest of one pruning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in LIBRARIES:
            model, X, y = trained(name)
            limit = sc.as_forest(model).n_nodes // 3
            return digest_of_model(sc.prune(model, X, y, solver="weakest_link", max_nodes=limit))
        model, X, y = small_forest()
        if name == "evaluate":
            return digest_of_path(sc.prune_path(model, X, y, solver="weakest_link").evaluate(X[::3], y[::3]))
        cost = sc.costs.FeatureCost(np.arange(1.0, X.shape[1] + 1)) if name == "cost_descent" else None
        return digest_of_path(sc.prune_path(model, X, y, solver=name, cost=cost))


def digests_around(n_rounds: int) -> dict[str, Any]:
    """Return the digests of every pruning in one process, and in several processes."""
    return {
        "alone": digests_alone(),
        "processes of joblib (loky)": digests_in_loky(n_rounds),
        "two commands, one result": commands_at_once(n_rounds),
        "errors": errors_of_threads(),
        "forks of a process that has pruned": digests_in_forks(n_rounds),
    }


def digests_alone() -> dict[str, str]:
    """Return the digests of every pruning in one process."""
    return {name: pruned(name) for name in prunings()}


def digests_in_threads(n_rounds: int) -> list[tuple[str, str]]:
    """Return the digests of eight threads that prune at the same time, from the first call of the process on."""
    names = prunings()
    for library in LIBRARIES:
        trained(library)
    small_forest()
    start = threading.Barrier(_N_THREADS)

    def prune_all(number: int) -> list[tuple[str, str]]:
        start.wait()
        turned = names[number % len(names) :] + names[: number % len(names)]
        return [(name, pruned(name)) for _ in range(n_rounds) for name in turned]

    with ThreadPoolExecutor(_N_THREADS) as pool:
        return [entry for found in pool.map(prune_all, range(_N_THREADS)) for entry in found]


def digests_in_loky(n_rounds: int) -> list[tuple[str, str]]:
    """Return the digests of processes of joblib."""
    names = prunings() * n_rounds
    return list(
        zip(names, joblib.Parallel(n_jobs=_N_PROCESSES)(joblib.delayed(pruned)(name) for name in names), strict=True)
    )


def digests_in_forks(n_rounds: int) -> list[tuple[str, str]]:
    """Return the digests of forks of a process that has done all prunings itself, also in threads."""
    digests_alone()
    digests_in_threads(1)
    found = []
    for _ in range(n_rounds):
        found += [(name, _in_a_fork(lambda name=name: pruned(name))) for name in prunings()]
        with multiprocessing.get_context("fork").Pool(_N_PROCESSES) as pool:
            found += list(zip(prunings(), pool.map(pruned, prunings()), strict=True))
    return found


def commands_at_once(n_rounds: int) -> list[tuple[str, str]]:
    """Return the outcomes of two commands that write to one file at the same time, with and without --force."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        words = [*_PROGRAM, "prune", *command_files(Path(folder)), "--solver", "weakest_link", "--out"]
        alone = Path(folder) / "alone.skops"
        subprocess.run([*words, str(alone)], check=True, capture_output=True)
        expected = digest_of_model(load_model(alone))
        for number in range(n_rounds):
            for more, codes in ((["--force"], [0, 0]), ([], [0, 1])):
                out = Path(folder) / f"out{number}{len(more)}.skops"
                ended = _at_once([*words, str(out), *more])
                same = digest_of_model(load_model(out)) == expected
                right = [code for code, _ in ended] == codes and same and not list(Path(folder).glob(".*"))
                refused = "exists and would be overwritten" in ended[-1][1]
                found.append(
                    ("--force" if more else "no --force", "" if right and refused == (not more) else repr(ended))
                )
    return found


def errors_of_threads() -> list[tuple[str, str]]:
    """Return what is wrong with a call in which one of its threads, or a callback, raises an error."""
    from secateur.solvers.feature_cost import _decomposition as shared_prices

    model, X, y = small_forest()
    error = ZeroDivisionError("of a thread")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    def in_a_thread() -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: sc.prune_path(model, X, y, solver="block_descent", progress=fail)).result()

    path = sc.prune_path(model, X, y, solver="weakest_link")
    cost = sc.costs.FeatureCost(np.arange(1.0, X.shape[1] + 1))
    first, shared_prices.cheapest_trees = shared_prices.cheapest_trees, fail
    shared_prices._MIN_NEEDS_FOR_THREADS = 0
    found = [
        ("progress, block_descent", _raised(lambda: sc.prune_path(model, X, y, solver="block_descent", progress=fail))),
        ("progress, evaluate", _raised(lambda: path.evaluate(X, y, progress=fail))),
        ("progress in a thread", _raised(in_a_thread)),
        ("a thread of a solver", _raised(lambda: sc.prune_path(model, X, y, solver="linear_program", cost=cost))),
    ]
    shared_prices.cheapest_trees = first
    return [(what, "" if raised is error else f"it ended with {raised!r}") for what, raised in found]


def _raised(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except BaseException as error:
        return error
    return None


def _at_once(words: list[str]) -> list[tuple[int, str]]:
    """Run a command twice at the same time, and return exit codes and errors, sorted by code."""
    started = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate()[1] for process in started]
    return sorted((process.returncode, text) for process, text in zip(started, errors, strict=True))


def _in_a_fork(work: Callable[[], str]) -> str:
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writes, json.dumps(work()).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as stream:
        output = stream.read()
    os.waitpid(child, 0)
    return str(json.loads(output)) if output else "nothing"
