"""Error messages of the commands say what was found, what is needed and what to do; exit codes are set."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OneHotEncoder
from tests.cli.runner import call

from secateur.cli._errors_and_interrupts import EXIT_CODES, reports_errors
from secateur.files.models import load_model, save_model

COLUMNS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Return a folder with a model, rows, a path, and most of what can be wrong with these."""
    folder = tmp_path_factory.mktemp("everything")
    X, y = load_iris(return_X_y=True)
    X = pd.DataFrame(X, columns=COLUMNS)
    for seed, name in enumerate(("m.skops", "other.skops")):
        save_model(RandomForestClassifier(4, random_state=seed).fit(X[::2], y[::2]), folder / name)
    save_model(OneHotEncoder().fit([["a"]]), folder / "encoder.skops")
    rows = X[1::2].assign(species=y[1::2])
    tables = {
        "rows.csv": rows,
        "renamed.csv": rows.rename(columns={"sepal_width": "sepal_widht"}),
        "text.csv": rows.astype({"petal_width": object}).set_axis(range(len(rows))),
        "none.csv": rows[:0],
        "unlabelled.csv": rows.assign(species=None),
        "strange.csv": rows.assign(species="rose"),
    }
    tables["text.csv"].loc[4, "petal_width"] = "wide"
    for name, table in tables.items():
        table.to_csv(folder / name, index=False)
    rows.to_parquet(folder / "rows.parquet")
    made = ("path", folder / "m.skops", folder / "rows.csv", "--target", "species", "--solver", "weakest_link")
    call(*made, "--out", folder / "p.npz")
    for whole in ("m.skops", "p.npz", "rows.parquet"):
        (folder / f"cut{Path(whole).suffix}").write_bytes((folder / whole).read_bytes()[:-500])
    np.savez(folder / "foreign.npz", a=1)
    for name in ("m.txt", "m.json", "empty.csv", "rows.tsv", "file"):
        (folder / name).write_text("")
    (folder / "ragged.csv").write_text("a,b\n1\n")
    (folder / "folder").mkdir()
    return folder


