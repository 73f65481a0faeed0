"""The command line: prices of features."""

import json

import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.runner import FOREST, call

from secateur.costs import FeatureCost
from secateur.files.models import load_model

NAMES = load_breast_cancer(as_frame=True).data.columns[:8]


@pytest.fixture
def priced(here):
    """Return the folder with a list of prices in it."""
    prices = pd.DataFrame({"feature": NAMES, "cost": [1, 5, 1, 1, 8, 2, 2.5, 4]})
    prices.to_csv(here / "prices.csv", index=False)
    return here


def test_inspect_shows_what_the_features_of_rows_cost(priced):
    X = pd.read_csv(priced / "rows.csv")[NAMES]
    model, rows, prices = priced / "forest.skops", priced / "rows.csv", priced / "prices.csv"
    found = json.loads(call("inspect", model, rows, "--costs", prices, "--json").stdout)
    assert found["rows"] == len(X)
    assert found["features_per_row"] == pytest.approx(FeatureCost().mean_price(FOREST, X))
    assert found["cost_per_row"] == pytest.approx(FeatureCost(prices).mean_price(FOREST, X))
    shown = call("inspect", model, rows, "--costs", prices).stdout
    assert f"{found['cost_per_row']:.6g} on average over 200 rows" in shown
    assert "cost per row" not in call("inspect", model, rows).stdout
    assert "Pass a DATA file" in call("inspect", model, "--costs", prices, code=1).stderr


def test_a_budget_for_features_is_kept(priced):
    model, rows, prices = priced / "forest.skops", priced / "rows.csv", priced / "prices.csv"
    args = ("--target", "y", "--costs", prices, "--max-cost", "9", "--validation", "none")
    shown = call("prune", model, rows, *args, "--out", priced / "small.skops").stdout
    assert "No pruning" not in shown  # CostDescent has the lowest loss, and no bounds
    shown = call("prune", model, rows, *args, "--solver", "min_cut", "--out", priced / "small.skops", "--force").stdout
    small = load_model(priced / "small.skops")
    paid = FeatureCost(prices).mean_price(small, pd.read_csv(rows)[NAMES])
    assert paid <= 9
    assert f"{paid:.6g} after" in shown
    assert "No pruning that costs at most 9 has a risk below" in " ".join(shown.split())


def test_the_path_shows_costs_and_the_jump(priced):
    model, rows = priced / "forest.skops", priced / "rows.csv"
    args = ("path", model, rows, "--target", "y", "--costs", priced / "prices.csv", "--solver", "min_cut")
    shown = call(*args, "--out", priced / "p.npz").stdout
    assert "jump" in shown
    assert "--max-cost" in shown
    chosen = json.loads(
        call("select", priced / "p.npz", "--max-cost", "9", "--out", priced / "s.skops", "--json").stdout
    )
    assert chosen["cost"]["after"] <= 9 < chosen["cost"]["before"]
    assert chosen["optimality"]["gap"] >= 0


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("--costs", "prices.csv", "--cost", "leaves"), "Leave out one of them"),
        (("--costs", "none.csv"), "There is no file none.csv"),
        (("--costs", "rows.csv"), "needs `feature` and `cost`"),
    ],
)
def test_prices_that_cannot_be_used_are_refused(priced, monkeypatch, args, reason):
    monkeypatch.chdir(priced)
    failed = call("prune", "forest.skops", "rows.csv", "--target", "y", *args, "--out", "s.skops", code=1)
    assert reason in " ".join(failed.stderr.split())


def test_clones_may_be_trained_on_fewer_features(priced):
    model, rows, prices = priced / "forest.skops", priced / "rows.csv", priced / "prices.csv"
    args = ("--target", "y", "--costs", prices, "--max-cost", "5", "--regrow", "--json", "--validation", "none")
    summary = json.loads(call("prune", model, rows, *args, "--out", priced / "regrown.skops").stdout)
    assert summary["cost"]["after"] <= 5
    assert FeatureCost(prices).mean_price(load_model(priced / "regrown.skops"), pd.read_csv(rows)[NAMES]) <= 5
    refused = call("prune", model, rows, "--target", "y", "--regrow", "--out", priced / "no.skops", code=1).stderr
    assert "but the cost is nodes" in " ".join(refused.split())
