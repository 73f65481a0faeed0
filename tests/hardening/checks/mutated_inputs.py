"""Damaged files, thousands of each format secateur reads, are refused with a clear error within a second or read
correctly.

Files are damaged at random (bits flipped, truncated, bytes overwritten, repeated, swapped) and with knowledge of the
format (children swapped or in cycles, features out of range, NaN thresholds, absurd counts, wrong types, deep nesting,
huge numbers, zips that unpack to gigabytes, contain pickles, or have paths outside of the archive).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from tests.hardening.checks import Figures
from tests.hardening.mutating.kind import GOOD

LONG = 250
"""In units of 40 mutations of each kind."""
_EACH = 40
_ROOT = Path(__file__).resolve().parents[3]
_ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads do not pay off for a few rows
_BATCH = 2_500
_LOOK, _SILENT = 1.0, 600
"""Seconds between two polls of a process, and seconds without output after which it counts as hanging."""
KINDS = (
    *("XGBoost .json", "XGBoost .ubj", "LightGBM .txt", "CatBoost .json", "CatBoost .cbm", "Spark folder"),
    *(".skops", ".secateur", "path .npz", "prices .csv", "data .csv", "data .csv.gz", "data .parquet"),
)
_NOTES = [
    "*refused*: an error that says what is wrong and what to do. *same*: read as the undamaged file. *another*: read "
    "as different content, and an independent reader agrees: the model's own library for predictions, a traversal of "
    "the nodes in plain Python for Spark, .secateur and paths (all of which are also written and read again), csv, "
    "pandas and pyarrow for tables. *unusable*: read, but scikit-learn itself raises an error at prediction.",
    "*bad*: another error, a difference, a process that dies or hangs, a refusal after more than a second of CPU time "
    "(one more for every 20 MB of a file that has become so large), memory growth of more than 512 MB, a file written "
    "elsewhere, or code that runs.",
    "Half of the mutations are blind, the other half keep the syntax. *slowest*: CPU seconds until a file was "
    "refused, at most. *largest*: megabytes the process grew by while it read a file, at most.",
]


def run(scale: int) -> Figures:
    """Try 40 mutations of each kind times `scale`, two processes at a time."""
    n = _EACH * scale
    if scale == 1:
        jobs = [[f"{kind}:0:{n}" for kind in KINDS[part::2]] for part in range(2)]
    else:
        jobs = [[f"{kind}:{first}:{min(first + _BATCH, n)}"] for kind in KINDS for first in range(0, n, _BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        found = Parallel(2, backend="threading")(delayed(outcomes)(Path(folder), job) for job in jobs)
    results = [one for some in found for one in some]
    rows = [_row(kind, [one for one in results if one[0] == kind]) for kind in KINDS]
    bad = [
        f"{kind}, mutation {number}: {how}. {message}" for kind, number, how, message, *_ in results if how not in GOOD
    ]
    bad += [f"{row['file']}: {row['mutations']} of {n} were reported" for row in rows if row["mutations"] != n]
    return Figures(rows, bad, _NOTES)


def _row(kind: str, results: list[Any]) -> dict[str, Any]:
    ends = Counter(how if how in GOOD else "bad" for _, _, how, *_ in results)
    refused = [seconds for _, _, how, _, seconds, _ in results if how == "refused"]
    return {
        "file": kind,
        "mutations": len(results),
        **{how: ends[how] for how in (*GOOD, "bad")},
        "slowest, s": max(refused, default=0.0),
        "largest, MB": max((grown for *_, grown in results), default=0.0),
    }


def outcomes(folder: Path, jobs: list[str]) -> list[Any]:
    """Return the outcome of each mutation of some jobs, restarting after every mutation that ended the process."""
    found: list[Any] = []
    while jobs:
        results, how, message = _one_process(folder, jobs)
        found += results
        done = Counter(kind for kind, *_ in results)
        jobs = [_rest(job, done) for job in jobs]
        jobs = [job for job in jobs if job is not None]
        if jobs and how:
            kind, first, _ = jobs[0].split(":")
            found.append([kind, int(first), how, message, 0.0, 0.0])
            rest = _rest(jobs[0], Counter([kind]))
            jobs = [job for job in (rest, *jobs[1:]) if job is not None]
        elif jobs:
            raise RuntimeError(f"The process ended without an error, but reported no results for {jobs}: {message}")
    return found


def _rest(job: str, done: Counter[str]) -> str | None:
    kind, first, stop = job.split(":")
    start = int(first) + done[kind]
    return f"{kind}:{start}:{stop}" if start < int(stop) else None


def _one_process(folder: Path, jobs: list[str]) -> tuple[list[Any], str | None, str]:
    """Return the results a process printed, how it failed (None if it did not), and the end of its stderr."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.hardening.mutating", str(folder), *jobs]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=_ROOT, env=_ENVIRONMENT, stdout=output, stderr=errors)
        hangs = _hangs(process, output)
        for stream in (output, errors):
            stream.seek(0)
        lines = [json.loads(line) for line in output if line.endswith("\n")]
        how = "hang" if hangs else "crash" if process.returncode else None
        return lines, how, f"exit code {process.returncode}: {errors.read()[-300:]}"


def _hangs(process: "subprocess.Popen[bytes]", output: Any) -> bool:
    """Wait for a process to end; kill it and return True if it prints nothing for too long."""
    size, since = -1, time.monotonic()
    while True:
        try:
            process.wait(_LOOK)
            return False
        except subprocess.TimeoutExpired:
            now = os.fstat(output.fileno()).st_size
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > _SILENT:
                process.kill()
                process.wait()
                return True
