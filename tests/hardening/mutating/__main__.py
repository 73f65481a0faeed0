"""Try mutations and print a line of JSON for each: python -m tests.hardening.mutating FOLDER JOB ...

A job is KIND:FIRST:STOP. If the process crashes or hangs, the first mutation without a line is the cause.
"""

import json
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.hardening.mutating.kind import GOOD, REFUSED, SAME, Kind, damage_blindly
from tests.hardening.mutating.shapes import OUTSIDE, RAN

SECONDS, PER_BYTE = 1.0, 1 / 20e6
"""CPU seconds within which a damaged file must be refused, plus an allowance for its size; reading a valid one may
take longer."""
MEGABYTES = 512.0
"""Largest growth of the process while it reads a file."""
_ADDRESSES = 4 * 2**30  # limit of the address space, for files that request huge arrays


def main(folder: Path, jobs: list[str]) -> None:
    """Try the mutations of some jobs."""
    with os.fdopen(os.dup(1), "w") as output:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print what they read
        kinds = _kinds([job.split(":")[0] for job in jobs])
        for job in jobs:
            name, first, stop = job.split(":")
            for number, *ended in _outcomes(kinds[name], folder, name, range(int(first), int(stop))):
                print(json.dumps([name, number, *ended]), file=output, flush=True)


def _kinds(names: list[str]) -> dict[str, Kind]:
    """Return the kinds of files; what is not needed is not imported."""
    from tests.hardening.mutating.tables import TABLES

    kinds = dict(TABLES)
    if not set(names) <= set(kinds):
        from tests.hardening.mutating.models import MODELS
        from tests.hardening.mutating.paths import PATHS

        kinds |= MODELS | PATHS
    return kinds


def _outcomes(kind: Kind, folder: Path, name: str, numbers: range) -> Iterator[tuple[Any, ...]]:
    """Yield for every mutation its number, how it ended, its message, the seconds and the megabytes it took."""
    work = folder / f"{name.replace(' ', '-')}-{os.getpid()}" / "work"
    work.mkdir(parents=True)
    sources = []
    for k, make in enumerate(kind.makes):
        sources.append(work.parent / f"sound{k}{kind.suffix}")
        make(sources[-1])
    sound = [kind.read(source) for source in sources]
    _limit_memory()
    for number in numbers:
        rng = np.random.default_rng([number, 7])
        place = int(rng.integers(len(sources)))
        target = work / f"{number}{kind.suffix}"
        mutate(kind, sources[place], target, rng)
        yield number, *_outcome(kind, target, sound[place])
        _clean(work)
    shutil.rmtree(work.parent)


def mutate(kind: Kind, source: Path, target: Path, rng: np.random.Generator) -> None:
    """Write a mutation: half of them damage bytes, the others change the content of the format."""
    (damage_blindly if rng.random() < 0.5 else kind.change)(source, target, rng)


def _outcome(kind: Kind, file: Path, sound: Any) -> tuple[str, str, float, float]:
    """Return the outcome of reading a file."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _forget_peak()
        before, began, found = _resident("VmRSS"), time.process_time(), None
        try:
            found = kind.read(file)
            how, message = SAME, ""
        except (ValueError, FileNotFoundError, TypeError) as error:
            how, message = (REFUSED, str(error)) if _is_clear(error) else (type(error).__name__, str(error))
        except BaseException as error:  # not a clear error
            how, message = type(error).__name__, str(error)
        seconds, grown = time.process_time() - began, max(_resident("VmHWM") - before, 0.0)
        if how == SAME:
            how, message = _judged(kind, found, file, sound)
    if how in GOOD:
        slow = how == REFUSED and seconds > SECONDS + PER_BYTE * (file.stat().st_size if file.exists() else 0)
        how = _strayed(file) or ("slow" if slow else "large" if grown > MEGABYTES else how)
    return how, message.replace(f"{file.parent}{os.sep}", ""), round(seconds, 4), round(grown, 1)


def _is_clear(error: Exception) -> bool:
    """Return whether an error is one of secateur: one or more sentences with a remedy, not an error of a library."""
    return str(error).endswith((".", "'", "?")) and " " in str(error) and not isinstance(error, UnicodeError)


def _judged(kind: Kind, found: Any, file: Path, sound: Any) -> tuple[str, str]:
    """Return whether the content was read correctly."""
    try:
        how = kind.judge(found, file, sound)
    except Exception as error:  # the model was read, but cannot be used
        return type(error).__name__, f"later: {error}"
    return (how, "") if how in GOOD else ("disagree", how)


def _strayed(file: Path) -> str | None:
    """Return the side effects of reading a file."""
    if (file.parent / RAN).exists():
        return "ran code"
    outside = (file.parent.parent / OUTSIDE, Path(f"/{OUTSIDE}"))
    return "wrote elsewhere" if any(place.exists() for place in outside) else None


def _limit_memory() -> None:
    used = int(_resident("VmSize") * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (used + _ADDRESSES, resource.RLIM_INFINITY))


def _resident(which: str) -> float:
    """Return the megabytes of this process: VmSize, VmRSS, or VmHWM, the peak since `_forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    return 0.0


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _clean(work: Path) -> None:
    for left in work.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
