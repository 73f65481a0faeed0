"""Test files of older versions: .skops models of scikit-learn, forests and paths predict as recorded."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.models.make_secateur import some_rows, sums

import secateur as sc
from secateur.files.models import load_model

MODELS = Path(__file__).parents[1] / "models"
SKLEARN = {file.stem: json.loads(file.read_text()) for file in MODELS.glob("sklearn-*.json")}
OURS = {file.stem: json.loads(file.read_text()) for file in MODELS.glob("secateur-*.json")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize(("version", "kind"), [(version, kind) for version in SKLEARN for kind in SKLEARN[version]])
def test_scikit_learn_models_of_all_versions_load_without_trust_and_predict_the_same(version, kind):
    expected = SKLEARN[version][kind]
    model = load_model(MODELS / f"{version}-{kind}.skops")
    rows = np.array(expected["rows"], dtype=float)
    np.testing.assert_allclose(getattr(model, expected["method"])(rows), expected["answer"], rtol=1e-14)
    path = sc.prune_path(model, rows, model.predict(rows), solver="weakest_link")
    np.testing.assert_array_equal(path[0].predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("version", "kind"), [(version, kind) for version in OURS for kind in OURS[version]["forests"]]
)
def test_forests_of_old_versions_load_with_the_same_scores(version, kind):
    forest = load_model(MODELS / f"{version}-{kind}.secateur")
    np.testing.assert_array_equal(sums(forest, some_rows(forest.n_features)), OURS[version]["forests"][kind])
    assert forest.monotone is None  # files of version 1 do not store constraints


@pytest.mark.parametrize(
    ("version", "solver"), [(version, solver) for version in OURS for solver in OURS[version]["paths"]]
)
def test_paths_of_old_versions_load_with_the_same_scores(version, solver):
    path, expected = sc.Path.load(MODELS / f"{version}-{solver}.npz"), OURS[version]["paths"][solver]
    assert len(path) == len(expected)
    for point, answer in enumerate(expected):
        np.testing.assert_array_equal(path[point].raw(some_rows(path.forest.n_features)), answer)


def test_the_oldest_supported_scikit_learn_has_saved_models():
    lines = (MODELS.parent / "oldest.txt").read_text().splitlines()
    (oldest,) = (line.partition("==")[2] for line in lines if line.startswith("scikit-learn=="))
    assert any(version.startswith(f"sklearn-{oldest}") for version in SKLEARN)
    assert f"secateur-{sc.__version__}" in OURS
