"""`secateur prune` with real files: what it prints, what it writes, and what it says when it cannot."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from tests.cli.runner import FOREST, call, numbers_of

import secateur as sc
from secateur.cli._tables_and_json import before_after
from secateur.cli._terminal import stdout
from secateur.files.models import load_model, save_model


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
    assert "refitted clones" in summary["rows"]["chosen_on"]  # the training rows of a random forest
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
        for when in ("before", "after"):
            del found[-1][when]["bytes"]  # skops numbers objects by their addresses
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


def test_rows_of_a_validation_file_have_weights_too(here):
    for name in ("rows", "others"):
        frame = pd.read_csv(here / f"{name}.csv")
        frame.assign(w=np.arange(len(frame)) % 3).to_csv(here / f"{name}.csv", index=False)
    args = (
        "path",
        here / "forest.skops",
        here / "rows.csv",
        "--target",
        "y",
        "--weights",
        "w",
        "--solver",
        "weakest_link",
    )
    call(*args, "--validation", here / "others.csv", "-o", here / "p.npz")
    others = pd.read_csv(here / "others.csv")
    path = sc.Path.load(here / "p.npz", load_model(here / "forest.skops"))
    again = path.evaluate(others.drop(columns=["y", "w"]), others.y, sample_weight=others.w)
    np.testing.assert_allclose(path.table["loss"], again.table["loss"], rtol=1e-12)
    plain = path.evaluate(others.drop(columns=["y", "w"]), others.y)
    assert not np.allclose(path.table["loss"], plain.table["loss"])


def test_a_pipeline_gets_its_text_columns(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"colour": rng.choice(["red", "blue", "grey"], 200), "size": rng.normal(size=200)})
    rows.loc[::9, "colour"] = np.nan
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
    assert len(set(lines)) == len(lines)


def test_small_fractions_are_not_shown_as_zero(capsys):
    before, after = {"nodes": 451_156, "trees": 200, "depth": 0}, {"nodes": 1_131, "trees": 61, "depth": 0}
    stdout().print(before_after({"before": before, "after": after, "saved_as": None}))
    shown = [line.split()[-1] for line in capsys.readouterr().out.splitlines() if line.split()[:1] != []]
    assert shown[-3:] == ["0.25%", "30%", "0"]


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


def test_a_missing_output_folder_is_reported_first(here):
    args = ("prune", here / "missing.skops", here / "rows.csv", "--target", "y")
    assert "does not exist" in call(*args, "--out", here / "nowhere" / "s.skops", code=1).stderr


@pytest.mark.parametrize("name", ["forest.skops", "forest.pkl"])
def test_colours_respect_no_color(made, name):
    """The one prints its name in bold on stdout, the other an error in red on stderr."""
    args, code = ("inspect", made / name), int(name.endswith(".pkl"))
    assert "\x1b[" in call(*args, code=code, FORCE_COLOR="1", NO_COLOR="").output
    assert "\x1b" not in call(*args, code=code, FORCE_COLOR="1", NO_COLOR="1").output
    assert "\x1b" not in call(*args, code=code, FORCE_COLOR="1", NO_COLOR="", TERM="dumb").output


@pytest.mark.parametrize("suffix", [".skops", ".joblib", ".onnx"])
def test_bytes_are_those_of_the_files(here, suffix):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--max-bytes", 30_000)
    facts = json.loads(call(*args, "--out", here / f"s{suffix}", "--json").stdout)
    size = (here / f"s{suffix}").stat().st_size
    assert facts["after"]["bytes"] == size <= 30_000
    shown = call("inspect", here / "forest.skops", "--json").stdout
    assert json.loads(shown)["bytes"] == (here / "forest.skops").stat().st_size


def test_a_scorer_chooses(here, tmp_path):
    args = (here / "forest.skops", here / "rows.csv", "--target", "y", "--out", tmp_path / "s.skops", "--json")
    args = (*args, "--solver", "weakest_link", "--validation", 0.5)
    summary = json.loads(call("prune", *args, "--scoring", "f1_macro", "--max-score-drop", 0.05).stdout)
    score = summary["score"]
    assert score["name"] == "f1_macro"
    assert score["before"] - score["after"] <= 0.05
    changed = json.loads(call("prune", *args, "--max-changed", 0.05, "--force").stdout)
    assert changed["changed"] <= 0.05


def test_a_limit_is_kept_with_confidence(here, tmp_path):
    data = ("--target", "y", "--validation", here / "others.csv", "--solver", "weakest_link")
    args = (here / "forest.skops", here / "rows.csv", *data, "--max-loss-increase", 0.5, "--confidence", 0.9)
    guarantee = json.loads(call("prune", *args, "--out", tmp_path / "s.skops", "--json").stdout)["guarantee"]
    assert guarantee["limits"] == {"max_loss_increase": 0.5}
    assert "With 90 % confidence, the loss" in call("prune", *args, "--out", tmp_path / "t.skops").stdout
    refused = call("prune", *args[:-4], "--confidence", 0.9, "--out", tmp_path / "u.skops", code=1)
    assert "without a limit" in refused.stderr


def test_few_rows_to_choose_by_are_an_error_and_sizes_have_units(here, tmp_path):
    lines = (here / "rows.csv").read_text().splitlines(keepends=True)
    (tmp_path / "few.csv").write_text("".join(lines[:9]))
    args = ("prune", here / "forest.skops", "--target", "y", "--out", tmp_path / "small.skops")
    assert "chosen by 2 row(s)" in call(*args, tmp_path / "few.csv", code=1).stderr
    assert "is not a size" in call(*args, here / "rows.csv", "--max-bytes", "5 apples", code=2).stderr
    assert not (tmp_path / "small.skops").exists()
    (tmp_path / "semicolons.csv").write_text("".join(line.replace(",", ";") for line in lines))
    call(*args, tmp_path / "semicolons.csv", "--max-bytes", "30kB")
    assert (tmp_path / "small.skops").stat().st_size <= 30_000


def test_long_settings_of_a_solver_are_left_to_json(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--max-loss-increase", 0.9, "--force")
    printed = " ".join(call(*args, "-o", here / "s.skops").output.split())
    assert "Pruned by BlockDescent on" in printed
    assert json.loads(call(*args, "-o", here / "s.skops", "--json").stdout)["solver"].startswith(
        "BlockDescent(penalties=("
    )
