"""The command line: help, usage, and what it says of a model."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from tests.cli.runner import FOREST, call, numbers_of

import secateur as sc
from secateur import __version__
from secateur.files.models import save_model


def test_help_works_from_a_shell():
    done = subprocess.run(
        [sys.executable, "-c", "from secateur.cli import main; main()", "--help"], capture_output=True
    )
    assert done.returncode == 0
    assert all(command in done.stdout.decode() for command in ("demo", "inspect", "prune", "path", "select"))


def test_help_imports_nothing_heavy():
    program = "import sys, secateur.cli; print([m for m in ('numpy', 'sklearn', 'numba', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_version_is_the_package_version():
    assert call("--version").stdout.strip() == f"secateur {__version__}"


@pytest.mark.parametrize("command", ["demo", "inspect", "prune", "path", "select"])
def test_every_command_has_help(command):
    assert "--debug" in call(command, "--help").stdout


@pytest.mark.parametrize(
    "args",
    [
        ("prune", "forest.skops"),
        ("inspect",),
        ("burn",),
        ("select", "p.npz", "--out", "o.skops", "--max-nodes", "many"),
    ],
)
def test_wrong_usage_exits_with_2(args):
    assert "Usage" in call(*args, code=2).stderr


# inspect


def test_inspect_json_equals_the_model_and_the_table(made):
    facts = json.loads(call("inspect", made / "forest.skops", "--json").stdout)
    forest = sc.as_forest(FOREST)
    assert facts["type"] == "RandomForestClassifier"
    assert (facts["task"], facts["classes"], facts["library"]) == ("classification", [2], "sklearn")
    assert (facts["trees"], facts["nodes"], facts["leaves"]) == (15, forest.n_nodes, forest.n_leaves)
    assert (facts["features_used"], facts["features"]) == (8, 8)
    shown = numbers_of(call("inspect", made / "forest.skops").stdout)
    for name in ("trees", "nodes", "leaves", "depth"):
        assert shown[name] == [str(facts[name])]


def test_inspect_shows_what_is_inside_a_pipeline(tmp_path, made):
    rows = pd.read_csv(made / "train.csv")
    model = make_pipeline(RandomForestClassifier(2, random_state=0)).fit(rows.iloc[:, :8], rows.y)
    save_model(model, tmp_path / "pipe.skops")
    output = call("inspect", tmp_path / "pipe.skops").stdout
    assert "Pipeline" in output
    assert "RandomForestClassifier" in output


def test_inspect_knows_the_other_tasks(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 2))
    save_model(DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0]), tmp_path / "r.skops")
    save_model(IsolationForest(n_estimators=3, random_state=0).fit(X), tmp_path / "i.skops")
    assert json.loads(call("inspect", tmp_path / "r.skops", "--json").stdout)["task"] == "regression"
    assert json.loads(call("inspect", tmp_path / "i.skops", "--json").stdout)["task"] == "outlier detection"


def test_inspect_shows_monotonic_constraints(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["age", "x", "[red]debt"])
    model = DecisionTreeRegressor(max_depth=2, monotonic_cst=[1, 0, -1])
    save_model(model.fit(X, X["age"]), tmp_path / "names.skops")
    save_model(model.fit(X.to_numpy(), X["age"]), tmp_path / "numbers.skops")
    described = [json.loads(call("inspect", tmp_path / f"{n}.skops", "--json").stdout) for n in ("names", "numbers")]
    assert described[0]["monotone"] == [{"feature": "age", "sign": 1}, {"feature": "[red]debt", "sign": -1}]
    assert described[1]["monotone"] == [{"feature": 0, "sign": 1}, {"feature": 2, "sign": -1}]
    shown = [line.split() for line in call("inspect", tmp_path / "names.skops").stdout.splitlines()]
    assert ["non-decreasing", "in", "age"] in shown
    assert ["non-increasing", "in", "[red]debt"] in shown


def test_inspect_does_not_mention_constraints_without_any(made):
    assert "monotone" not in json.loads(call("inspect", made / "forest.skops", "--json").stdout)
    assert "creasing" not in call("inspect", made / "forest.skops").stdout


def test_pickle_is_refused_without_trust(made):
    result = call("inspect", made / "forest.pkl", code=1)
    assert result.stdout == ""
    assert "can run any code" in result.stderr
    assert "Traceback" not in result.output
    call("inspect", made / "forest.pkl", "--trust")


def test_debug_shows_the_traceback(made):
    result = call("inspect", made / "forest.pkl", "--debug", code=1)
    assert "Traceback (most recent call last)" in result.stderr
    assert "Error: " in result.stderr.splitlines()[-1]


def test_a_model_that_is_no_tree_is_refused(tmp_path):
    save_model(OneHotEncoder().fit([["a"]]), tmp_path / "m.skops")
    assert "not a tree model" in call("inspect", tmp_path / "m.skops", code=1).stderr