PRUNE = "prune m.skops rows.csv --target species --out s.skops"
CASES = {
    # files
    "inspect gone.skops": ["no file gone.skops", "a model file is needed", "Check the name"],
    "inspect rows.csv": ["the suffix .csv", "a model file ends in", "Use one of these"],
    "inspect cut.skops": ["cannot be read", "damaged", "Save the model again"],
    "inspect m.txt": ["m.txt", "needs a complete model", "Save the model again"],
    "inspect m.json": ["m.json is neither an XGBoost nor a CatBoost model", "Save the model again"],
    "inspect encoder.skops": ["OneHotEncoder", "not a tree model", "Pass"],
    "inspect folder": ["folder contains 0 tree models", "exactly one is needed", "Pass the folder of one"],
    "inspect file/m.skops": ["no file file/m.skops", "is needed", "Check the name"],
    "prune m.skops gone.csv --target species --out s.skops": ["no file gone.csv", "data file is needed", "Check"],
    "prune m.skops rows.tsv --target species --out s.skops": ["an unknown suffix", "a data file ends in", "Use one"],
    "prune m.skops cut.parquet --target species --out s.skops": [
        "cannot be read as parquet",
        "corrupted",
        "Save the data again",
    ],
    "prune m.skops ragged.csv --target species --out s.skops": [
        "Line 2",
        "has 1 fields",
        "2 columns",
        "Correct that line",
    ],
    "prune m.skops empty.csv --target species --out s.skops": ["is empty", "needs a line of", "Check the file"],
    "prune m.skops none.csv --target species --out s.skops": [
        "has no rows",
        "needs a line of column names",
        "Check the file",
    ],
    # columns
    "prune m.skops renamed.csv --target species --out s.skops": ["no column 'sepal_width'", "'sepal_widht'", "Check"],
    "prune m.skops rows.csv --target specis --out s.skops": ["no column 'specis'", "it has 'species'", "Check"],
    "prune m.skops rows.csv --out s.skops": [
        "--target is missing",
        "needs a target column",
        "Use a column of",
        "species",
    ],
    f"{PRUNE} --weights wieght": ["no column 'wieght'", "it has", "Check"],
    "prune m.skops text.csv --target species --out s.skops": [
        "'petal_width' of text.csv contains text, 'wide' in row 5",
        "needs numbers",
        "encode the column",
    ],
    "inspect m.skops text.csv": ["'petal_width'", "needs numbers", "encode the column"],
    "serve-cost m.skops text.csv": ["'petal_width'", "needs numbers", "encode the column"],
    "prune m.skops unlabelled.csv --target species --out s.skops": ["missing values", "needs a label", "Drop"],
    "prune m.skops strange.csv --target species --out s.skops": ["'rose'", "labels are [0, 1, 2]", "Drop those rows"],
    # names
    f"{PRUNE} --solver weakest_lnk": [
        "--solver weakest_lnk is unknown",
        "known names are",
        "Did you mean weakest_link?",
    ],
    f"{PRUNE} --loss logloss": ["--loss logloss is unknown", "known names are", "Did you mean log_loss?"],
    f"{PRUNE} --cost leafs": ["--cost leafs is unknown", "known names are", "Did you mean leaves?"],
    f"{PRUNE} --loss xyz": ["--loss xyz is unknown", "known names are", "Use one of these."],
    f"{PRUNE} --loss quantile:half": ["quantile:half", "known names are", "Use one of these."],
    f"{PRUNE} --loss squared_error": ["for regression", "this is a classification model", "Use one of"],
    f"{PRUNE} --validation oops": ["--validation oops", "nor a data file", "Use one of these"],
    f"{PRUNE} --validation gone.csv": ["no file gone.csv", "is needed", "Check the name"],
    f"{PRUNE} --validation 2": ["--validation 2", "between 0 and 1", "Try 0.25"],
    f"{PRUNE} --validation oob --solver weakest_link": ["'oob'", "needs all training rows", "Pass those"],
    f"{PRUNE} --scoring f1_makro": ["'f1_makro' is unknown", "is needed", "Did you mean f1_macro"],
    f"{PRUNE} --scoring r2_score": ["'r2_score' is unknown", "is needed", "Did you mean"],
    f"{PRUNE} --max-score-drop 0.1": ["no metric was given", "Pass its name with --scoring", "--max-loss-increase"],
    f"{PRUNE} --tolerance 0.1": ["this model predicts labels", "Leave out tolerance"],
    # limits
    f"{PRUNE} --solver weakest_link --max-nodes 3": ["max_nodes=3", "The nearest, point", "Raise the limit"],
    "select p.npz --out s.skops --max-loss-increase 0.1": ["not been evaluated", "not known", "--validation"],
    "select p.npz --out s.skops --point 999": ["--point 999", "has points 0 to", "Use one"],
    "select p.npz --out s.skops --point -1": ["--point -1", "has points 0 to", "Use one"],
    "select p.npz --out s.skops --point 1 --max-nodes 9": ["--point", "--max-nodes", "Leave out one"],
    # prices
    "inspect m.skops --costs rows.csv": ["--costs", "without rows", "Pass a DATA file"],
    f"{PRUNE} --costs gone.csv": ["no file gone.csv", "needs a file of feature prices", "Check the name"],
    f"{PRUNE} --regrow": ["regrow", "but the cost is nodes", "or regrow=False"],
    # results
    "prune m.skops rows.csv --target species --out m.skops": ["m.skops exists", "overwritten", "--force"],
    "prune m.skops rows.csv --target species --out no/s.skops": ["folder no", "does not exist", "Create it first"],
    "prune m.skops rows.csv --target species --out s.h5": ["the suffix .h5", "a model file ends in", "Use one"],
    "prune m.skops rows.csv --target species --out s.cbm": ["models of catboost", "RandomForestClassifier", "Use one"],
    "path m.skops rows.csv --target species --out p.json": ["p.json", "must end in .npz", "Use p.npz"],
    "path m.skops rows.csv --target species --out p.npz": ["p.npz exists", "overwritten", "--force"],
    "demo --out file": ["file is a file", "needs a folder", "Use another --out"],
    "demo --out file/d": ["file is a file", "needs a folder", "Use another --out"],
    # paths
    "select gone.npz --out s.skops": ["no file gone.npz", "a secateur path is needed", "Make one"],
    "select cut.npz --out s.skops": ["cannot be read", "damaged", "Make one"],
    "select foreign.npz --out s.skops": ["cannot be read", "has another format", "Make one"],
    "select p.npz --out s.skops --model other.skops": ["another model", "its trees differ", "Pass the model"],
    "select p.npz --out s.skops --model gone.skops": ["no file gone.skops", "is needed", "Check the name"],
}


