"""Small valid files of each format, from which fuzzing starts."""

import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import joblib
from sklearn.tree import DecisionTreeClassifier

from secateur.files.models import save_model

MODELS = Path(__file__).parents[1] / "models"
SPARK = MODELS / "spark-4.3.0-boosted_regression"

_PATTERNS = {
    "catboost_json": "catboost-*-*.json",
    "cbm": "catboost-*.cbm",
    "lightgbm": "lightgbm-*.txt",
    "path": "*.npz",
    "secateur": "*.secateur",
    "skops": "sklearn-1.9.1-*.skops",
    "spark_metadata": "spark-4.3.0-*/metadata/part-*",
    "spark_nodes": f"{SPARK.name}/data/*.parquet",
    "xgboost_json": "xgboost-*-*.json",
    "xgboost_ubj": "xgboost-*.ubj",
}
_TREE = DecisionTreeClassifier(max_depth=2, random_state=0).fit([[0.0, 1], [1, 0], [2, 2], [3, 1]], [0, 1, 1, 0])


def corpus(name: str) -> list[bytes]:
    """Return the contents of small valid files of a format."""
    if name in _PATTERNS:
        return [file.read_bytes() for file in sorted(MODELS.glob(_PATTERNS[name]))]
    return list(_made(name))


def _made(name: str) -> Iterator[bytes]:
    """Yield files of formats whose content depends on installed versions."""
    if name == "pickle":
        yield from (pickle.dumps(_TREE, protocol) for protocol in (0, 2, 5))
    elif name == "joblib":
        for compress in (0, 3):
            stream = io.BytesIO()
            joblib.dump(_TREE, stream, compress=compress)
            yield stream.getvalue()
    elif name == "onnx":
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            yield save_model(_TREE, Path(folder, "tree.onnx")).read_bytes()
