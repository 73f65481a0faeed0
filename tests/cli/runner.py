"""Running a command, and reading what it printed."""

from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from secateur.cli import app

FOREST = RandomForestClassifier(15, random_state=0)
"""Fitted by the fixture `made`."""


def call(*args, code=0, **env):
    """Run a command and return what it did; `code` is the exit code expected."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "100", **env})
    assert result.exit_code == code, result.output
    return result


def numbers_of(output):
    """Return the rows of a printed table: name → cells."""
    lines = [line.split() for line in output.splitlines() if line.startswith(" ")]
    return {line[0]: [cell.replace(",", "") for cell in line[1:]] for line in lines if line}
