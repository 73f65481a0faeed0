"""Models that libraries read and write only as files need a temporary folder; without one the error names it."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.cases import case

from secateur.files.archive import same_forest
from secateur.files.models import load_model, save_model
from secateur.libraries import adapt


@pytest.fixture
def no_temporary_folder(monkeypatch, tmp_path):
    """Return a function that makes the temporary folder unavailable."""
    return lambda: monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))


def test_lightgbm_models_are_read_without_a_temporary_folder(no_temporary_folder):
    pytest.importorskip("lightgbm")
    model = case("lightgbm booster, binary").model
    forest = adapt(model).forest
    no_temporary_folder()
    assert same_forest(adapt(model).forest, forest)


def test_catboost_json_names_the_folder_that_cannot_be_written(no_temporary_folder, tmp_path, monkeypatch):
    catboost = pytest.importorskip("catboost")
    X = np.arange(40.0).reshape(20, 2)
    model = catboost.CatBoostRegressor(iterations=2, verbose=False, allow_writing_files=False).fit(X, X[:, 0])
    file = save_model(model, tmp_path / "m.json")
    no_temporary_folder()
    message = r"Cannot write a temporary file in .*gone .*Free disk space there, or set TMPDIR"
    with pytest.raises(OSError, match=message):
        save_model(model, tmp_path / "n.json")
    with pytest.raises(OSError, match=message):
        load_model(file)
    monkeypatch.undo()

    def full(*_, **__):
        raise catboost.CatBoostError("(Error 28: No space left on device) file.cpp:1080")

    monkeypatch.setattr(model, "save_model", full)
    with pytest.raises(OSError, match=r"Error 28: No space left.*set TMPDIR"):
        save_model(model, tmp_path / "n.json")
    monkeypatch.setattr(model, "save_model", lambda file, **_: Path(file).write_text('{"oblivious_trees": ['))
    with pytest.raises(OSError, match=r"CatBoost wrote only 21 bytes of it.*set TMPDIR"):
        save_model(model, tmp_path / "n.json")
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
