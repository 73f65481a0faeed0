"""The command line: what rows cost when features are bought on demand."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.runner import FOREST, call

import secateur as sc
from secateur.costs import FeatureCost
from secateur.files.models import save_model
from secateur.serving import LazyPredictor

NAMES = list(load_breast_cancer(as_frame=True).data.columns[:8])
COSTS = [1, 5, 1, 1, 8, 2, 2.5, 4]


@pytest.fixture
def priced(here):
    """Return the folder with a list of prices and a smaller forest in it."""
    pd.DataFrame({"feature": NAMES, "cost": COSTS}).to_csv(here / "prices.csv", index=False)
    rows = pd.read_csv(here / "rows.csv")
    small = sc.prune(FOREST, rows[NAMES], rows.y, max_nodes=20, validation=None)
    save_model(small, here / "small.skops")
    return here


def test_prices_with_and_without_stopping_are_those_of_the_predictor(priced):
    args = (priced / "forest.skops", priced / "rows.csv", "--costs", priced / "prices.csv", "--target", "y")
    found = json.loads(call("serve-cost", *args, "--json").stdout)
    X, cost = pd.read_csv(priced / "rows.csv")[NAMES], FeatureCost(priced / "prices.csv")
    prices = found["models"]["model"]["prices"]
    assert found["rows"] == len(X)
    assert prices["all features"]["mean"] == prices["all features"]["max"] == sum(COSTS)
    assert prices["as the paths need"]["mean"] == pytest.approx(cost.mean_price(FOREST, X))
    settled = LazyPredictor(FOREST, cost).predict(X, same="label").price
    assert prices["same label"]["mean"] == pytest.approx(settled.mean())
    assert prices["same label"]["90%"] == pytest.approx(np.quantile(settled, 0.9))
    assert prices["same label"]["mean"] < prices["as the paths need"]["mean"] <= sum(COSTS)


def test_a_pruned_model_is_shown_beside_the_whole_one(priced):
    args = ("serve-cost", priced / "forest.skops", priced / "rows.csv", "--costs", priced / "prices.csv")
    found = json.loads(call(*args, "--pruned", priced / "small.skops", "--json").stdout)
    before, after = (found["models"][name]["prices"]["as the paths need"]["mean"] for name in ("model", "pruned"))
    assert after < before
    assert 0 <= found["changed"] < 0.5
    shown = call(*args, "--pruned", priced / "small.skops").stdout
    assert "same label" in shown
    assert f"{found['changed']:.1%} of the predictions differ" in shown
    assert "small.skops" in shown


def test_without_prices_features_are_counted(priced):
    found = json.loads(call("serve-cost", priced / "forest.skops", priced / "rows.csv", "--json").stdout)
    assert found["models"]["model"]["prices"]["all features"]["max"] == 8
    assert "There is no file" in call("serve-cost", priced / "forest.skops", priced / "none.csv", code=1).stderr
