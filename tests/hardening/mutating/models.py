"""Model files of every library: small ones, what can be done to them, and whether the library agrees."""

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.hardening.mutating.kind import ANOTHER, SAME, UNUSABLE, Kind, copy_folder
from tests.hardening.mutating.plain_reading import archive, forest_sums, spark_sums
from tests.hardening.mutating.shapes import Rng, changed_array, changed_arrays, changed_json, changed_zip, npy, pick

from secateur.decision import Decision
from secateur.forest import Forest
from secateur.io import adapt
from secateur.io.adapter import Adapter
from secateur.io.catboost.cbm import read_cbm
from secateur.io.catboost.flatbuffer import root, with_vectors
from secateur.io.files import load_model, save_model
from secateur.io.xgboost.ubjson import decode, encode
from secateur.path import Pruned

_SPARK = Path(__file__).parents[2] / "models/spark-4.3.0-boosted_regression"
_CATBOOST_LISTS = (
    *((1, "<i4"), (2, "<i4"), (3, "<i4")),  # splits, sizes, starts
    *((8, "<f8"), (9, "<f8"), (10, "<u2"), (11, "<u4"), (16, "<f8")),  # values, weights, steps, leaves, biases
)
_MOST_FEATURES = 10_000


def _data(n_classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) * np.nan_to_num(X[:, 2])
    if not n_classes:
        return X, score
    return X, np.digitize(score + 0.3 * rng.normal(size=200), np.linspace(-0.5, 0.5, n_classes + 1)[1:-1])


def _saved(make: Callable[[], Any]) -> Callable[[Path], Any]:
    return lambda file: save_model(make(), file)


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1).fit(*_data()).get_booster()


def _xgboost_classes() -> Any:
    import pandas as pd
    from xgboost import XGBClassifier

    X, y = _data(3)
    table = pd.DataFrame(X, columns=list("abcd")).assign(d=pd.Categorical(np.nan_to_num(X[:, 3]).round().astype(int)))
    options = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1, "max_cat_to_onehot": 1}
    return XGBClassifier(**options, enable_categorical=True).fit(table, y).get_booster()


def _lightgbm(n_classes: int) -> Callable[[], Any]:
    def make() -> Any:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=4, num_leaves=6, min_child_samples=5, n_jobs=1, verbose=-1)
        return model.fit(*_data(n_classes)).booster_

    return make


def _catboost(policy: str, n_classes: int = 0, threshold: float | None = None) -> Callable[[], Any]:
    def make() -> Any:
        from catboost import CatBoostClassifier, CatBoostRegressor

        kind = CatBoostClassifier if n_classes else CatBoostRegressor
        options = {"iterations": 4, "depth": 3, "grow_policy": policy, "thread_count": 1, "verbose": 0}
        X, y = _data(n_classes)
        names = np.array(["ash", "birch", "cedar"])[y] if n_classes else y
        model = kind(**options, allow_writing_files=False).fit(X, names)
        if threshold is not None:
            model.set_probability_threshold(threshold)
        return model

    return make


def _forest() -> Forest:
    from sklearn.ensemble import RandomForestRegressor

    X, y = _data(0)
    return adapt(RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)).forest


def _forest_of_classes() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(2, max_depth=3, random_state=0).fit(*_data(3))


def _histogram_boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    options = {"max_iter": 2, "max_leaf_nodes": 5, "early_stopping": False}
    return HistGradientBoostingClassifier(**options, random_state=0).fit(*_data(2))


def _boosting_in_pipeline() -> Any:
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    boosting = GradientBoostingRegressor(n_estimators=2, max_depth=2, random_state=0)
    return make_pipeline(SimpleImputer(), boosting).fit(*_data(0))


def _change_json(source: Path, target: Path, rng: Rng) -> None:
    target.write_bytes(changed_json(json.loads(source.read_bytes()), rng))


