"""Coverage-guided fuzzing of every reader finds no file that ends in anything but a report or a clear refusal."""

import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any
from unittest import SkipTest

from tests.fuzz.targets import TARGETS
from tests.hardening.checks import Figures
from tests.hardening.page import ROOT

LONG = 600
"""Seconds for each reader."""
_NOTES = [
    "Each reader is instrumented by atheris, which keeps inputs that reach new branches. It starts from valid files, "
    "written by several versions of the libraries; half of the time, one part inside a zip is damaged, not the zip.",
    "*inputs*: files that were tried. *branches*: those of our code that were reached, by valid files and in the end. "
    "*failed*: 1 if an input ended in another error, in a crash, in more than 2 GB of memory or after a minute.",
]


def run(scale: int) -> Figures:
    """Fuzz every reader for some seconds, two at a time."""
    if find_spec("atheris") is None:
        raise SkipTest("Fuzzing needs atheris. Run: make test-fuzz")
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda name: _fuzzed(name, scale), TARGETS))
    bad = [f"{row['format']}: {row.pop('output')}" for row in rows if "output" in row]
    return Figures(rows, bad, _NOTES)


def _fuzzed(name: str, seconds: int) -> dict[str, Any]:
    """Return the summary of fuzzing one reader, with the output of a run that failed."""
    with tempfile.TemporaryDirectory() as found:
        command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(seconds), "--found", found]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if ended.returncode:
        return {"format": name, "seconds": seconds, "failed": 1, "output": ended.stderr[-2000:]}
    summary: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return summary
