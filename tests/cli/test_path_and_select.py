"""`secateur path` and `secateur select`: the saved path between them, and the way back to the model."""

import json

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from tests.cli.runner import FOREST, call, numbers_of

import secateur as sc
from secateur.files.models import load_model, save_model


def test_path_json_equals_the_saved_path(here):
    args = ("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--validation", 0.4)
    facts = json.loads(call(*args, "--out", here / "p.npz", "--json").stdout)
    saved = sc.Path.load(here / "p.npz")
    assert facts["points"] == len(saved)
    assert facts["solver"] == saved.solver
    for name, column in saved.table.items():
        if np.isfinite(column).all():
            assert facts["table"][name] == column.tolist()
    assert saved.info.evaluated_rows == 80
    assert saved.info.made_on_rows == 200  # all of them: the share is for choosing only
    assert "40 %" in saved.info.evaluated_on


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


def test_the_error_of_a_limit_no_point_satisfies_names_the_nearest_point(paths, tmp_path):
    result = call("select", paths / "plain.npz", "--max-cost", 0.5, "-o", tmp_path / "s.skops", code=1)
    assert "The nearest, point" in result.stderr
    assert not list(tmp_path.iterdir())


def test_select_reports_a_missing_model_and_accepts_another_location(here):
    call("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "p.npz")
    (here / "forest.skops").rename(here / "moved.skops")
    args = ("select", here / "p.npz", "--max-nodes", 80, "--out", here / "s.skops")
    result = call(*args, code=1)
    assert "forest.skops, from which" in result.stderr
    assert "does not exist" in result.stderr
    assert "--model" in result.stderr
    call(*args, "--model", here / "moved.skops")


def test_select_refuses_a_changed_model(here):
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
    assert "does not record its model file" in call(*args, code=1).stderr
    call(*args, "--model", here / "forest.skops")


def test_select_takes_the_point_with_the_given_number(paths, tmp_path):
    whole = sc.Path.load(paths / "judged.npz")
    for point in (0, 3, len(whole) - 1):
        args = ("select", paths / "judged.npz", "--point", point, "-o", tmp_path / "s.skops", "--force", "--json")
        summary = json.loads(call(*args).stdout)
        assert summary["point"] == point
        assert summary["loss"]["after"] == whole.table["loss"][point]
        assert sc.as_forest(load_model(tmp_path / "s.skops")).n_nodes == whole.table["n_nodes"][point]


def test_the_seed_draws_the_validation_rows(here):
    args = ("path", here / "forest.skops", here / "rows.csv", "--target", "y", "--solver", "weakest_link")
    args = (*args, "--validation", 0.3, "--out", here / "p.npz", "--force", "--json")
    usual, same, other = (
        json.loads(call(*args, *seed).stdout)["table"]["loss"] for seed in ((), ("--seed", 0), ("--seed", 1))
    )
    assert usual == same != other


def test_a_path_with_scores_is_selected_by_them(here, tmp_path):
    args = (here / "forest.skops", here / "rows.csv", "--target", "y", "--validation", 0.4)
    args = (*args, "--scoring", "balanced_accuracy", "--out", tmp_path / "p.npz")
    shown = call("path", *args).stdout
    assert "balanced_accuracy" in shown
    saved = sc.Path.load(tmp_path / "p.npz")
    assert saved.info.scoring == "balanced_accuracy"
    output = call("select", tmp_path / "p.npz", "--max-score-drop", 0.05, "-o", tmp_path / "s.skops", "--json").stdout
    score = json.loads(output)["score"]
    assert score["name"] == "balanced_accuracy"
    assert score["before"] - score["after"] <= 0.05
    assert json.loads(output)["point"] == saved.select(max_score_drop=0.05).point
    text = call("select", tmp_path / "p.npz", "--max-changed", 0.1, "-o", tmp_path / "c.skops").stdout
    assert "Score (balanced_accuracy):" in text
    report = call("report", tmp_path / "p.npz", "--max-score-drop", 0.05, "-o", tmp_path / "r.html", "--json").stdout
    assert json.loads(report)["facts"]["scoring"] == "balanced_accuracy"
