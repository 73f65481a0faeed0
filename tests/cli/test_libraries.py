"""The commands on files of other libraries: read, pruned and written by suffix."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from tests.cli.runner import call

import secateur as sc
from secateur.cli._tables_and_json import print_summary
from secateur.files.models import load_model, save_model
from secateur.libraries import adapt


def fitted(library, X, y):
    """Return a model trained with or without column names."""
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        return xgboost.train({"max_depth": 4, "objective": "binary:logistic"}, xgboost.DMatrix(X, y), 6)
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        return lightgbm.train({"verbose": -1, "objective": "binary", "seed": 0}, lightgbm.Dataset(X, y), 6)
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostClassifier(iterations=6, depth=4, verbose=False, allow_writing_files=False)
    return model.fit(X, y)


FILES = [("xgboost", ".json"), ("xgboost", ".ubj"), ("lightgbm", ".txt"), ("catboost", ".cbm"), ("catboost", ".json")]


@pytest.fixture(params=FILES, ids=lambda p: "".join(p))
def folder(request, tmp_path):
    """Return a folder with rows and a model file, and the names of these."""
    library, suffix = request.param
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=["size", "age", "height", "width"])
    y = (X["size"] + X["age"] ** 2 + rng.normal(size=300) > 1).astype(int)
    save_model(fitted(library, X[:150], y[:150]), tmp_path / f"model{suffix}")
    X[150:].assign(y=y[150:])[["y", "width", "height", "age", "size"]].to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path, library, suffix


def test_inspect_says_what_the_file_holds(folder):
    here, library, suffix = folder
    facts = json.loads(call("inspect", here / f"model{suffix}", "--json").stdout)
    model = load_model(here / f"model{suffix}")
    assert facts["library"] == library
    assert facts["type"] == type(model).__name__
    assert facts["task"] == "classification"
    assert facts["nodes"] == adapt(model).forest.n_nodes
    assert facts["bytes"] > 500
    assert library in call("inspect", here / f"model{suffix}").stdout


def test_prune_writes_the_same_kind_of_file_and_others(folder):
    here, _, suffix = folder
    args = ("prune", here / f"model{suffix}", here / "rows.csv", "--target", "y", "--max-nodes", 60)
    call(*args, "--out", here / f"small{suffix}", "--solver", "weakest_link")
    small = load_model(here / f"small{suffix}")
    assert type(small) is type(load_model(here / f"model{suffix}"))
    assert adapt(small).forest.n_nodes <= 60
    call(*args, "--out", here / "small.secateur", "--solver", "weakest_link")
    assert isinstance(load_model(here / "small.secateur"), sc.Forest)


def test_a_path_of_a_booster_file_finds_its_model_again(folder):
    here, _, suffix = folder
    args = ("--target", "y", "--out", here / "p.npz", "--solver", "weakest_link")
    call("path", here / f"model{suffix}", here / "rows.csv", *args)
    call("select", here / "p.npz", "--max-nodes", 60, "--out", here / f"small{suffix}")
    assert adapt(load_model(here / f"small{suffix}")).forest.n_nodes <= 60


def test_a_suffix_of_another_library_is_refused_before_the_rows_are_read(folder):
    here, library, suffix = folder
    other = ".txt" if library != "lightgbm" else ".cbm"
    args = ("prune", here / f"model{suffix}", here / "no rows.csv", "--target", "y", "--out", here / f"small{other}")
    assert "for models of" in call(*args, code=1).stderr


def test_rows_without_the_model_s_names_are_taken_in_order(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    save_model(fitted("lightgbm", X[:150], y[:150]), tmp_path / "m.txt")
    pd.DataFrame(X[150:], columns=["a", "b", "c"]).assign(y=y[150:]).to_csv(tmp_path / "rows.csv", index=False)
    args = ("prune", tmp_path / "m.txt", tmp_path / "rows.csv", "--target", "y", "--max-nodes", 30)
    call(*args, "--out", tmp_path / "s.txt", "--solver", "weakest_link")
    assert adapt(load_model(tmp_path / "s.txt")).forest.n_nodes <= 30


def test_generated_names_inside_a_search_are_not_looked_for(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchCV(lightgbm.LGBMClassifier(n_estimators=4, verbose=-1), {"max_depth": [2, 3]}, cv=2).fit(X, y)
    save_model(search, tmp_path / "m.joblib")
    pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(tmp_path / "rows.csv", index=False)
    facts = json.loads(call("inspect", tmp_path / "m.joblib", tmp_path / "rows.csv", "--trust", "--json").stdout)
    assert facts["inside"] == ["LGBMClassifier"]
    assert 0 < facts["features_per_row"] <= 3


@pytest.mark.parametrize(("library", "suffix"), [("xgboost", ".ubj"), ("lightgbm", ".txt")])
def test_text_in_a_column_is_named_with_its_row(library, suffix, tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)), columns=["a", "b"])
    save_model(fitted(library, X, (X.a > 0).astype(int)), tmp_path / f"m{suffix}")
    X.astype(object).assign(b=["1.5", "much", *["2"] * 98]).to_csv(tmp_path / "rows.csv", index=False)
    message = call("inspect", tmp_path / f"m{suffix}", tmp_path / "rows.csv", code=1).stderr
    assert "contains text, 'much' in row 2. A Booster needs numbers." in " ".join(message.split())


def test_numbers_stored_as_text_are_numbers(here):
    rows = pd.read_csv(here / "rows.csv")
    changed = rows.assign(**{rows.columns[0]: rows.iloc[:, 0].astype(str)})
    changed.to_parquet(here / "text.parquet")
    rows.to_parquet(here / "rows.parquet")
    found = [
        json.loads(call("inspect", here / "forest.skops", here / file, "--target", "y", "--json").stdout)
        for file in ("rows.parquet", "text.parquet")
    ]
    assert found[0] == found[1]


def test_a_forest_in_a_file_is_pruned_to_one_and_to_onnx(here):
    pytest.importorskip("onnx")
    forest = sc.as_forest(load_model(here / "forest.skops"))
    save_model(forest, here / "forest.secateur")
    rows = pd.read_csv(here / "rows.csv")
    rows.assign(y=(rows.y == "malign").astype(int)).to_csv(here / "codes.csv", index=False)
    args = ("prune", here / "forest.secateur", here / "codes.csv", "--target", "y", "--max-nodes", 100)
    call(*args, "--out", here / "small.secateur")
    assert load_model(here / "small.secateur").n_nodes <= 100
    call(*args, "--out", here / "small.onnx")
    assert (here / "small.onnx").stat().st_size > 500


def test_a_folder_of_spark_s_is_pruned_to_a_folder(tmp_path):
    pytest.importorskip("pyarrow")
    folder = next((Path(__file__).parents[1] / "models").glob("spark-4*-forest_regression"))
    facts = json.loads(call("inspect", folder, "--json").stdout)
    assert (facts["library"], facts["type"]) == ("pyspark", "RandomForestRegressionModel")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(80, facts["features"]))).rename(columns=str).assign(y=rng.normal(size=80))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    args = ("--target", "y", "--solver", "weakest_link", "--out")
    call("prune", folder, tmp_path / "rows.csv", "--max-nodes", 15, *args, tmp_path / "small-4.3")
    assert adapt(load_model(tmp_path / "small-4.3")).forest.n_nodes <= 15
    call("path", folder, tmp_path / "rows.csv", *args, tmp_path / "p.npz")
    call("select", tmp_path / "p.npz", "--max-nodes", 15, "--out", tmp_path / "selected")
    assert adapt(load_model(tmp_path / "selected")).forest.n_nodes <= 15


def test_the_summary_states_constraints_and_a_range_that_is_given_up(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    booster = HistGradientBoostingRegressor(max_iter=10, monotonic_cst=[1, 0, 0]).fit(X, y)
    print_summary(sc.prune_path(booster, X, y)[1].summary())
    assert "Monotonic constraints hold." in capsys.readouterr().out
    forest = RandomForestClassifier(5, random_state=0).fit(X, y > 0)
    for values, is_stated in (("free", True), ("refit", False)):
        path = sc.prune_path(forest, X, y > 0, solver=sc.solvers.BlockDescent(values=values))
        print_summary(path[len(path) // 2].summary())
        assert ("numbers below 0 or above 1" in capsys.readouterr().out) is is_stated
