"""Compare a model read from a damaged file with the library itself or with a plain walk through the nodes."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from tests.hardening.mutating.kind import ANOTHER, SAME, UNUSABLE
from tests.hardening.mutating.plain_reading import archive, forest_sums, spark_sums

from secateur.files.models import load_model, save_model
from secateur.forest import Forest
from secateur.forest.subforest import Decision
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.path import Pruned

_MOST_FEATURES = 10_000


def read(file: Path) -> Adapter:
    """Return the adapter of a model file, with its forest read and validated."""
    adapter = adapt(load_model(file))
    adapter.forest  # noqa: B018 - it is read now
    return adapter


def judge(adapter: Adapter, file: Path, sound: Adapter) -> str:
    """Return whether library and secateur agree on a model, also after writing it again."""
    forest = adapter.forest
    if forest.n_features > _MOST_FEATURES:
        return ANOTHER  # too many features to try it
    rows = rows_for(forest if forest.n_features != sound.forest.n_features else sound.forest)
    try:
        theirs = _theirs(adapter, file, rows)
    except Exception:
        if adapter.library != "sklearn":
            raise
        return _unusable_or_unclear(adapter, rows)
    ours = _ours(adapter, rows)
    if theirs is not None and not alike(ours, theirs):
        return f"{adapter.library} says {np.ravel(theirs)[:3]}, secateur {np.ravel(ours)[:3]}"
    copy = adapter.write(Decision(np.ones(forest.n_nodes, bool)))
    written = file.with_name(f"again{file.suffix}")
    save_model(copy, written, force=True)
    if not alike(_ours(read(written), rows), ours):
        return "another model after writing it again"
    shutil.rmtree(written) if written.is_dir() else written.unlink()
    before = _ours(sound, rows) if forest.n_features == sound.forest.n_features else None
    return SAME if before is not None and before.shape == ours.shape and alike(ours, before) else ANOTHER


def _unusable_or_unclear(adapter: Adapter, rows: Any) -> str:
    """Return that scikit-learn cannot use a model, unless secateur fails, too, without a clear error."""
    try:
        _ours(adapter, rows)
    except ValueError as error:
        return UNUSABLE if str(error).endswith(".") and len(str(error).split(". ")) > 1 else f"unclear: {error}"
    return UNUSABLE


def rows_for(forest: Forest) -> Any:
    """Return rows between, at and beyond the thresholds, some values missing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, forest.n_features))
    for v in np.flatnonzero(forest.is_split)[:200]:
        rows[int(rng.integers(60)), forest.feature[v]] = forest.threshold[v]
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def _ours(adapter: Adapter, rows: Any) -> Any:
    """Return the predictions of secateur: probabilities for scikit-learn classifiers, else sums."""
    everything = Pruned(adapter, Decision(np.ones(adapter.forest.n_nodes, bool)), 0, {}, "", {})
    if adapter.library != "sklearn":
        return everything.raw(_usable(adapter, rows))
    return everything.predict_proba(rows) if adapter.forest.n_classes else everything.predict(rows)


def _usable(adapter: Adapter, rows: Any) -> Any:
    """Return rows with integers in categorical features."""
    lists = adapter.forest.categories
    if not len(lists.row):
        return rows
    rows = rows.copy()
    category = np.unique(adapter.forest.feature[lists.row != -1])
    rows[:, category] = np.abs(np.nan_to_num(rows[:, category])).round() % 3
    return rows


def _theirs(adapter: Adapter, file: Path, rows: Any) -> Any:
    if adapter.library == "secateur":
        return forest_sums(*archive(file), rows)
    if adapter.library == "spark":
        return spark_sums(file, rows)
    return native_predictions(adapter, _usable(adapter, rows))


def native_sums(adapter: Adapter, rows: Any) -> Any:
    """Return the sums of the library itself; None for scikit-learn, and where a JVM would be needed."""
    model = adapter.model
    if adapter.library == "xgboost":
        import xgboost

        names = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        matrix = xgboost.DMatrix(rows, **names, enable_categorical=True)
        return model.predict(matrix, output_margin=True).reshape(len(rows), -1)
    if adapter.library == "lightgbm":
        return model.predict(rows, raw_score=True, num_threads=1).reshape(len(rows), -1) / adapter.forest.divisor
    if adapter.library == "catboost":
        return np.reshape(model._predict(rows, "RawFormulaVal", 0, 0, 1, None, "predict"), (len(rows), -1))
    return None


def native_predictions(adapter: Adapter, rows: Any) -> Any:
    """Return the library's own sums, or predictions of scikit-learn; None where a JVM would be needed."""
    if adapter.library == "sklearn":
        model = adapter.model
        return model.predict_proba(rows) if adapter.forest.n_classes else model.predict(rows)
    return native_sums(adapter, rows)


def alike(a: Any, b: Any) -> bool:
    """Return whether two predictions agree, up to their precision."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
