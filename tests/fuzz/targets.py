"""One function for each format: read bytes as a file of it, and fail for anything but a clear refusal.

The functions run the checks of `secateur.check_file` without the net below them that turns other errors into reports,
so that a KeyError in a reader is found. No library loads the bytes, except scikit-learn after all checks of .skops.
"""

import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.corpus import SPARK

from secateur.errors import SecateurError
from secateur.files.check import CHECKS, Check, FileReport

_SPARK_CHECK = Check("tree_files:check_spark", "Spark ML folder")


def _refused_or_reported(check: Check, file: Path) -> None:
    """Run a check; fail unless it ends with a report, or with an error that says what to do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            report = check.run(file, FileReport(str(file)))
        except SecateurError as error:
            message = str(error)
        else:
            message = report.problem or "."
            assert report.ok == (report.problem is None)
    assert message.endswith((".", "'", "?")), message


def _fuzz_file(suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"fuzzed{suffix}")
        file.write_bytes(data)
        _refused_or_reported(CHECKS[suffix], file)


def _fuzz_spark(pattern: str, data: bytes) -> None:
    """Read a folder of Spark with one of its files replaced."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model")
        shutil.copytree(SPARK, target)
        next(target.glob(pattern)).write_bytes(data)
        _refused_or_reported(_SPARK_CHECK, target)


def fuzz_lightgbm(data: bytes) -> None:
    _fuzz_file(".txt", data)


def fuzz_xgboost_json(data: bytes) -> None:
    _fuzz_file(".json", data)


def fuzz_xgboost_ubj(data: bytes) -> None:
    _fuzz_file(".ubj", data)


def fuzz_catboost_json(data: bytes) -> None:
    _fuzz_file(".json", data)


def fuzz_cbm(data: bytes) -> None:
    _fuzz_file(".cbm", data)


def fuzz_skops(data: bytes) -> None:
    _fuzz_file(".skops", data)


def fuzz_secateur(data: bytes) -> None:
    _fuzz_file(".secateur", data)


def fuzz_path(data: bytes) -> None:
    _fuzz_file(".npz", data)


def fuzz_pickle(data: bytes) -> None:
    _fuzz_file(".pkl", data)


def fuzz_joblib(data: bytes) -> None:
    _fuzz_file(".joblib", data)


def fuzz_onnx(data: bytes) -> None:
    _fuzz_file(".onnx", data)


def fuzz_spark_nodes(data: bytes) -> None:
    _fuzz_spark("data/*.parquet", data)


def fuzz_spark_metadata(data: bytes) -> None:
    _fuzz_spark("metadata/part-*", data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): function for name, function in sorted(globals().items()) if name.startswith("fuzz_")
}
"""The functions by the name of their format."""
