"""The command benchmark: the dict of the API as JSON and as a table, and its errors."""

import json

import pandas as pd
import pytest
from tests.cli.runner import FOREST, call

import secateur as sc
from secateur.files.models import save_model

QUICK = ("--seconds", 0.02)


@pytest.fixture
def two(here):
    """Return the folder with a smaller forest in it."""
    rows = pd.read_csv(here / "rows.csv")
    save_model(sc.prune(FOREST, rows.iloc[:, :8], rows.y, max_nodes=20, validation=None), here / "small.skops")
    return here


def shape_of(facts):
    """Return a dict without its times: the keys, names and numbers of rows."""
    if isinstance(facts, dict):
        return {
            name: shape_of(entry) for name, entry in facts.items() if name not in ("repeats", "within_noise", "noisy")
        }
    if isinstance(facts, list):
        return [shape_of(entry) for entry in facts]
    return float if isinstance(facts, float) else facts


def test_json_is_the_summary_of_the_api(two):
    model, small, rows = two / "forest.skops", two / "small.skops", two / "rows.csv"
    found = json.loads(call("benchmark", model, rows, "--against", small, "--target", "y", *QUICK, "--json").stdout)
    table = pd.read_csv(rows)
    api = sc.benchmark({str(model): model, str(small): small}, table.drop(columns="y"), seconds=0.02)
    assert shape_of(found) == shape_of(api.summary())
    assert [m["batch"]["rows"] for m in found["models"]] == [len(table)] * 2


def test_the_table_shows_every_model_for_one_row_and_for_a_batch(two, monkeypatch):
    monkeypatch.chdir(two)
    args = ("forest.skops", "rows.csv", "--against", "small.skops", "--against", "forest.skops", "--batch-size", 50)
    shown = call("benchmark", *args, *QUICK, "--method", "predict_proba").stdout
    assert shown.startswith("predict_proba, microseconds per row")
    sections = shown.split("one row per call")[1].split("50 rows per call")
    for section in sections:
        names = [
            line.split("  ")[1].strip() for line in section.splitlines() if line.startswith("   ") and ".skops" in line
        ]
        assert names == ["forest.skops", "small.skops", "forest.skops (3)"]
    assert "Ratio: median time divided by that of forest.skops" in shown
    assert "Noise: " in shown
    assert "Predicted by sklearn." in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("forest.skops", "none.csv"), "There is no file none.csv"),
        (("forest.pkl", "rows.csv"), "--trust"),
        (("forest.skops", "rows.csv", "--method", "fit"), "method='fit' is unknown"),
        (("forest.skops", "rows.csv", "--seconds", "-1"), "seconds is -1.0"),
        (("forest.skops", "rows.csv", "--against", "other.secateur"), "trained on 2 features"),
        (("forest.skops", "text.csv"), "contains text"),
        (("forest.skops", "empty.csv"), "has no rows"),
    ],
)
def test_errors_name_what_was_found(two, monkeypatch, args, message):
    monkeypatch.chdir(two)
    rows = pd.read_csv("rows.csv")
    other = sc.as_forest(type(FOREST)(2, random_state=0).fit(rows.iloc[:, :2].to_numpy(), rows.y))
    save_model(other, "other.secateur")
    rows.astype(object).assign(**{rows.columns[0]: "much"}).to_csv("text.csv", index=False)
    rows[:0].to_csv("empty.csv", index=False)
    assert message in " ".join(call("benchmark", *args, code=1).stderr.split())