@pytest.mark.parametrize("line", CASES)
def test_errors_say_what_was_found_what_is_needed_and_what_to_do(line, everything, monkeypatch):
    monkeypatch.chdir(everything)
    before = sorted(os.listdir())
    done = call(*line.split(), code=1)
    assert done.stdout == ""
    message = done.stderr.splitlines()[-1]
    assert message.startswith("Error: ")
    assert message.endswith((".", "?"))
    for part in CASES[line]:
        assert part in message
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir()) == before


def test_a_file_without_read_permission_is_reported(everything, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(everything / "m.skops"))

    monkeypatch.setattr("secateur.files.models.load_model", refused)
    message = call("inspect", everything / "m.skops", code=1).stderr
    assert (
        message
        == f"Error: Cannot access {everything / 'm.skops'}: permission denied. Check the name and the permissions.\n"
    )


def test_too_little_memory_is_reported(everything, monkeypatch):
    def full(*args, **kwargs):
        raise MemoryError("Unable to allocate 3 TiB")

    monkeypatch.setattr("secateur.files.models.load_model", full)
    message = call("inspect", everything / "m.skops", code=1).stderr
    assert "Not enough memory (Unable to allocate 3 TiB)" in message


@pytest.fixture
def broken(monkeypatch):
    """Make loading a model raise an unexpected exception."""

    def load(*args, **kwargs):
        raise KeyError("left")

    monkeypatch.setattr("secateur.files.models.load_model", load)


def test_an_unexpected_exception_is_reported_as_a_bug(everything, broken):
    done = call("inspect", everything / "m.skops", code=70)
    assert done.output == (
        "Error: KeyError: 'left'. This is a bug in secateur. Run again with --debug and report the output.\n"
    )


def test_debug_shows_the_traceback_of_a_bug(everything, broken):
    done = call("inspect", everything / "m.skops", "--debug", code=70)
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert 'raise KeyError("left")' in done.stderr


@pytest.mark.parametrize("limit", ["--max-nodes", "--max-leaves", "--max-bytes"])
def test_limits_that_no_model_satisfies_are_wrong_usage(limit):
    assert "Invalid value" in call("prune", "m.skops", "r.csv", "--out", "s.skops", limit, "0", code=2).stderr


@pytest.mark.parametrize("args", [(), ("prune",), ("demo",)])
def test_help_lists_the_exit_codes(args):
    assert EXIT_CODES in " ".join(call(*args, "--help").stdout.split())


def test_an_error_that_is_its_own_cause_is_reported(capsys):
    @reports_errors
    def fail(quiet, debug):
        error = ValueError("a circle")
        raise error from error

    with pytest.raises(typer.Exit) as stopped:
        fail(quiet=False, debug=False)
    assert stopped.value.exit_code == 1
    assert capsys.readouterr().err == "Error: a circle\n"


def test_errors_of_model_files_are_not_their_own_cause(tmp_path):
    pytest.importorskip("xgboost")
    (tmp_path / "m.ubj").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"m\.ubj") as caught:
        load_model(tmp_path / "m.ubj")
    assert caught.value.__cause__ is not caught.value
