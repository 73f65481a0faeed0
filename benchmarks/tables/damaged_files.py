"""What becomes of damaged model files: thousands of mutations of each kind of file, each in a process that may die."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.discovery import Table
from benchmarks.mutations import GOOD
from benchmarks.results import Result, Row, Target
from benchmarks.small_models import save_small_models

_ROOT = Path(__file__).resolve().parents[2]
_BATCH = 2_500
_SECONDS = 600
"""For a batch; what takes longer hangs."""
_ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
"""Threads cost more than they give for a few rows."""
_NOTES = [
    "A small model of each kind of file is cut off, bits are turned, bytes overwritten, taken out and doubled, written "
    "numbers replaced, lines and items exchanged (benchmarks/mutations.py); a Spark model is a folder, of which one "
    "file is damaged or gone. They are read in processes that may die.",
    "refused: a ValueError or FileNotFoundError. same: read, and predicts as before. another model: read, predicts "
    "otherwise, and the library itself says the same of that file as secateur; Spark folders and .secateur files are "
    "only written and read again. disagree: library and secateur differ, or the file written does. crash: the process "
    f"died. hang: a batch of {_BATCH} took longer than {_SECONDS} s. Other columns: an error of another type.",
]


def run(quick: bool) -> Result:
    n_mutations = 20 if quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kinds = list(save_small_models(folder))
        batches = [(kind, first) for kind in kinds for first in range(0, n_mutations, _BATCH)]
        found = Parallel(1 if quick else 2, backend="threading")(
            delayed(run_batch)(folder, kind, first, min(first + _BATCH, n_mutations)) for kind, first in batches
        )
    rows, bad = [], []
    for kind in kinds:
        all_of_kind = [one for (of, _), some in zip(batches, found, strict=True) if of == kind for one in some]
        counts = Counter(how for _, how, _ in all_of_kind)
        rows.append(
            {"file": kind, "mutations": len(all_of_kind), **{name: counts.get(name, 0) for name in GOOD}, **counts}
        )
        bad += [
            {"file": kind, "mutation": n, "ended": how, "said": said} for n, how, said in all_of_kind if how not in GOOD
        ]
    targets = [
        Target("mutations per kind of file, the fewest", min(row["mutations"] for row in rows), at_least=n_mutations),
        Target(
            "mutations that ended neither in a clear error nor in a model the library agrees on", len(bad), at_most=0
        ),
    ]
    return Result(rows, 1, _NOTES, targets, _examples(bad))


def run_batch(folder: Path, kind: str, first: int, stop: int) -> list[tuple[int, str, str]]:
    """Return how each mutation of a batch ended, starting again behind every one that ended the process."""
    found: list[tuple[int, str, str]] = []
    while first < stop:
        command = [sys.executable, "-m", "benchmarks.mutations", str(folder), kind, str(first), str(stop)]
        with tempfile.TemporaryFile("w+") as told, tempfile.TemporaryFile("w+") as errors:
            try:
                code = subprocess.run(
                    command, cwd=_ROOT, env=_ENVIRONMENT, stdout=told, stderr=errors, timeout=_SECONDS
                ).returncode
                ended = "crash"
            except subprocess.TimeoutExpired:
                code, ended = 1, "hang"
            told.seek(0)
            errors.seek(0)
            found += [tuple(json.loads(line)) for line in told if line.endswith("\n")]
            first = found[-1][0] + 1 if found else first
            if code or first < stop:
                said = errors.read()[-200:]
                found.append((first, ended, f"exit code {code}: {said}"))
                first += 1
    return found


def _examples(bad: list[Row]) -> list[Row]:
    """Return the first few of each kind of bad end."""
    kept: list[Row] = []
    for row in bad:
        if sum(other["file"] == row["file"] and other["ended"] == row["ended"] for other in kept) < 3:
            kept.append(row)
    return kept


TABLE = Table("damaged_files", "Damaged model files", run)
