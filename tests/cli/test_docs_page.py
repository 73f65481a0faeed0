"""Every command line and every table in docs/cli.md is true, and what docs/first_steps.md has a new user type."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from tests.cli.runner import call
from typer.main import get_command

from secateur import as_forest
from secateur.cli import _errors_and_interrupts as running
from secateur.cli import app
from secateur.files.models import load_model, save_model

DOCS = Path(__file__).parents[2] / "docs"


def lines_of(page):
    """Return the calls of secateur in the shell blocks of a page."""
    return re.findall(r"^secateur (.*)$", "".join(re.findall(r"```bash\n(.*?)```", page, flags=re.S)), flags=re.M)


PAGE = (DOCS / "cli.md").read_text()
LINES = lines_of(PAGE)
COMMANDS = list(get_command(app).commands)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Be in a folder with the files the page speaks of."""
    monkeypatch.chdir(tmp_path)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    save_model(RandomForestRegressor(15, random_state=0).fit(X[::2], y[::2]), "model.skops")
    rows = X.assign(y=y)[1::2]
    rows[::2].to_csv("rows.csv", index=False)
    rows[1::2].to_csv("others.csv", index=False)
    pd.DataFrame({"feature": X.columns, "cost": np.arange(1, 11)}).to_csv("prices.csv", index=False)


# More than five seconds where kernels are cold: every command of the page is run on a forest of real size.
def test_the_command_lines_run_in_order(folder):
    for line in LINES:
        out = re.search(r"--out (\S+)", line)
        assert out is None or "--force" in line or not Path(out.group(1)).exists(), line
        call(*shlex.split(line))
        assert out is None or Path(out.group(1)).exists(), line


def test_a_new_user_s_own_model_is_pruned_as_written(folder):
    model = load_model("model.skops")
    save_model(model, "model.joblib")
    for line in lines_of((DOCS / "first_steps.md").read_text()):
        call(*shlex.split(line))
    assert Path("report.html").exists()
    small = load_model("small.joblib", trust=True)
    assert type(small) is type(model)
    assert as_forest(small).n_nodes < as_forest(model).n_nodes


def test_every_command_has_a_line_and_a_row():
    assert {line.split()[0] for line in LINES} == set(COMMANDS)
    assert re.findall(r"^\| `([\w-]+)` \| \w", PAGE.split("## demo")[0], flags=re.M) == COMMANDS


def test_the_exit_codes_are_all_there():
    codes = [running.FAILED, running.BUG, running.INTERRUPTED, running.BROKEN_PIPE, running.TERMINATED]
    assert sorted([0, 2, *codes]) == [int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, flags=re.M)]


def test_options_named_on_the_page_exist():
    known = {name for command in get_command(app).commands.values() for param in command.params for name in param.opts}
    known |= {name for param in get_command(app).params for name in param.opts} | {"--help"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= known
