"""Validate a model in CatBoost's JSON format and convert it to .cbm with CatBoost.

CatBoost hardly validates JSON, and reads missing entries as 0. So the file is checked first, and afterwards the
converted model is compared with it: number of outputs, splits and leaves.
"""

import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from catboost import CatBoost

from secateur.files.tempdir import scratch_folder
from secateur.libraries.catboost.cbm import MAX_DEPTH, read_cbm
from secateur.libraries.catboost.flatbuffer import damaged

_SPLIT_TYPES = ("FloatFeature", "OneHotFeature", "OnlineCtr")
_LARGEST = sys.float_info.max
_MISSING = ("AsIs", "AsFalse", "AsTrue")


@dataclass(frozen=True, eq=False)
class ModelJson:
    """Hold the checked content of a model in JSON: scale, bias, all leaf values and the condition of each split."""

    content: dict[str, Any]
    scale: float
    bias: list[float]
    leaves: list[float]
    splits: list[int]


def parse_json(text: bytes) -> ModelJson:
    """Return the content of a model in JSON, without handing it to CatBoost.

    Raises
    ------
    DamagedFileError
        If the text is not JSON, or not a valid model.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(f"it is not JSON ({str(error).partition(chr(10))[0]})") from error
    scale, bias = _check_model(found)
    conditions = _check_features(found["features_info"])
    leaves, splits = _check_symmetric(found, len(bias), conditions)
    if "trees" in found:
        leaves, splits = _check_free(found, len(bias), conditions)
    _check_statistics(found)
    return ModelJson(found, scale, bias, leaves, splits)


def json_to_cbm(text: bytes) -> bytes:
    """Return the .cbm file of a model in JSON.

    Raises
    ------
    DamagedFileError
        If the text is not JSON, or not a valid model.
    """
    model = parse_json(text)
    with scratch_folder() as folder:
        file = folder / "model.json"
        file.write_bytes(text)
        try:
            blob: bytes = CatBoost().load_model(str(file), format="json")._serialize_model()
        except Exception as error:
            # The type of the exception depends on which of CatBoost's checks fails.
            raise damaged(f"CatBoost cannot read it ({str(error).partition(chr(10))[0]})") from error
    _compare(blob, model)
    return blob


def _get(parent: Any, key: str, kind: type | tuple[type, ...]) -> Any:
    """Return an entry of an object; raise DamagedFileError if it is missing or of another type."""
    if not isinstance(parent, dict) or not isinstance(parent.get(key), kind) or isinstance(parent[key], bool):
        raise damaged(f"{key} is missing or has the wrong type")
    return parent[key]


def _numbers(values: Any, what: str) -> list[float]:
    if not isinstance(values, list) or not all(
        isinstance(x, int | float) and not isinstance(x, bool) and -_LARGEST <= x <= _LARGEST for x in values
    ):
        raise damaged(f"{what} must be finite numbers")
    # An array of integers beyond 64 bits would be one of objects.
    return [float(x) for x in values]


def _check_model(found: Any) -> tuple[float, list[float]]:
    """Return the scale and the biases, checked."""
    _get(found, "features_info", dict)
    info = _get(found, "model_info", dict) if "model_info" in found else {}
    if not isinstance(info.get("params") or {}, dict):
        raise damaged("its params are not an object")
    if ("trees" in found) == ("oblivious_trees" in found):
        raise damaged("it must have either trees or oblivious_trees")
    # Old versions store no scale and bias, or one bias for all outputs.
    scale_and_bias = _get(found, "scale_and_bias", list) if "scale_and_bias" in found else [1, 0]
    if len(scale_and_bias) != 2 or scale_and_bias[1] == []:
        raise damaged("scale_and_bias is not a number and a list of numbers")
    scale, bias = scale_and_bias
    biases = bias if isinstance(bias, list) else [bias] * _width(found)
    return _numbers([scale], "its scale")[0], _numbers(biases, "its biases")


def _width(found: dict[str, Any]) -> int:
    """Return the number of outputs of the first tree, 1 if there are no trees."""
    trees = _objects(found, "trees" if "trees" in found else "oblivious_trees")
    if not trees:
        return 1
    tree = trees[0]
    if "oblivious_trees" in found:
        levels = tree.get("splits") or []
        return max(len(_get(tree, "leaf_values", list)) >> min(len(levels), MAX_DEPTH), 1)
    while "split" in tree:
        tree = _get(tree, "left", dict)
    return len(tree["value"]) if isinstance(tree.get("value"), list) else 1


def _objects(parent: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of objects, empty if the key is absent."""
    found = parent.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise damaged(f"its {key} are not a list of objects")
    return found


