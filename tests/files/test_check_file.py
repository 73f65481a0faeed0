"""`check_file` says what a file is and whether it is valid; no library sees the file."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import secateur as sc
from secateur.files.archive import save_forest
from secateur.files.check import CHECKS, FileReport
from secateur.files.formats import FORMATS

MODELS = Path(__file__).parents[1] / "models"
NATIVE = sorted(
    file
    for file in MODELS.iterdir()
    if (file.is_dir() and file.name != "__pycache__")
    or (file.suffix in (".txt", ".ubj", ".cbm", ".secateur", ".npz", ".skops", ".json"))
    if file.suffix != ".json" or file.with_suffix("").name.count("-") == 2
)


@pytest.fixture(autouse=True)
def _no_old_sklearn(recwarn):
    """Models of older versions of scikit-learn warn."""


@pytest.mark.parametrize("file", NATIVE, ids=lambda file: file.name)
def test_valid_files_pass_with_the_sizes_of_the_model(file):
    if file.suffix == ".skops":
        pytest.importorskip("skops")
    report = sc.check_file(file)
    assert report.ok, report
    forest = sc.Path.load(file).forest if file.suffix == ".npz" else sc.as_forest(file)
    sizes = (forest.n_trees, forest.n_nodes, forest.n_leaves, forest.n_outputs)
    assert (report.trees, report.nodes, report.leaves, report.outputs) == sizes
    assert report.warnings == () or "scikit-learn" in report.warnings[0]


@pytest.mark.parametrize(
    ("name", "library", "version", "objective"),
    [
        ("lightgbm-4.7.0-multiclass.txt", "lightgbm", None, "multiclass num_class:3"),
        ("xgboost-1.7.6-regression.json", "xgboost", "1.7.6", "reg:squarederror"),
        ("xgboost-3.2.0-dart.ubj", "xgboost", "3.2.0", "count:poisson"),
        ("catboost-1.2.10-classes.cbm", "catboost", "1.2.10", "MultiClass"),
        ("catboost-1.2.10-depthwise.json", "catboost", "1.2.10", "Logloss"),
        ("spark-4.3.0-tree_classes", "pyspark", "4.3.0", None),
        ("sklearn-1.6.0-forest.skops", "scikit-learn", "1.6.0", None),
    ],
)
def test_library_version_and_objective_are_those_the_file_records(name, library, version, objective):
    report = sc.check_file(MODELS / name)
    assert (report.library, report.version, report.objective) == (library, version, objective)


@pytest.mark.parametrize(
    "name", ["lightgbm-4.7.0-binary.txt", "xgboost-3.2.0-classes.json", "catboost-1.2-classes.cbm"]
)
def test_no_library_loads_the_file(name, monkeypatch):
    import catboost
    import lightgbm
    import xgboost

    for owner in (catboost.CatBoost, lightgbm.Booster, xgboost.Booster):
        monkeypatch.setattr(owner, "__init__", lambda *_, **__: pytest.fail("the library was used"))
    assert sc.check_file(MODELS / name).runs == "nothing"


def test_every_format_of_a_model_has_a_check():
    assert set(FORMATS) <= set(CHECKS)


def test_odd_numbers_are_warnings(tmp_path):
    forest = sc.Forest(
        tree_start=np.array([0, 3]),
        right=np.array([2, -1, -1], np.int32),
        feature=np.array([0, -1, -1], np.int32),
        threshold=np.array([1e300, 0.0, 0.0]),
        default_left=np.zeros(3, bool),
        value=np.array([[0.0], [1e39], [2.0]]),
        weight=np.array([2.0, 1.0, 1.0]),
        tree_weight=np.ones(1),
        tree_output=np.full(1, -1, np.int32),
        base=np.zeros(1),
        link="identity",
        n_features=1,
    )
    with (tmp_path / "odd.secateur").open("wb") as stream:
        save_forest(forest, stream)
    report = sc.check_file(tmp_path / "odd.secateur")
    assert report.ok
    assert report.warnings == (
        "1 leaf values are out of the range of float32.",
        "1 thresholds are out of the range of float32.",
    )


def test_unknown_suffixes_and_other_content_are_reports_not_errors(tmp_path):
    (tmp_path / "model.h5").write_bytes(b"x")
    (tmp_path / "model.json").write_text("{}")
    (tmp_path / "folder").mkdir()
    reports = [sc.check_file(tmp_path / name) for name in ("model.h5", "model.json", "folder")]
    assert [report.status for report in reports] == ["unsupported", "damaged", "unsupported"]
    assert all(report.problem.endswith(".") for report in reports)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="Check the name"):
        sc.check_file(tmp_path / "model.txt")


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("lightgbm-4.7.0-binary.txt", "lightgbm"),
        ("xgboost-3.2.0-classes.json", "xgboost"),
        ("catboost-1.2-classes.cbm", "catboost"),
        ("catboost-1.2.10-leafwise.json", "catboost"),
    ],
)
def test_a_library_that_is_not_installed_is_named(name, package, monkeypatch):
    for module in [m for m in sys.modules if m == package or m.startswith(f"secateur.libraries.{package}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    report = sc.check_file(MODELS / name)
    assert report.status == "unsupported"
    assert f"pip install 'secateur[{package}]'" in report.problem


def test_onnx_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    (tmp_path / "a.onnx").write_bytes(b"x")
    report = sc.check_file(tmp_path / "a.onnx")
    assert (report.status, report.runs) == ("unsupported", "nothing")
    assert "pip install 'secateur[onnx]'" in report.problem


def test_the_summary_is_plain_and_the_text_has_the_problem():
    report = FileReport("a\x1b.txt", "damaged", problem="It is damaged.", names=("a.b",), warnings=("Odd.",))
    assert json.loads(json.dumps(report.summary()))["names"] == ["a.b"]
    assert not report.ok
    assert str(report).splitlines() == [
        "a\\x1b.txt: damaged",
        "format: unknown",
        "runs when loaded: nothing",
        "names: a.b",
        "problem: It is damaged.",
        "warning: Odd.",
    ]


def test_unexpected_errors_of_a_reader_are_explained(monkeypatch):
    monkeypatch.setattr("secateur.files.check.Check.run", lambda *_: {}["left"])
    report = sc.check_file(MODELS / "lightgbm-4.7.0-binary.txt")
    assert report.status == "damaged"
    assert "cannot be read as LightGBM text (KeyError: 'left')" in report.problem
