"""The oldest versions `make test-min` tests with are those that pyproject.toml allows."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


def allowed():
    """Return every requirement with a lower bound: of the package, of its extras and of the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for texts in lists for text in texts if not text.startswith("secateur[")]


def oldest():
    """Return the constraints of `make test-min`, by name."""
    lines = (ROOT / "tests" / "oldest.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(line.name): line for line in found}


def version_of(requirement, operator):
    (version,) = (part.version for part in requirement.specifier if part.operator == operator)
    return Version(version)


def test_the_oldest_version_tested_is_the_oldest_allowed():
    for requirement in allowed():
        tested = oldest()[canonicalize_name(requirement.name)]
        assert version_of(tested, "==") == version_of(requirement, ">="), requirement


def test_nothing_is_held_back_that_is_not_required():
    assert set(oldest()) == {canonicalize_name(requirement.name) for requirement in allowed()}
