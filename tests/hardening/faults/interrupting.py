"""Send Ctrl-C at random times: during calls, during the first call of a process, and during commands."""

import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.hardening.faults.outputs import digest, digest_of_model, digest_of_path, path_of, small_forest, trained
from tests.hardening.faults.tables import command_files

import secateur as sc
from secateur.cli import main
from secateur.errors import InterruptedWarning

_TOO_LATE = "too late"
_LIMIT = 120  # seconds after which a call counts as hanging


@dataclass(frozen=True)
class Call:
    """Something to interrupt.

    Attributes
    ----------
    do : callable
        Returns a result.
    digest : callable
        `digest(result)`.
    parts : callable
        `parts(result)` returns points; those of a partial result must be a subset of those of the whole result.
    """

    do: Callable[[], Any]
    digest: Callable[[Any], str]
    parts: Callable[[Any], list[Any]]


def interrupt_calls(n_moments: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt every call repeatedly in this process; the next call must return the whole result."""
    rng = random.Random(seed)
    return [_interrupt(name, call, n_moments, rng) for name, call in _calls().items()]


def interrupt_first_calls(n_moments: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt the first call of new processes, which loads compiled code, and call again."""
    rng = random.Random(seed)
    call = _calls()["prune_path, weakest_link"]
    takes, whole = _in_a_fork(lambda: _timed(call))

    def attempt(seconds: float) -> tuple[str, list[str]]:
        try:
            ended, texts = _in_a_fork(lambda: _once(call, seconds, whole, None))
        except RuntimeError as error:
            return "died", [f"the process ended with {error}"]
        return ended, texts

    return [_many("the first call of a process", n_moments, lambda: rng.uniform(0.0, takes), attempt)]


def interrupt_commands(n_moments: int, seed: int) -> list[dict[str, Any]]:
    """Interrupt commands that overwrite older files."""
    rng = random.Random(seed)
    with _quiet():
        sc.prune(*small_forest())  # so that forks inherit the compiled code
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "secateur prune": [
                "prune",
                *command_files(Path(folder)),
                "--out",
                "small.skops",
                "--solver",
                "weakest_link",
            ],
            "secateur path": ["path", *command_files(Path(folder)), "--out", "path.npz"],
        }
        os.chdir(folder)
        return [_interrupt_command(name, words, n_moments, rng) for name, words in commands.items()]


def _calls() -> dict[str, Call]:
    model, X, y = trained("scikit-learn")
    few, _, _ = small_forest()
    path = path_of("scikit-learn").thin(40)
    prices = sc.costs.FeatureCost(np.arange(1.0, X.shape[1] + 1))
    by_path = (digest_of_path, _points)

    def solved(solver: str, **options: Any) -> Call:
        return Call(lambda: sc.prune_path(few, X, y, solver=solver, **options), *by_path)

    def save() -> Path:
        with tempfile.TemporaryDirectory() as folder:
            sc.report(path, Path(folder) / "report.html")
            file = path.save(Path(folder) / "path.npz")
            left = sorted(os.listdir(folder))
            if left != ["path.npz", "report.html"]:
                raise ValueError(f"saving left {left}")
            return sc.Path.load(file)

    return {
        "prune_path, weakest_link": Call(lambda: sc.prune_path(model, X, y, solver="weakest_link"), *by_path),
        "prune_path, block_descent": solved("block_descent"),
        "prune_path, cost_descent": solved("cost_descent", cost=prices),
        "prune_path, shared prices": solved("min_cut", cost=prices),
        "prune": Call(lambda: sc.prune(few, X, y), digest_of_model, _no_parts),
        "Path.evaluate": Call(lambda: path.evaluate(X, y), digest_of_path, _points),
        "Path.save and report": Call(save, digest_of_path, _points),
    }


def _points(path: sc.Path) -> list[Any]:
    """Return the keep mask and the risk of each point of a path."""
    return [(digest(path.masks.keep(point)), float(path.table["risk"][point])) for point in range(len(path))]


def _no_parts(model: Any) -> list[Any]:
    return []


def _interrupt(name: str, call: Call, n_moments: int, rng: random.Random) -> dict[str, Any]:
    _timed(call)  # loads compiled code
    takes, whole = _timed(call)
    parts = set(call.parts(call.do()))
    return _many(name, n_moments, lambda: rng.uniform(0.0, takes), lambda seconds: _once(call, seconds, whole, parts))


def _many(
    name: str, n_moments: int, moment: Callable[[], float], attempt: Callable[[float], tuple[str, list[str]]]
) -> dict[str, Any]:
    """Repeat until enough attempts were interrupted; those that ended before the signal are not counted."""
    found: Counter[str] = Counter()
    bad = []
    for _ in range(5 * n_moments):
        seconds = moment()
        ended, texts = attempt(seconds)
        found[ended] += 1
        bad += [f"{name}, after {seconds:.4f} s: {text}" for text in texts]
        if found.total() - found[_TOO_LATE] >= n_moments:
            break
    n_interrupted = found.total() - found.pop(_TOO_LATE, 0)
    return {"what": name, "interrupted": n_interrupted, **found, "bad": bad}


