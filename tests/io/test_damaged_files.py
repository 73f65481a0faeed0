"""Damaged model files give a clear error or a model the library agrees on; a table of the benchmarks tries far more."""

import numpy as np
import pytest
from benchmarks.mutations import GOOD
from benchmarks.small_models import save_small_models
from benchmarks.tables.damaged_files import run_batch
from catboost import CatBoostClassifier

KINDS = ("xgboost_json", "xgboost_ubj", "lightgbm_txt", "catboost_json", "catboost_cbm", "spark_folder", "secateur")
MORE = {"classes": {}, "threshold": {"grow_policy": "Lossguide"}}
"""What the table does not try: CatBoost models that name classes, three of them, or two and a threshold."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("damaged")
    assert tuple(save_small_models(made)) == KINDS
    X = np.random.default_rng(0).normal(size=(200, 4))
    for kind, options in MORE.items():
        y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5] if kind == "classes" else [0])
        options = {**options, "iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False}
        model = CatBoostClassifier(**options, thread_count=1).fit(X, np.array(["ash", "birch", "cedar"])[y])
        if kind == "threshold":
            model.set_probability_threshold(0.3)
        model.save_model(str(made / f"{kind}.cbm"))
    return made


@pytest.mark.parametrize("kind", [*KINDS, *MORE])
def test_damaged_files_are_refused_or_read_as_the_library_reads_them(folder, kind):
    found = run_batch(folder, kind, 20_000, 20_300)
    assert [number for number, _, _ in found] == list(range(20_000, 20_300))
    assert not [outcome for outcome in found if outcome[1] not in GOOD]
    assert sum(how == "refused" for _, how, _ in found) > 30


def test_a_process_that_dies_is_noticed(folder, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.damaged_files._SECONDS", 1e-3)
    assert {how for _, how, _ in run_batch(folder, "secateur", 0, 2)} == {"hang"}
