"""Damaged model files give a clear error or a model the library agrees on; a table of the benchmarks tries far more."""

import pytest
from benchmarks.mutations import GOOD
from benchmarks.small_models import save_small_models
from benchmarks.tables.damaged_files import run_batch

KINDS = ("xgboost_json", "xgboost_ubj", "lightgbm_txt", "catboost_json", "catboost_cbm", "spark_folder", "secateur")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("damaged")
    assert tuple(save_small_models(made)) == KINDS
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_or_read_as_the_library_reads_them(folder, kind):
    found = run_batch(folder, kind, 20_000, 20_300)
    assert [number for number, _, _ in found] == list(range(20_000, 20_300))
    assert not [outcome for outcome in found if outcome[1] not in GOOD]
    assert sum(how == "refused" for _, how, _ in found) > 30


def test_a_process_that_dies_is_noticed(folder, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.damaged_files._SECONDS", 1e-3)
    assert {how for _, how, _ in run_batch(folder, "secateur", 0, 2)} == {"hang"}
