"""Fuzz one reader for some seconds: python -m tests.fuzz FORMAT --seconds N; the last line is a summary as JSON."""

import argparse
import importlib
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
from tests.hardening.mutating.damage import damage

_ZIPPED = {"path", "secateur", "skops"}
"""Formats that are zips: damaged bytes fail its checksum, so that their parts are damaged instead, half of the time."""
_DONE = re.compile(r"Done (\d+) runs")
_COVERAGE = re.compile(r"cov: (\d+)")


def main() -> None:
    """Fuzz in a process of its own, because libFuzzer ends the process, and report what it did."""
    try:
        import atheris  # noqa: F401
    except ImportError:
        sys.exit("Fuzzing needs atheris, which is not installed. Run: pip install atheris")
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("format", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for inputs that fail")
    arguments = parser.parse_args()
    sys.exit(0 if fuzz(arguments.format, arguments.seconds, arguments.found) else 1)


def fuzz(name: str, seconds: int, found: Path) -> bool:
    """Fuzz one reader, print a summary, and return whether no input failed."""
    found.mkdir(exist_ok=True)
    command = [sys.executable, "-c", "from tests.fuzz.__main__ import run; run()", name, str(seconds), str(found)]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    runs, coverage = _DONE.search(ended.stderr), _COVERAGE.findall(ended.stderr)
    if ended.returncode:
        sys.stderr.write(ended.stderr[-4000:])
    summary = {
        "format": name,
        "seconds": seconds,
        "inputs": int(runs.group(1)) if runs else 0,
        "branches of valid files": int(coverage[0]) if coverage else 0,
        "branches": int(coverage[-1]) if coverage else 0,
        "failed": int(ended.returncode != 0),
    }
    sys.stdout.write(json.dumps(summary) + "\n")
    return ended.returncode == 0


def run() -> None:
    """Start libFuzzer with valid files as its corpus; it ends the process."""
    import atheris

    from secateur import kernels

    name, seconds, found = sys.argv[1:]
    # What is imported in the block is instrumented, which numba cannot compile.
    for module in pkgutil.walk_packages(kernels.__path__, "secateur.kernels."):
        importlib.import_module(module.name)
    # Readers are imported when they first read a file.
    with atheris.instrument_imports(include=["secateur"]):
        from tests.fuzz.corpus import corpus
        from tests.fuzz.targets import TARGETS

        sources = corpus(name)
        for content in sources:
            TARGETS[name](content)
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(sources):
            Path(folder, str(number)).write_bytes(content)
        options = [f"-max_total_time={seconds}", f"-artifact_prefix={found}/", "-rss_limit_mb=2048", "-timeout=60"]
        mutator = {"custom_mutator": damaged_zip} if name in _ZIPPED else {}
        atheris.Setup([sys.argv[0], *options, folder], TARGETS[name], **mutator)
        atheris.Fuzz()
        # libFuzzer ends without running `finally` blocks where an input fails.
        os._exit(0)


def damaged_zip(data: bytes, max_size: int, seed: int) -> bytes:
    """Return a zip with one of its parts damaged, or half of the time the zip itself."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        try:
            return rezipped(data, rng)[:max_size]
        except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, EOFError, RuntimeError, OSError):
            pass
    return damage(data or b"PK", rng)[:max_size]


def rezipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a zip with one of its parts damaged."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    chosen = rng.choice(sorted(name for name, part in parts.items() if part))
    parts[chosen] = damage(parts[chosen], rng)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return stream.getvalue()


if __name__ == "__main__":
    main()
