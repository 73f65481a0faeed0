"""Kill processes that overwrite a file repeatedly."""

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.hardening.faults.outputs import Output, outputs

_TO_DISK = {
    "open",
    "write",
    "flush",
    "fsync",
    "chmod",
    "mkdir",
    "replace",
    "rename",
    "unlink",
    "close",
    "rmdir",
    "link",
}
_LATER = 7200.0  # seconds after which temporary files of a killed writer count as leftovers


def kill_writers(n_moments: int, seed: int) -> list[dict[str, Any]]:
    """Kill writers of every kind of output at random times, and at random calls of functions written in C."""
    rng = random.Random(seed)
    return [_kill(name, output, n_moments, rng) for name, output in outputs().items()]


def _kill(name: str, output: Output, n_moments: int, rng: random.Random) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / output.file
        output.new(target)
        new = output.read(target)
        began = time.perf_counter()
        output.old(target)
        takes = time.perf_counter() - began
        old = output.read(target)
        calls = _calls(lambda: output.new(target))
        to_disk = [number for number, call in enumerate(calls, 1) if call in _TO_DISK]
        found: Counter[str] = Counter()
        bad: list[str] = []
        for moment in range(n_moments):
            output.old(target)
            _killed_at_a_time(output, target, rng.uniform(0.0, 4 * takes))
            bad += _after(output, target, old, new, found)
            output.old(target)
            number = rng.choice(to_disk) if moment % 2 else rng.randint(1, len(calls))
            _killed_at_a_call(output, target, number)
            bad += [
                f"{text} (at call {number}, {calls[number - 1]})" for text in _after(output, target, old, new, found)
            ]
    return {"what": name, "bad": [f"{name}: {text}" for text in bad], **found}


def _after(output: Output, target: Path, old: str, new: str, found: Counter[str]) -> list[str]:
    """Check the files left by a killed writer, write again, and return what is wrong."""
    found["killed"] += 1
    left = [path for path in target.parent.iterdir() if path != target]
    found["while writing"] += bool(left)
    try:
        content = output.read(target)
    except Exception as error:  # any exception of a damaged file
        return [f"cannot be read after a kill: {error!r}"]
    if content not in (old, new):
        return ["is neither the old nor the new one after a kill"]
    found["found the new one"] += content == new
    for path in left:
        os.utime(path, (time.time() - _LATER,) * 2)
    try:
        output.new(target)
    except Exception as error:
        return [f"cannot be written after a kill: {error!r}"]
    names = os.listdir(target.parent)
    wrong = [f"the next writer left {names}"] if names != [target.name] else []
    return wrong + (["the next writer wrote something else"] if output.read(target) != new else [])


def _killed_at_a_time(output: Output, target: Path, seconds: float) -> None:
    """Run a child that writes until it is killed."""

    def write() -> None:
        while True:
            output.new(target)
            output.old(target)

    child = _start(write)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _killed_at_a_call(output: Output, target: Path, number: int) -> None:
    """Run a child that writes once and kills itself before or after a call."""

    def write() -> None:
        left = number

        def count(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            left -= event.startswith("c_")
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        output.new(target)

    os.waitpid(_start(write), 0)


def _calls(write: Callable[[], None]) -> list[str]:
    """Return the names of the C functions called while writing, each twice: when it is called and when it returns."""
    names = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event.startswith("c_"):
            names.append(argument.__name__)

    sys.setprofile(note)
    try:
        write()
    finally:
        sys.setprofile(None)
    return names


def _start(work: Callable[[], None]) -> int:
    """Call a function in a fork of this process, and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(0)
