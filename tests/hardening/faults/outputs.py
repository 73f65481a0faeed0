"""Define every kind of file secateur writes: how to write an old and a new one, and a digest of one read back."""

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import secateur as sc
from secateur.files.archive import forest_to_arrays
from secateur.files.models import load_model, save_model
from secateur.reporting import describe, write_facts

LIBRARIES = ("scikit-learn", "XGBoost", "LightGBM", "CatBoost", "Spark")
_SUFFIXES = [[".skops", ".joblib", ".pkl", ".onnx", ".secateur"], [".json", ".ubj"], [".txt"], [".cbm", ".json"], [""]]
MODELS = Path(__file__).parents[2] / "models"


@dataclass(frozen=True)
class Output:
    """One kind of file.

    Attributes
    ----------
    file : str
        Its name.
    old, new : callable
        `old(target)` overwrites the file.
    read : callable
        `read(target)` returns a digest of the content.
    """

    file: str
    old: Callable[[Path], Any]
    new: Callable[[Path], Any]
    read: Callable[[Path], str]


@cache
def outputs() -> dict[str, Output]:
    """Return every kind of output by name; models are a trained one and a pruning of it."""
    found = {}
    for library, suffixes in zip(LIBRARIES, _SUFFIXES, strict=True):
        for suffix in suffixes:
            found[f"{library} {suffix or 'folder'}"] = _of_models(library, suffix)
    return {**found, "path .npz": _of_paths(), "report .html": _of_reports()}


@cache
def trained(library: str) -> tuple[Any, Any, Any]:
    """Return a model of some size, and rows it has not seen."""
    if library == "Spark":
        from tests.models.make_spark import data

        X, targets = data()
        return load_model(MODELS / "spark-4.3.0-forest_classes"), X, targets["three"]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=1500) > 0).astype(int)
    return _TRAINERS[library](X[:1000], y[:1000]), X[1000:], y[1000:]


@cache
def small_forest() -> tuple[Any, Any, Any]:
    """Return a forest that every solver prunes quickly, and rows."""
    from sklearn.ensemble import RandomForestClassifier

    _, X, y = trained("scikit-learn")
    return RandomForestClassifier(6, max_depth=4, random_state=0).fit(X[::2], y[::2]), X, y


@cache
def path_of(library: str) -> sc.Path:
    """Return the path of a model, evaluated."""
    model, X, y = trained(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sc.prune_path(model, X[::2], y[::2], solver="weakest_link").evaluate(X[1::2], y[1::2])


def digest(*parts: Any) -> str:
    """Return a digest of arrays, texts and bytes."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part if isinstance(part, bytes) else repr(part).encode() if np.isscalar(part) else _bytes(part))
    return hashed.hexdigest()


def digest_of_model(model: Any) -> str:
    """Return a digest of all numbers in the trees of a model."""
    _, arrays = forest_to_arrays(sc.as_forest(model))
    return digest(*(part for name in sorted(arrays) for part in (name, arrays[name])))


def digest_of_path(path: sc.Path) -> str:
    """Return a digest of the points of a path and of its unpruned trees."""
    kept = [path.masks.keep(point) for point in range(len(path))]
    values = [] if path.values is None else path.values
    columns = [part for name in sorted(path.table) for part in (name, path.table[name])]
    return digest(digest_of_model(path.forest), *columns, *kept, *values)


def _bytes(array: Any) -> bytes:
    array = np.asarray(array)
    return f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()


def _of_models(library: str, suffix: str) -> Output:
    path = path_of(library)
    small = path[int(np.searchsorted(-path.table["n_nodes"], -path.forest.n_nodes / 3))]
    old, new = (partial(_save, model) for model in (trained(library)[0], small.to_model()))
    read = _digest_of_bytes if suffix == ".onnx" else _digest_of_file
    return Output(f"model{suffix}", old, new, read)


def _of_paths() -> Output:
    path = path_of("scikit-learn")
    short = path.thin(20)
    old, new = (partial(_save_path, one) for one in (path, short))
    return Output("path.npz", old, new, lambda file: digest_of_path(sc.Path.load(file)))


def _of_reports() -> Output:
    path = path_of("scikit-learn").thin(30)
    old, new = (partial(_write_page, describe(path, point=point)) for point in (0, len(path) - 1))
    return Output("report.html", old, new, _digest_of_bytes)


def _save(model: Any, target: Path) -> None:
    save_model(model, target, force=True)


def _save_path(path: sc.Path, target: Path) -> None:
    path.save(target, force=True)


def _write_page(facts: Any, target: Path) -> None:
    write_facts(facts, target, force=True)


def _digest_of_file(file: Path) -> str:
    return digest_of_model(load_model(file, trust=True))


def _digest_of_bytes(file: Path) -> str:
    return digest(file.read_bytes())


def _forest(X: Any, y: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(20, random_state=0).fit(X, y)


def _xgboost(X: Any, y: Any) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=30, max_depth=6).fit(X, y)


def _lightgbm(X: Any, y: Any) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=30, verbose=-1).fit(X, y)


def _catboost(X: Any, y: Any) -> Any:
    import catboost

    options = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return catboost.CatBoostClassifier(iterations=30, depth=6, **options).fit(X, y)


_TRAINERS = {"scikit-learn": _forest, "XGBoost": _xgboost, "LightGBM": _lightgbm, "CatBoost": _catboost}
