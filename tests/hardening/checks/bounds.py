"""No kernel reads or writes beyond the end of an array: the tests pass with kernels that check every index."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.hardening.checks import Figures

LONG = 2
"""Above 1 all tests are run, except those of these checks."""
_ROOT = Path(__file__).resolve().parents[3]
_QUICK = {"routing": ["tests/forest/test_routing.py"]}
_CHECKED = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(_ROOT / ".numba-bounds")}
_BEYOND = """
import numpy as np
from secateur.kernels._jit import kernel
try:
    kernel(lambda array, place: array[place])(np.zeros(3), 3)
except IndexError:
    print("noticed")
"""
"""A kernel that reads out of bounds, to check that this is detected; it is in no file, so it is not cached."""
_NOTES = [
    "First, a kernel that reads beyond the end on purpose is run; it raises an IndexError. The kernels with index "
    "checks have their own cache; commands, forks and Spark workers that tests start use them, too.",
    "*index errors*: tests that failed with an IndexError, from any code. *skipped*: the same tests as in every run.",
]


def run(scale: int) -> Figures:
    """Run some tests, or all, with kernels that check every index."""
    tried = subprocess.run([sys.executable, "-c", _BEYOND], env=_environment(), capture_output=True, text=True)
    bad = [] if tried.stdout == "noticed\n" else [f"an index beyond the end is not noticed: {tried.stderr[-300:]}"]
    rows = []
    for name, places in (_QUICK if scale == 1 else _all_tests()).items():
        row, failed = _run_tests(places)
        rows.append({"tests": name, **row})
        bad += failed
    return Figures(rows, bad, _NOTES)


def _environment() -> dict[str, str]:
    return {name: text for name, text in {**os.environ, **_CHECKED}.items() if not name.startswith("PYTEST_")}


def _all_tests() -> dict[str, list[str]]:
    """Return the test paths by folder; top-level files are one group, doctests another."""
    folders = [folder for folder in sorted((_ROOT / "tests").iterdir()) if any(folder.glob("test_*.py"))]
    found = {folder.name: [f"tests/{folder.name}"] for folder in folders if folder.name != "hardening"}
    found["of the whole library"] = [f"tests/{file.name}" for file in sorted((_ROOT / "tests").glob("test_*.py"))]
    return {**found, "in docstrings": ["src/secateur"]}


def _run_tests(places: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the outcomes of the tests in some files and folders, and the names of those that failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", f"--junitxml={report}", *places]
        ended = subprocess.run(command, cwd=_ROOT, env=_environment(), capture_output=True, text=True)
        if not report.exists():
            return {}, [f"{places}: {ended.stdout[-500:]}{ended.stderr[-500:]}"]
        cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    beyond = [case for case in failed if "IndexError" in "".join(case.itertext())]
    skipped = sum(case.find("skipped") is not None for case in cases)
    row = {"run": len(cases) - skipped, "skipped": skipped, "failed": len(failed), "index errors": len(beyond)}
    return row, [f"{case.get('classname')}.{case.get('name')}" for case in failed]
