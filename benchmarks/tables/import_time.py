"""Time the import and the help of the command line."""

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.discovery import Table
from benchmarks.measure import Job, take_turns
from benchmarks.results import Result, Target

_NOTES = [
    "New processes, started in alternation; bytecode is cached (PYTHONDONTWRITEBYTECODE unset, one run before timing).",
    "extra_seconds: the median minus the median of an interpreter that does nothing.",
    "prune: the first use of secateur.prune, which imports numpy, scipy, scikit-learn and numba; no target.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 15
    commands = {
        "nothing": [sys.executable, "-c", "pass"],
        "import secateur": [sys.executable, "-c", "import secateur"],
        "from secateur import prune": [sys.executable, "-c", "from secateur import prune"],
    }
    skipped = []
    script = Path(sys.executable).with_name("secateur")
    if find_spec("secateur.cli") and script.exists():
        commands["secateur --help"] = [str(script), "--help"]
    else:
        skipped.append("secateur --help: the command line is not installed")
    jobs = {name: Job(partial(start, command)) for name, command in commands.items()}
    for job in jobs.values():
        job.run()
    times = take_turns(jobs, repeats)
    extra = {name: time - times["nothing"] for name, time in times.items()}
    rows = [{"command": name, "seconds": time, "extra_seconds": extra[name]} for name, time in times.items()]
    promised = ("import secateur", "secateur --help")
    targets = [Target(f"extra seconds of {name}", extra.get(name), at_most=0.5) for name in promised]
    return Result(rows, repeats, _NOTES, targets, skipped=skipped)


def start(command: list[str]) -> None:
    """Run a command to its end, with bytecode caching on."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, capture_output=True, env=environment)


TABLE = Table("import_time", "Import time and start-up time of the command line", run)
