"""The tests of libraries, files and exports pass with the newest Python that is installed and the newest libraries."""

import json
import subprocess
import tempfile
from pathlib import Path
from unittest import SkipTest
from xml.etree import ElementTree

from tests.hardening.checks import Figures
from tests.hardening.page import ROOT

LONG = 2
"""Above 1, all folders of `_FOLDERS` are run, otherwise the first."""
_FOLDERS = ("forest", "data", "export", "files", "libraries")
_NEWEST = ROOT / ".venv-newest" / "bin" / "python"
_PACKAGES = (
    *("numpy", "scipy", "scikit-learn", "numba", "xgboost", "lightgbm", "catboost", "pyspark", "onnx", "onnxruntime"),
    *("skops", "pandas", "polars", "pyarrow", "highspy", "matplotlib", "typer", "rich"),
)
_VERSIONS = """
import json, platform, sys
from importlib.metadata import version
print(json.dumps({"Python": platform.python_version(), **{name: version(name) for name in sys.argv[1:]}}))
"""


def run(scale: int) -> Figures:
    """Run the tests of some folders with the newest versions."""
    if not _NEWEST.exists():
        raise SkipTest("The newest versions are not installed. Run: make test-newest")
    found = subprocess.run([_NEWEST, "-c", _VERSIONS, *_PACKAGES], capture_output=True, text=True, check=True)
    versions = ", ".join(f"{name} {version}" for name, version in json.loads(found.stdout).items())
    rows, bad = [], []
    for folder in _FOLDERS if scale > 1 else _FOLDERS[:1]:
        with tempfile.TemporaryDirectory() as temporary:
            report = Path(temporary) / "report.xml"
            options = ["-q", "-m", "not (spark or browser)", "-n", "2", "--dist", "loadgroup", f"--junitxml={report}"]
            command = [_NEWEST, "-m", "pytest", *options, f"tests/{folder}"]
            ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if not report.exists():
                bad.append(f"{folder}: {ended.stdout[-500:]}{ended.stderr[-500:]}")
                continue
            cases = list(ElementTree.parse(report).iter("testcase"))
        skipped = sum(case.find("skipped") is not None for case in cases)
        failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
        rows.append({"tests": folder, "run": len(cases) - skipped, "skipped": skipped, "failed": len(failed)})
        bad += [f"{case.get('classname')}.{case.get('name')}" for case in failed]
    notes = [
        f"Versions: {versions}.",
        "`make test-newest` runs the whole suite with them, `make test-min` with the oldest versions.",
    ]
    return Figures(rows, bad, notes)