def _change_ubj(source: Path, target: Path, rng: Rng) -> None:
    """Change a model in UBJSON: an array of a tree, or anything else in it."""
    saved = decode(source.read_bytes())
    if rng.random() < 0.5:
        tree = pick(rng, saved["learner"]["gradient_booster"]["model"]["trees"])
        arrays = {name: entry for name, entry in tree.items() if isinstance(entry, np.ndarray)}
        changed = changed_arrays(arrays, rng)
        for name in arrays:
            tree.pop(name)
        tree.update(changed)
    else:
        text = changed_json(_as_lists(saved), rng)
        try:
            saved = json.loads(text)
        except (ValueError, RecursionError):  # nothing UBJSON has a form for: JSON under a name that says otherwise
            target.write_bytes(text)
            return
    try:
        target.write_bytes(encode(saved))
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError, RecursionError):
        target.write_bytes(source.read_bytes()[: int(rng.integers(source.stat().st_size))])


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_as_lists(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _change_lightgbm(source: Path, target: Path, rng: Rng) -> None:
    """Change numbers in a line, exchange two lines of a tree, or take one away; most often with fitting sizes."""
    head, *trees = source.read_text().split("\nTree=")
    place = int(rng.integers(len(trees) + 1))
    parts = [head, *trees]
    lines = parts[place].split("\n")
    parts[place] = "\n".join(_changed_lines(lines, rng))
    if rng.random() < 0.8:
        parts = _with_sizes(parts)
    target.write_text("\nTree=".join(parts), errors="surrogatepass")


def _changed_lines(lines: list[str], rng: Rng) -> list[str]:
    keyed = [k for k, line in enumerate(lines) if "=" in line]
    one, other, way = pick(rng, keyed), pick(rng, keyed), rng.random()
    name, _, values = lines[one].partition("=")
    numbers = values.split(" ")
    if way < 0.5:
        entry = int(rng.integers(len(numbers)))
        odd = (
            entry,
            entry - 1,
            entry + 1,
            0,
            -1,
            -2,
            -(entry + 1),
            len(numbers),
            1000,
            2**31,
            "nan",
            "inf",
            "1e999",
            "x",
        )
        numbers[entry] = str(pick(rng, odd))
        lines[one] = f"{name}={' '.join(numbers)}"
    elif way < 0.7:
        other_name, _, other_values = lines[other].partition("=")
        lines[one], lines[other] = f"{name}={other_values}", f"{other_name}={values}"
    elif way < 0.8:
        lines[one] = f"{name}={' '.join(numbers * int(10 ** rng.uniform(0.3, 4)))}"
    elif way < 0.9:
        lines[one] = f"{name}={' '.join(numbers[:-1])}"
    else:
        return [line for k, line in enumerate(lines) if k != one]
    return lines


def _with_sizes(parts: list[str]) -> list[str]:
    """Return the parts with the sizes of the trees as they are now, so that the change is read at all."""
    sizes = [len(f"Tree={tree}\n".encode(errors="surrogatepass")) for tree in parts[1:]]
    if sizes:
        sizes[-1] = len(f"Tree={parts[-1].partition('end of trees')[0]}".encode(errors="surrogatepass"))
    lines = [
        f"tree_sizes={' '.join(map(str, sizes))}" if line.startswith("tree_sizes=") else line
        for line in parts[0].split("\n")
    ]
    return ["\n".join(lines), *parts[1:]]


def _change_cbm(source: Path, target: Path, rng: Rng) -> None:
    """Change one of the lists of the trees: splits, sizes, starts, values, weights, steps, numbers of leaves."""
    model = read_cbm(source.read_bytes())
    trees = root(model.core).table(1)
    assert trees is not None
    field, dtype = pick(
        rng, ((1, "<i4"), (2, "<i4"), (3, "<i4"), (8, "<f8"), (9, "<f8"), (10, "<u2"), (11, "<u4"), (16, "<f8"))
    )
    array = changed_array(trees.vector(field, dtype), rng)
    try:
        core = with_vectors(trees, {field: np.ravel(array)})
    except (ValueError, TypeError):
        core = model.core[: len(model.core) // 2]
    size = len(core) if rng.random() < 0.95 else int(pick(rng, (0, 2**31, len(core) + 8)))
    target.write_bytes(b"CBM1" + size.to_bytes(4, "little") + core + model.tail)


def _change_spark(source: Path, target: Path, rng: Rng) -> None:
    """Change the metadata, or a column of the nodes or of the trees."""
    copy_folder(source, target)
    if rng.random() < 0.3:
        file = next((target / "metadata").glob("part*"))
        file.write_bytes(changed_json(json.loads(file.read_bytes()), rng) + b"\n")
        return
    file = next((target / pick(rng, ("data", "data", "treesMetadata"))).glob("*.parquet"))
    rows = pq.ParquetFile(file).read()
    pq.write_table(_changed_rows(rows, rng), file)


def _changed_rows(table: pa.Table, rng: Rng) -> pa.Table:
    """Return a table with some of its rows changed, doubled, dropped or in another order."""
    rows, way = table.to_pylist(), rng.random()
    place, other = (int(k) for k in rng.integers(len(rows), size=2))
    if way < 0.15:
        rows[place], rows[other] = rows[other], rows[place]
    elif way < 0.25:
        rows.append(rows[place])
    elif way < 0.35:
        del rows[place]
    elif way < 0.45:
        name = pick(rng, table.column_names)
        return pick(rng, (table.drop_columns([name]), table.rename_columns(["x", *table.column_names[1:]])))
    elif "nodeData" in rows[place]:
        _change_node(rows, place, other, rng)
    else:
        rows[place][pick(rng, ("_1", "_3"))] = pick(rng, (0, -1, 3, 2**31 - 1))
    return pa.Table.from_pylist(rows, schema=table.schema)


def _change_node(rows: list[dict[str, Any]], place: int, other: int, rng: Rng) -> None:
    node, odd = rows[place]["nodeData"], (place, other, 0, -1, 1, -2, 2**31 - 1, 1000)
    name = pick(rng, ("leftChild", "rightChild", "children", "id", "featureIndex", "threshold", "number", "treeID"))
    if name == "children":
        node["leftChild"], node["rightChild"] = node["rightChild"], node["leftChild"]
    elif name in ("leftChild", "rightChild", "id"):
        node[name] = int(pick(rng, odd))
    elif name == "featureIndex":
        node["split"]["featureIndex"] = int(pick(rng, odd))
    elif name == "threshold":
        node["split"]["leftCategoriesOrThreshold"] = pick(
            rng, ([float("nan")], [], [1.0, 2.0], [float("inf")], [1e308])
        )
        node["split"]["numCategories"] = int(pick(rng, (-1, -1, 2, 0, 2**31 - 1)))
    elif name == "number":
        node[pick(rng, ("prediction", "impurity", "gain"))] = pick(rng, (float("nan"), float("inf"), 0.0, -1e308))
        node["impurityStats"] = pick(rng, (node["impurityStats"], [], [float("nan")] * 3, [-1.0] * 3))
    else:
        rows[place]["treeID"] = int(pick(rng, odd))


def change_archive(source: Path, target: Path, rng: Rng) -> None:
    """Change header, arrays, or the zip itself of a .secateur or path file."""
    way = rng.random()
    if way < 0.3:
        target.write_bytes(changed_zip(source.read_bytes(), rng, target.parent))
        return
    header, arrays = archive(source)
    if way < 0.55:
        text = changed_json(header, rng)
    else:
        text, arrays = json.dumps(header).encode(), changed_arrays(arrays, rng)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        for name, array in {"header": np.frombuffer(text, np.uint8), **arrays}.items():
            written.writestr(f"{name}.npy", npy(array))


def _change_skops(source: Path, target: Path, rng: Rng) -> None:
    """Change the schema, an array, or the zip itself."""
    way = rng.random()
    if way < 0.3:
        target.write_bytes(changed_zip(source.read_bytes(), rng, target.parent))
        return
    with zipfile.ZipFile(source) as found:
        entries = {info.filename: found.read(info) for info in found.infolist()}
    if way < 0.6:
        entries["schema.json"] = changed_json(json.loads(entries["schema.json"]), rng)
    else:
        name = pick(rng, [name for name in entries if name.endswith(".npy")])
        array = np.load(io.BytesIO(entries[name]), allow_pickle=False)
        entries[name] = npy(changed_array(array, rng))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in entries.items():
            written.writestr(name, content)


def _read(file: Path) -> Adapter:
    """Return what a file holds as everything in secateur sees it: its forest is read and checked."""
    adapter = adapt(load_model(file))
    adapter.forest  # noqa: B018 - it is read now
    return adapter


def _judge(adapter: Adapter, file: Path, sound: Adapter) -> str:
    """Return whether library and secateur agree on a model, also after writing it again."""
    forest = adapter.forest
    if forest.n_features > _MOST_FEATURES:
        return ANOTHER  # with too many features to try it
    rows = rows_for(forest if forest.n_features != sound.forest.n_features else sound.forest)
    try:
        theirs = _theirs(adapter, file, rows)
    except Exception:
        if adapter.library != "sklearn":
            raise
        return UNUSABLE
    ours = _ours(adapter, rows)
    if theirs is not None and not alike(ours, theirs):
        return f"{adapter.library} says {np.ravel(theirs)[:3]}, secateur {np.ravel(ours)[:3]}"
    copy = adapter.write(Decision(np.ones(forest.n_nodes, bool)))
    written = file.with_name(f"again{file.suffix}")
    save_model(copy, written, force=True)
    if not alike(_ours(_read(written), rows), ours):
        return "another model after writing it again"
    shutil.rmtree(written) if written.is_dir() else written.unlink()
    before = _ours(sound, rows) if forest.n_features == sound.forest.n_features else None
    return SAME if before is not None and before.shape == ours.shape and alike(ours, before) else ANOTHER


def rows_for(forest: Forest) -> Any:
    """Return rows between, at and beyond the thresholds, some values missing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, forest.n_features))
    for v in np.flatnonzero(forest.is_split)[:200]:
        rows[int(rng.integers(60)), forest.feature[v]] = forest.threshold[v]
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def _ours(adapter: Adapter, rows: Any) -> Any:
    """Return what secateur says of rows: probabilities of scikit-learn's classes, else sums."""
    everything = Pruned(adapter, Decision(np.ones(adapter.forest.n_nodes, bool)), 0, {}, "", {})
    if adapter.library != "sklearn":
        return everything.raw(_usable(adapter, rows))
    return everything.predict_proba(rows) if adapter.forest.n_classes else everything.predict(rows)


def _usable(adapter: Adapter, rows: Any) -> Any:
    """Return rows with whole numbers where a feature is made of categories."""
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
    return native_answers(adapter, _usable(adapter, rows))


def native_sums(adapter: Adapter, rows: Any) -> Any:
    """Return what the library itself sums up to; None for scikit-learn, and where asking would take a JVM."""
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


def native_answers(adapter: Adapter, rows: Any) -> Any:
    """Return what the library itself says: sums, or of scikit-learn predictions; None where that would take a JVM."""
    if adapter.library == "sklearn":
        model = adapter.model
        return model.predict_proba(rows) if adapter.forest.n_classes else model.predict(rows)
    return native_sums(adapter, rows)


def alike(a: Any, b: Any) -> bool:
    """Return whether two predictions agree, up to the precision of what is compared."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


def _kind(suffix: str, change: Any, *makes: Callable[[], Any]) -> Kind:
    return Kind(suffix, tuple(_saved(make) for make in makes), change, _read, _judge)


MODELS = {
    "XGBoost .json": _kind(".json", _change_json, _xgboost, _xgboost_classes),
    "XGBoost .ubj": _kind(".ubj", _change_ubj, _xgboost, _xgboost_classes),
    "LightGBM .txt": _kind(".txt", _change_lightgbm, _lightgbm(2), _lightgbm(3)),
    "CatBoost .json": _kind(".json", _change_json, _catboost("SymmetricTree"), _catboost("Lossguide")),
    "CatBoost .cbm": _kind(
        ".cbm",
        _change_cbm,
        _catboost("Depthwise"),
        _catboost("SymmetricTree", 3),
        _catboost("Lossguide", 2, threshold=0.3),
    ),
    "Spark folder": Kind("", (lambda folder: copy_folder(_SPARK, folder),), _change_spark, _read, _judge),
    ".skops": _kind(".skops", _change_skops, _forest_of_classes, _histogram_boosting, _boosting_in_pipeline),
    ".secateur": _kind(".secateur", change_archive, _forest),
}