def _check_features(features: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the split conditions in the order in which splits index them."""
    floats, ones, ctrs = [], [], []
    for feature in _objects(features, "float_features"):
        _get(feature, "flat_feature_index", int)
        borders = _numbers(feature.get("borders") or [], "borders")
        if any(b <= a for a, b in pairwise(borders)):
            raise damaged("the borders of a feature are not increasing")
        if feature.get("nan_value_treatment") not in _MISSING or not isinstance(feature.get("has_nans", False), bool):
            raise damaged("nan_value_treatment or has_nans of a feature is missing or invalid")
        floats += [("FloatFeature", _get(feature, "feature_index", int), border) for border in borders]
    for feature in _objects(features, "categorical_features"):
        _get(feature, "flat_feature_index", int)
        index = _get(feature, "feature_index", int)
        ones += [("OneHotFeature", index, value) for value in _numbers(feature.get("values") or [], "categories")]
    for feature in _objects(features, "ctrs"):
        _get(feature, "identifier", str)
        elements = _get(feature, "elements", list)
        if not elements or not all(isinstance(element, dict) for element in elements):
            raise damaged("a categorical statistic does not list its features")
        ctrs += [("OnlineCtr", border) for border in _numbers(feature.get("borders") or [], "borders")]
    return [*floats, *ones, *ctrs]


def _check_split(split: Any, conditions: list[tuple[Any, ...]]) -> int:
    """Return the index of a split's condition, after checking that it agrees with the split's description."""
    index = _get(split, "split_index", int)
    kind = _get(split, "split_type", str)
    if kind not in _SPLIT_TYPES:
        raise damaged(f"a split has the type {kind!r}, not one of {', '.join(_SPLIT_TYPES)}")
    described: tuple[Any, ...] = (kind, split.get("border"))
    if kind == "FloatFeature":
        described = (kind, split.get("float_feature_index"), split.get("border"))
    elif kind == "OneHotFeature":
        described = (kind, split.get("cat_feature_index"), split.get("value"))
    if not 0 <= index < len(conditions) or conditions[index] != described:
        raise damaged(f"a split has condition {index}, but describes another one")
    return int(index)


def _check_symmetric(
    found: dict[str, Any], width: int, conditions: list[tuple[Any, ...]]
) -> tuple[list[float], list[int]]:
    """Return all leaf values and splits of symmetric trees."""
    leaves: list[float] = []
    splits: list[int] = []
    trees = found.get("oblivious_trees", [])
    if not isinstance(trees, list):
        raise damaged("its oblivious_trees are not a list")
    for tree in trees:
        levels = _get(tree, "splits", list) if isinstance(tree, dict) and tree.get("splits") is not None else []
        values = _numbers(_get(tree, "leaf_values", list), "leaf values")
        if len(levels) > MAX_DEPTH or len(values) != width * 2 ** len(levels):
            raise damaged(f"a tree of {len(levels)} levels has {len(values)} leaf values for {width} outputs")
        if tree.get("leaf_weights") and len(_numbers(tree["leaf_weights"], "leaf weights")) * width != len(values):
            raise damaged("a tree does not have one weight per leaf")
        splits += [_check_split(split, conditions) for split in levels]
        leaves += values
    return leaves, splits


def _check_free(found: dict[str, Any], width: int, conditions: list[tuple[Any, ...]]) -> tuple[list[float], list[int]]:
    """Return all leaf values and splits of trees of any shape, in no particular order."""
    leaves: list[float] = []
    splits: list[int] = []
    stack = list(_get(found, "trees", list))
    while stack:
        node = stack.pop()
        if isinstance(node, dict) and "split" in node:
            splits.append(_check_split(node["split"], conditions))
            stack += [_get(node, "left", dict), _get(node, "right", dict)]
            continue
        value = _get(node, "value", (int, float, list))
        values = _numbers(value if isinstance(value, list) else [value], "leaf values")
        _numbers([_get(node, "weight", (int, float))], "leaf weights")
        if len(values) != width:
            raise damaged(f"a leaf has {len(values)} values for {width} outputs")
        leaves += values
    return leaves, splits


def _check_statistics(found: dict[str, Any]) -> None:
    """Raise DamagedFileError unless every statistic of the features is present, as a list of hashes and counts."""
    tables = found.get("ctr_data") or {}
    if not isinstance(tables, dict):
        raise damaged("ctr_data is not an object")
    for table in tables.values():
        cells, stride = _get(table, "hash_map", list), _get(table, "hash_stride", int)
        if stride < 2 or len(cells) % stride:
            raise damaged(f"a hash map has {len(cells)} cells and the invalid stride {stride}")
        if not all(isinstance(cell, str) and cell.isdigit() and int(cell) < 2**64 for cell in cells[::stride]):
            raise damaged("a hash in ctr_data is not an integer below 2**64")
        _numbers([cell for i, cell in enumerate(cells) if i % stride], "counts in ctr_data")
    for feature in found["features_info"].get("ctrs", []):
        if feature["identifier"] not in tables:
            raise damaged("a categorical statistic that its trees use is missing")


def _compare(blob: bytes, model: ModelJson) -> None:
    """Raise DamagedFileError unless the converted model agrees with the file."""
    native, leaves, splits = read_cbm(blob), model.leaves, model.splits
    used = native.trees.split
    if not native.trees.symmetric:
        # The two formats list the nodes of such trees in different orders, so compare sorted lists.
        used, splits = np.sort(used[(native.trees.step != 0).any(axis=1)]), sorted(splits)
        leaves, values = sorted(leaves), np.sort(native.trees.leaf_value.ravel())
    else:
        values = native.trees.leaf_value.ravel()
    same = len(values) == len(leaves) and np.allclose(values, leaves, rtol=1e-12, atol=1e-300)
    if not same or not np.array_equal(used, splits):
        raise damaged("the trees that CatBoost reads differ from those in the file")
    if not np.allclose([native.scale, *native.bias], [model.scale, *model.bias], rtol=1e-12, atol=1e-300):
        raise damaged("the scale or bias that CatBoost reads differs from that in the file")
