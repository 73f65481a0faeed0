"""The command line, with real files: what it prints, what it writes, and what it says when it cannot."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import secateur as sc
from secateur import __version__
from secateur.cli import app
from secateur.io.files import load_model, save_model

FOREST = RandomForestClassifier(15, random_state=0)


def call(*args, code=0, **env):
    """Run a command and return what it did; `code` is the exit code expected."""
    result = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "100", **env})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with a trained forest and rows it has not seen; labels are text."""
    folder = tmp_path_factory.mktemp("made")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rows = X.iloc[:, :8].assign(y=np.array(["malign", "benign"])[y])
    save_model(FOREST.fit(rows.iloc[:250, :8], rows.y[:250]), folder / "forest.skops")
    save_model(FOREST, folder / "forest.pkl")
    rows[:250].to_csv(folder / "train.csv", index=False)
    rows[250:450].to_csv(folder / "rows.csv", index=False)
    rows[450:].to_csv(folder / "others.csv", index=False)
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    rows[250:450].to_parquet(folder / "rows.parquet")
    return folder


@pytest.fixture
def here(made, tmp_path):
    """Return a copy of the folder that a test may change."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def numbers_of(output):
    """Return the rows of a printed table: name → cells."""
    lines = [line.split() for line in output.splitlines() if line.startswith(" ")]
    return {line[0]: [cell.replace(",", "") for cell in line[1:]] for line in lines if line}


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


def test_wrong_usage_exits_with_2(made):
    call("prune", made / "forest.skops", code=2)
    call("inspect", code=2)
    call("burn", code=2)
    call("select", "p.npz", "--out", "o.skops", "--max-nodes", "many", code=2)


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


def test_pickle_is_refused_without_trust(made):
    result = call("inspect", made / "forest.pkl", code=1)
    assert result.stdout == ""
    assert "can run any code" in result.stderr
    assert "Traceback" not in result.output
    call("inspect", made / "forest.pkl", "--trust")


def test_debug_shows_the_traceback(made):
    result = CliRunner().invoke(app, ["inspect", str(made / "forest.pkl"), "--debug"])
    assert isinstance(result.exception, ValueError)


def test_a_model_that_is_no_tree_is_refused(tmp_path):
    save_model(OneHotEncoder().fit([["a"]]), tmp_path / "m.skops")
    assert "not a tree model" in call("inspect", tmp_path / "m.skops", code=1).stderr


# prune


def test_pruned_model_obeys_the_limit_and_predicts(here):
    call("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--max-nodes", 100, "-o", here / "s.skops")
    small = load_model(here / "s.skops")
    assert sc.as_forest(small).n_nodes <= 100
    rows = pd.read_csv(here / "others.csv")
    assert set(small.predict(rows[FOREST.feature_names_in_])) <= {"malign", "benign"}


def test_prune_writes_what_the_api_returns(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--validation", here / "others.csv")
    call(*args, "--max-depth", 3, "--loss", "log_loss", "--cost", "leaves", "-o", here / "s.skops")
    rows, others = pd.read_csv(here / "rows.csv"), pd.read_csv(here / "others.csv")
    names = list(FOREST.feature_names_in_)
    same = sc.prune(
        FOREST,
        rows[names],
        rows.y,
        validation=(others[names], others.y),
        max_depth=3,
        loss="log_loss",
        cost="leaves",
    )
    small = load_model(here / "s.skops")
    np.testing.assert_array_equal(small.predict_proba(others[names]), same.predict_proba(others[names]))


def test_prune_json_equals_the_table_and_is_alone_on_stdout(here):
    args = ("prune", here / "forest.skops", here / "train.csv", "--target", "y", "--max-nodes", 200, "--force")
    result = call(*args, "-o", here / "s.skops", "--json")
    summary = json.loads(result.stdout)
    assert "out-of-bag" in summary["rows"]["chosen_on"]  # the training rows of a random forest
    shown = numbers_of(call(*args, "-o", here / "s.skops").stdout)
    for name in ("nodes", "leaves", "trees", "depth", "features"):
        assert shown[name][:2] == [str(summary["before"][name]), str(summary["after"][name])]
    assert summary["file"] == str(here / "s.skops")
    assert summary["after"]["nodes"] == sc.as_forest(load_model(here / "s.skops")).n_nodes


def test_formats_give_the_same_result(here):
    found = []
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet"):
        args = ("prune", here / "forest.skops", here / name, "--target", "y", "--max-nodes", 150, "--force", "--json")
        found.append(json.loads(call(*args, "--out", here / "s.skops").stdout))
    assert found[0] == found[1] == found[2]


def test_row_weights_are_taken_from_their_column(here):
    rows = pd.read_csv(here / "rows.csv")
    rows.assign(w=np.where(rows.y == "benign", 1.0, 0.0)).to_csv(here / "weighted.csv", index=False)
    args = ("path", here / "forest.skops", "--target", "y", "--json")
    weighted = json.loads(call(*args, here / "weighted.csv", "--weights", "w", "-o", here / "w.npz").stdout)
    rows[rows.y == "benign"].to_csv(here / "some.csv", index=False)
    some = json.loads(call(*args, here / "some.csv", "-o", here / "s.npz").stdout)
    assert weighted["table"]["n_nodes"] == some["table"]["n_nodes"]
    assert weighted["table"]["risk"] == pytest.approx(some["table"]["risk"])


def test_a_pipeline_gets_its_text_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"colour": rng.choice(["red", "blue", "grey"], 200), "size": rng.normal(size=200)})
    rows.loc[::9, "colour"] = None
    y = (rows["colour"] == "red") ^ (rows["size"] > 0)
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    save_model(make_pipeline(encode, RandomForestClassifier(5, random_state=0)).fit(rows, y), tmp_path / "p.skops")
    rows.assign(extra="x", y=y).to_csv(tmp_path / "rows.csv", index=False)
    call(
        "prune",
        tmp_path / "p.skops",
        tmp_path / "rows.csv",
        "--target",
        "y",
        "--max-depth",
        2,
        "-o",
        tmp_path / "s.pkl",
    )
    small = load_model(tmp_path / "s.pkl", trust=True)
    assert sc.as_forest(small).max_depth <= 2
    assert small.predict(rows).dtype == bool


def test_an_outlier_detector_needs_no_target(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    save_model(IsolationForest(n_estimators=5, random_state=0).fit(X), tmp_path / "i.skops")
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b", comments="")
    call("prune", tmp_path / "i.skops", tmp_path / "rows.csv", "--max-nodes", 60, "--out", tmp_path / "s.skops")
    assert sc.as_forest(tmp_path / "s.skops").n_nodes <= 60


def test_warnings_are_one_plain_line_each(here):
    args = ("prune", here / "forest.skops", here / "train.csv", "--target", "y", "--validation", "none")
    lines = call(*args, "-o", here / "s.skops").stderr.splitlines()
    assert [line for line in lines if line.startswith("Warning: X looks like the rows the model was trained on")]
    assert all(line.startswith("Warning: ") for line in lines)


@pytest.mark.parametrize("command", ["prune", "path"])
def test_existing_output_is_not_overwritten(command, here):
    out = here / ("s.skops" if command == "prune" else "p.npz")
    out.write_text("precious")
    args = (command, here / "missing.skops", here / "rows.csv", "--target", "y", "--out", out)
    # The output is looked at first, before any work: here before the model is found missing.
    assert "would be overwritten" in call(*args, code=1).stderr
    assert out.read_text() == "precious"
    assert "no file" in call(*args, "--force", code=1).stderr
    assert out.read_text() == "precious"


def test_output_in_a_missing_folder_is_told_first(here):
    args = ("prune", here / "missing.skops", here / "rows.csv", "--target", "y")
    assert "does not exist" in call(*args, "--out", here / "nowhere" / "s.skops", code=1).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.h5"], "a model file ends in"),
        (["path", "forest.skops", "rows.csv", "--target", "y", "--out", "p.json"], "must end in .npz"),
        (["prune", "forest.skops", "rows.txt", "--target", "y", "--out", "s.skops"], "a data file ends in"),
        (["prune", "forest.skops", "gone.csv", "--target", "y", "--out", "s.skops"], "There is no file"),
        (["prune", "forest.skops", "rows.csv", "--target", "z", "--out", "s.skops"], "no column 'z'"),
        (["prune", "forest.skops", "rows.csv", "--out", "s.skops"], "--target is missing"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--solver", "x"], "known are"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--loss", "x"], "known are"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--cost", "x"], "known are"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--weights", "y"], "holds text"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--max-nodes", "3"], "nearest"),
        (["prune", "forest.skops", "rows.csv", "--target", "y", "--out", "s.skops", "--validation", "2"], "share"),
        (["path", "forest.skops", "rows.csv", "--target", "y", "--out", "p.npz", "--validation", "2"], "share"),
        (["prune", "broken.skops", "rows.csv", "--target", "y", "--out", "s.skops"], "damaged"),
        (["prune", "forest.skops", "broken.csv", "--target", "y", "--out", "s.skops"], "has 1 fields"),
        (["prune", "forest.skops", "broken.parquet", "--target", "y", "--out", "s.skops"], "cannot be read as parquet"),
        (["select", "broken.npz", "--out", "s.skops"], "damaged"),
        (["select", "gone.npz", "--out", "s.skops"], "gone.npz"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence_and_leaves_nothing(args, message, here, monkeypatch):
    monkeypatch.chdir(here)
    Path("broken.skops").write_bytes(Path("forest.skops").read_bytes()[:5000])
    Path("broken.csv").write_text("a,y\n1\n")
    Path("broken.parquet").write_text("hello")
    Path("broken.npz").write_text("hello")
    Path("rows.txt").write_text("a,y\n1,2\n")
    before = sorted(os.listdir())
    result = call(*args, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir()) == before


def test_progress_is_shown_on_a_terminal_only_and_not_on_stdout(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--force", "--json")
    on_terminal = call(*args, "--out", here / "s.skops", TTY_COMPATIBLE="1")
    assert "evaluating" in on_terminal.stderr
    piped = call(*args, "--out", here / "s.skops", TTY_COMPATIBLE="0")
    assert "evaluating" not in piped.stderr
    assert json.loads(piped.stdout) == json.loads(on_terminal.stdout)


def test_colours_respect_no_color(made):
    args = ("inspect", made / "forest.pkl")
    assert "\x1b[31m" in call(*args, code=1, FORCE_COLOR="1", NO_COLOR="").stderr
    assert "\x1b[31m" not in call(*args, code=1, FORCE_COLOR="1", NO_COLOR="1").stderr


# path and select


@pytest.fixture(scope="module")
def paths(made):
    """Return the folder with two paths in it, one evaluated."""
    args = ("path", made / "forest.skops", made / "rows.csv", "--target", "y")
    call(*args, "--out", made / "plain.npz")
    call(*args, "--out", made / "judged.npz", "--validation", made / "others.csv")
    return made


def test_path_json_equals_the_saved_path(here):
    args = ("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--validation", 0.4)
    facts = json.loads(call(*args, "--out", here / "p.npz", "--json").stdout)
    saved = sc.Path.load(here / "p.npz")
    assert facts["points"] == len(saved)
    assert facts["solver"] == saved.solver
    for name, column in saved.table.items():
        if np.isfinite(column).all():
            assert facts["table"][name] == column.tolist()
    assert saved.facts["evaluated_rows"] == 80
    assert saved.facts["made_on_rows"] == 120
    assert "0.4" in saved.facts["evaluated_on"]


def test_path_shows_about_twenty_points_from_first_to_last(paths):
    args = ("path", paths / "forest.skops", paths / "rows.csv", "--target", "y", "--force")
    shown = numbers_of(call(*args, "--out", paths / "plain.npz").stdout)
    points = [int(name) for name in shown if name.isdigit()]
    saved = sc.Path.load(paths / "plain.npz")
    assert len(points) == 20 < len(saved)
    assert (points[0], points[-1]) == (0, len(saved) - 1)
    assert [int(shown[str(p)][0]) for p in points] == saved.table["n_nodes"][points].tolist()


def test_path_is_that_of_the_api(paths):
    rows = pd.read_csv(paths / "rows.csv")
    same = sc.prune_path(FOREST, rows[list(FOREST.feature_names_in_)], rows.y)
    np.testing.assert_array_equal(sc.Path.load(paths / "plain.npz").table["risk"], same.table["risk"])


def test_select_finds_the_model_again(paths, tmp_path):
    summary = json.loads(
        call("select", paths / "plain.npz", "--max-nodes", 80, "-o", tmp_path / "s.skops", "--json").stdout
    )
    small = load_model(tmp_path / "s.skops")
    assert type(small) is RandomForestClassifier
    assert sc.as_forest(small).n_nodes == summary["after"]["nodes"] <= 80


def test_select_by_loss_needs_an_evaluated_path(paths, tmp_path):
    args = ("--max-loss-increase", 0.1, "-o", tmp_path / "s.skops")
    assert "evaluated" in call("select", paths / "plain.npz", *args, code=1).stderr
    output = call("select", paths / "judged.npz", *args).stdout
    assert "the validation rows" in output


def test_limit_nothing_satisfies_names_the_nearest(paths, tmp_path):
    result = call("select", paths / "plain.npz", "--max-nodes", 3, "-o", tmp_path / "s.skops", code=1)
    assert "The nearest, point" in result.stderr
    assert not list(tmp_path.iterdir())


def test_select_says_when_the_model_is_gone_and_takes_it_from_elsewhere(here):
    call("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "p.npz")
    (here / "forest.skops").rename(here / "moved.skops")
    args = ("select", here / "p.npz", "--max-nodes", 80, "--out", here / "s.skops")
    result = call(*args, code=1)
    assert "is gone" in result.stderr
    assert "--model" in result.stderr
    call(*args, "--model", here / "moved.skops")


def test_select_says_when_the_model_has_changed(here):
    call("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "p.npz")
    rows = pd.read_csv(here / "train.csv")
    other = RandomForestClassifier(15, random_state=1).fit(rows.iloc[:, :8], rows.y)
    save_model(other, here / "forest.skops", force=True)
    args = ("select", here / "p.npz", "--max-nodes", 80, "--out", here / "s.skops")
    assert "has changed" in call(*args, code=1).stderr
    assert "another model" in call(*args, "--model", here / "forest.skops", code=1).stderr
    assert not (here / "s.skops").exists()


def test_select_takes_the_same_model_from_another_kind_of_file(here):
    call("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "p.npz")
    args = ("select", here / "p.npz", "--max-nodes", 80, "--out", here / "s.skops", "--model", here / "forest.pkl")
    assert "can run any code" in call(*args, code=1).stderr
    call(*args, "--trust")


def test_select_from_a_path_without_a_model_asks_for_it(here):
    rows = pd.read_csv(here / "rows.csv")
    sc.prune_path(FOREST, rows[list(FOREST.feature_names_in_)], rows.y).save(here / "p.npz")
    args = ("select", here / "p.npz", "--max-nodes", 80, "--out", here / "s.skops")
    assert "does not say which model" in call(*args, code=1).stderr
    call(*args, "--model", here / "forest.skops")


# demo


def test_demo_writes_a_model_that_predicts_what_it_says(tmp_path):
    output = call("demo", "--out", tmp_path / "d").stdout
    small = load_model(tmp_path / "d" / "small.skops")
    forest = sc.as_forest(small)
    shown = numbers_of(output)
    assert forest.n_nodes <= 500
    assert [shown["nodes"][1], shown["leaves"][1]] == [str(forest.n_nodes), str(forest.n_leaves)]
    assert set(small.predict(load_breast_cancer().data)) == {0, 1}
    assert "sc.prune(model, X_prune, y_prune, max_nodes=500)" in output


def test_demo_does_not_overwrite_unless_forced(tmp_path):
    call("demo", "--out", tmp_path)
    assert "would be overwritten" in call("demo", "--out", tmp_path, code=1).stderr
    call("demo", "--out", tmp_path, "--force")
