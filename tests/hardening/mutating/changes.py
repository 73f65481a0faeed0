"""Change the content of model files; the syntax stays valid."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.hardening.mutating.kind import copy_folder
from tests.hardening.mutating.plain_reading import archive
from tests.hardening.mutating.shapes import Rng, changed_array, changed_arrays, changed_json, changed_zip, npy, pick

from secateur.libraries.catboost.cbm import read_cbm
from secateur.libraries.catboost.flatbuffer import root, with_vectors
from secateur.libraries.xgboost.ubjson import decode, encode

_CATBOOST_LISTS = (
    *((1, "<i4"), (2, "<i4"), (3, "<i4")),  # splits, sizes, starts
    *((8, "<f8"), (9, "<f8"), (10, "<u2"), (11, "<u4"), (16, "<f8")),  # values, weights, steps, leaves, biases
)


def change_json(source: Path, target: Path, rng: Rng) -> None:
    target.write_bytes(changed_json(json.loads(source.read_bytes()), rng))


def change_ubj(source: Path, target: Path, rng: Rng) -> None:
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
        except (ValueError, RecursionError):  # UBJSON cannot store it: JSON under the suffix of UBJSON
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


def change_lightgbm(source: Path, target: Path, rng: Rng) -> None:
    """Change numbers in a line, swap two lines of a tree, or remove one; usually with matching sizes."""
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
    """Return the parts with updated sizes of the trees, so that the changed trees are parsed."""
    sizes = [len(f"Tree={tree}\n".encode(errors="surrogatepass")) for tree in parts[1:]]
    if sizes:
        sizes[-1] = len(f"Tree={parts[-1].partition('end of trees')[0]}".encode(errors="surrogatepass"))
    lines = [
        f"tree_sizes={' '.join(map(str, sizes))}" if line.startswith("tree_sizes=") else line
        for line in parts[0].split("\n")
    ]
    return ["\n".join(lines), *parts[1:]]


def change_cbm(source: Path, target: Path, rng: Rng) -> None:
    """Change one of the lists of the trees: splits, sizes, starts, values, weights, steps, numbers of leaves."""
    model = read_cbm(source.read_bytes())
    trees = root(model.core).table(1)
    assert trees is not None
    field, dtype = pick(rng, _CATBOOST_LISTS)
    array = changed_array(trees.vector(field, dtype), rng)
    try:
        core = with_vectors(trees, {field: np.ravel(array)})
    except (ValueError, TypeError):
        core = model.core[: len(model.core) // 2]
    size = len(core) if rng.random() < 0.95 else int(pick(rng, (0, 2**31, len(core) + 8)))
    target.write_bytes(b"CBM1" + size.to_bytes(4, "little") + core + model.tail)


def change_spark(source: Path, target: Path, rng: Rng) -> None:
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
    """Return a table with some of its rows changed, repeated, dropped or in another order."""
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


def change_skops(source: Path, target: Path, rng: Rng) -> None:
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
