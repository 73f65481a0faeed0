"""Read the table of mutants, make a mutated copy of the sources, and run the tests of the folder on it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).parent / "mutants.toml"
FOLDERS = {
    "losses": ["tests/losses", "tests/solvers"],
    "path": ["tests/path", "tests/solvers/feature_cost", "tests/selection"],
    "_util": ["tests/util", "tests/cli", "tests/reporting"],
    "secateur": ["tests/solvers/test_extreme_numbers.py", "tests/selection", "tests/data"],
}
"""Additional test folders of a source folder, besides the folder of the same name."""
ALWAYS = ["tests/contracts", "tests/test_*.py"]
NOT_OF_A_FOLDER = {"test_benchmarks.py", "test_examples.py", "test_readme.py", "test_docs.py", "test_layout.py"}


@dataclass(frozen=True)
class Mutant:
    """A defect: `after` in place of `before`, which occurs once in the file."""

    name: str
    file: str
    defect: str
    before: str
    after: str

    @property
    def folder(self) -> str:
        """The source folder that contains the file; the package itself for its modules."""
        return "/".join(Path(self.file).parts[2:-1]) or "secateur"

    def mutate(self, root: Path) -> None:
        """Change the file below `root`."""
        file = root / self.file
        text = file.read_text()
        if text.count(self.before) != 1:
            raise ValueError(f"{self.name}: the text to replace occurs {text.count(self.before)} times in {self.file}.")
        file.write_text(text.replace(self.before, self.after))


def read_table() -> list[Mutant]:
    """Return all mutants."""
    return [Mutant(**fields) for fields in tomllib.loads(TABLE.read_text())["mutant"]]


def places_for(mutant: Mutant, suite: Path) -> list[str]:
    """Return the test files and folders that are run on a mutant, those of its folder first."""
    folder = mutant.folder.removeprefix("kernels/")
    own = [f"tests/{folder}", f"tests/solvers/{folder}", f"tests/{mutant.folder}", f"tests/{folder.partition('/')[0]}"]
    own += FOLDERS.get(mutant.folder, FOLDERS.get(folder, []))
    found = [place for place in dict.fromkeys(own) if (suite / place).exists()]
    found += [str(file.relative_to(suite)) for place in ALWAYS for file in sorted(suite.glob(place))]
    return [place for place in found if Path(place).name not in NOT_OF_A_FOLDER]


def caught_by(mutant: Mutant, suite: Path, folder: Path) -> str | None:
    """Return the first test of a suite that fails on the mutant, None if none does."""
    shutil.copytree(suite / "src", folder / "src")
    mutant.mutate(folder)
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-m", "pytest", "-x", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    if "spark" not in mutant.folder:
        command += ["-k", "not spark_"]  # a Spark session takes longer than the tests of a folder
    command += places_for(mutant, suite)
    ran = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
    if ran.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", ran.stdout, re.MULTILINE)
    if ran.returncode != 1 and failed is None:
        raise RuntimeError(f"{mutant.name}: the tests did not run.\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return failed[1] if failed else "?"