def _timed(call: Call) -> tuple[float, str]:
    began = time.perf_counter()
    with _quiet():
        result = call.do()
    return time.perf_counter() - began, call.digest(result)


def _once(call: Call, seconds: float, whole: str, parts: set[Any] | None) -> tuple[str, list[str]]:
    """Interrupt a call once, call again without interruption, and return how it ended and what is wrong."""
    bad = []
    ended, result, error = _interrupted(call.do, seconds)
    if ended in ("whole", _TOO_LATE) and call.digest(result) != whole:
        bad.append("it returned another result without a warning")
    if ended == "partial" and parts is not None and not set(call.parts(result)) <= parts:
        bad.append("a partial result has points the whole one does not have")
    if ended == "other":
        bad.append(error)
    again = _timed(call)[1]
    if again != whole:
        bad.append("the next call returned another result")
    return ended, bad


def _interrupted(do: Callable[[], Any], seconds: float) -> tuple[str, Any, str]:
    """Call a function with Ctrl-C after so many seconds; return how it ended, its result, and its traceback."""
    came = False

    def interrupt(*_: Any) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
            result = do()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        return "raised KeyboardInterrupt", None, ""
    except BaseException:
        return "other", None, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
    if any(issubclass(one.category, InterruptedWarning) for one in caught):
        return "partial", result, ""
    return ("whole" if came else _TOO_LATE), result, ""


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _in_a_fork(work: Callable[[], Any]) -> Any:
    """Return what a function returns in a fork of this process, which has a time limit."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)
        os.write(writes, json.dumps(work()).encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as stream:
        output = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code or not output:
        raise RuntimeError(f"code {code}")
    return json.loads(output)


def _interrupt_command(name: str, words: list[str], n_moments: int, rng: random.Random) -> dict[str, Any]:
    out = Path(words[words.index("--out") + 1])
    began = time.perf_counter()
    code, output = _run(words, None)
    if code:
        raise RuntimeError(output)
    takes = time.perf_counter() - began
    whole = _held_by(out)
    out.rename("old")
    (small := Path("old")).write_bytes(_older(out.suffix))
    old = digest(small.read_bytes())
    names = sorted([*os.listdir("."), out.name])

    def attempt(seconds: float) -> tuple[str, list[str]]:
        out.write_bytes(small.read_bytes())
        code, output = _run([*words, "--force"], seconds)
        changed, is_whole = digest(out.read_bytes()) != old, _held_by(out) == whole
        wrong = _wrong(code, output, changed, is_whole)
        if sorted(os.listdir(".")) != names:
            wrong.append(f"it left {sorted(os.listdir('.'))}")
        if code == 130:
            return ("nothing written" if not changed else "whole" if is_whole else "partial"), wrong
        return _TOO_LATE, wrong

    rows = _many(name, n_moments, lambda: rng.uniform(0.0, takes), attempt)
    out.unlink()
    small.unlink()
    return rows


def _wrong(code: int, output: str, changed: bool, is_whole: bool) -> list[str]:
    """Return what is wrong with how a command ended."""
    bad = []
    if code not in (0, 130) or "Traceback" in output or "defect" in output:
        bad.append(f"it ended with {code} and printed: {output}")
    if code == 0 and not is_whole:
        bad.append("it ended well, but its result is not the whole one")
    if code == 130 and "nothing was written" in output and changed:
        bad.append(f"it wrote, and printed: {output}")
    if code == 130 and ("was written" in output.replace("nothing was written", "")) and not changed:
        bad.append(f"it did not write, and printed: {output}")
    return bad


def _run(words: list[str], seconds: float | None) -> tuple[int, str]:
    """Run a command in a fork, with Ctrl-C after some seconds, and return its exit code and output."""
    with tempfile.TemporaryFile() as output:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # or the fork could unwind the frames of its parent
        child = os.fork()
        if child == 0:
            _command(words, output.fileno())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGINT)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return code, output.read().decode()


def _command(words: list[str], output: int) -> None:
    """Run the program in a fork, and exit."""
    code = 70
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["secateur", *words]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _held_by(file: Path) -> str:
    from secateur.files.models import load_model

    if file.suffix == ".npz":
        return digest_of_path(sc.Path.load(file))
    return digest_of_model(load_model(file))


def _older(suffix: str) -> bytes:
    """Return a file that a command has written before."""
    with tempfile.TemporaryDirectory() as folder:
        path = path_of("scikit-learn").thin(5)
        file = Path(folder) / f"old{suffix}"
        path.save(file) if suffix == ".npz" else path[1].save(file)
        return file.read_bytes()
