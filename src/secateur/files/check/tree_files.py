"""Check the model files that name no code: LightGBM, XGBoost, CatBoost, Spark ML, and forests of secateur.

Each function runs all checks of secateur's reader and returns the report with the sizes of the model. The libraries
themselves never see the file. The reader may still refuse a file that passed, because a library checks more.
"""

import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.archive import load_forest
from secateur.files.check.file_report import FileReport
from secateur.files.check.numbers_of_trees import with_forest, with_odd_numbers
from secateur.files.formats import json_package, library_module


def check_lightgbm(file: Path, report: FileReport) -> FileReport:
    """Check a text file of LightGBM."""
    library_module("lightgbm")
    from secateur.libraries.lightgbm.objectives import read_objective
    from secateur.libraries.lightgbm.text_file import parse
    from secateur.libraries.lightgbm.trees import read_nodes

    try:
        text = parse(file.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise DamagedFileError(
            f"It is not a text file ({error.reason}), but LightGBM saves models as text. Save the model again with "
            "save_model."
        ) from error
    read_objective(text)
    nodes = read_nodes(text.trees, text.n_features)
    leaf = nodes.right == -1
    sized = replace(
        report,
        format=f"LightGBM text, {text.header['version']}",
        trees=len(text.trees),
        nodes=len(leaf),
        leaves=int(leaf.sum()),
        features=text.n_features,
        outputs=text.per_iteration,
        objective=text.header.get("objective") or None,
    )
    return with_odd_numbers(sized, nodes.value[leaf], nodes.threshold[~leaf & (nodes.bitset == -1)])


def check_xgboost(file: Path, report: FileReport) -> FileReport:
    """Check a .json or .ubj file of XGBoost."""
    library_module("xgboost")
    from secateur.libraries.xgboost.file_checks import check_saved
    from secateur.libraries.xgboost.saved_model import count, n_outputs
    from secateur.libraries.xgboost.trees import read_trees

    binary, saved = _parsed_xgboost(file.read_bytes())
    try:
        saved = check_saved(saved)
    except (UnicodeError, OverflowError) as error:
        raise DamagedFileError(
            f"It contains a text or number that XGBoost cannot read ({error}). Save the model again."
        ) from error
    trees = read_trees(saved)
    leaf = trees.node["left_children"][trees.order] == -1
    numbers = trees.node["split_conditions"][trees.order]
    numeric = ~leaf & (trees.node["split_type"][trees.order] == 0)
    deleted = int(trees.start[-1]) - len(leaf)
    sized = replace(
        report,
        format="XGBoost UBJSON" if binary else "XGBoost JSON",
        version=".".join(map(str, saved["version"])),
        trees=len(trees.output),
        nodes=len(leaf),
        leaves=int(leaf.sum()),
        features=count(saved, "learner", "learner_model_param", "num_feature"),
        outputs=n_outputs(saved),
        objective=str(saved["learner"]["objective"]["name"]),
        warnings=(f"{deleted:,} stored nodes are deleted ones, which no row reaches.",) if deleted else (),
    )
    return with_odd_numbers(sized, numbers[leaf], numbers[numeric])


def _parsed_xgboost(data: bytes) -> tuple[bool, Any]:
    """Return whether a file is UBJSON, and its content."""
    from secateur.libraries.xgboost.ubjson import decode

    if data[:1] != b"{":
        raise UnsupportedFileError(
            "It is neither JSON nor UBJSON, the two formats of XGBoost models that secateur reads. Load it with the "
            "XGBoost version that wrote it, and save it as .json or .ubj."
        )
    # The length of the first key follows in UBJSON.
    if data[1:2] in b"LiUIl":
        return True, decode(data)
    try:
        return False, json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"It is not valid JSON ({error}). Copy or save it again.") from None


def check_cbm(file: Path, report: FileReport) -> FileReport:
    """Check a .cbm file of CatBoost."""
    library_module("catboost")
    from secateur.libraries.catboost.cbm import read_cbm
    from secateur.libraries.catboost.ctr_checks import check_tail
    from secateur.libraries.catboost.trees import in_preorder

    native = read_cbm(file.read_bytes())
    order = in_preorder(native.trees)
    if not native.plain:
        raise UnsupportedFileError(
            "It contains a CatBoost model with text or embedding features, whose tables secateur cannot validate. "
            "CatBoost may crash on damaged ones. Load it only if you trust its origin."
        )
    check_tail(native)
    outputs = native.trees.leaf_value.shape[1]
    sized = replace(
        report,
        format="CatBoost binary",
        version=_catboost_version(native.info),
        trees=len(native.trees.size),
        nodes=len(order.right),
        leaves=len(native.trees.leaf_value),
        features=native.conditions.n_columns,
        outputs=outputs,
        objective=_catboost_objective(native.info, outputs),
    )
    return with_odd_numbers(sized, native.trees.leaf_value, native.conditions.threshold)


def check_catboost_json(file: Path, report: FileReport) -> FileReport:
    """Check a .json file of CatBoost."""
    library_module("catboost")
    from secateur.libraries.catboost.json_file import parse_json

    model = parse_json(file.read_bytes())
    found, outputs = model.content, len(model.bias)
    depths = np.array([len(tree.get("splits") or ()) for tree in found.get("oblivious_trees", [])], np.int64)
    info = {name: _as_text(value) for name, value in found.get("model_info", {}).items()}
    leaves = len(model.leaves) // outputs
    trees = len(found.get("trees") or depths)
    columns = sum(map(len, (value for name, value in found["features_info"].items() if name != "ctrs")))
    sized = replace(
        report,
        format="CatBoost JSON",
        version=_catboost_version(info),
        trees=trees,
        nodes=2 * leaves - trees,
        leaves=leaves,
        features=columns,
        outputs=outputs,
        objective=_catboost_objective(info, outputs),
    )
    return with_odd_numbers(sized, np.array(model.leaves), np.empty(0))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _catboost_version(info: dict[str, str]) -> str | None:
    found = re.search(r"(?<![\d.])\d+\.\d+(\.\d+)+", info.get("catboost_version_info", ""))
    return found[0] if found else None


def _catboost_objective(info: dict[str, str], n_outputs: int) -> str | None:
    """Return the name of the training loss, after checking the metadata."""
    from secateur.libraries.catboost.model_info import check_info, class_positions
    from secateur.libraries.catboost.objectives import loss_named

    check_info(info)
    loss = loss_named(info)
    if loss.classes or loss.many_labels:
        class_positions(info, n_outputs)
    return loss.name or None


def check_spark(folder: Path, report: FileReport) -> FileReport:
    """Check a folder saved by Spark ML."""
    library_module("pyspark")
    from secateur.libraries.spark.adapter import SavedAdapter
    from secateur.libraries.spark.saved_model import SavedModel

    saved = SavedModel.load(folder)
    version = saved.metadata.get("sparkVersion")
    named = replace(
        report,
        format=f"Spark ML folder, {saved.kind_name}",
        version=version if isinstance(version, str) else None,
    )
    return with_forest(named, SavedAdapter(saved).forest)


def check_secateur(file: Path, report: FileReport) -> FileReport:
    """Check a forest saved by secateur."""
    return with_forest(report, load_forest(file))


def check_path(file: Path, report: FileReport) -> FileReport:
    """Check a pruning path saved by secateur."""
    # Paths are in a layer above files, and found by name as the libraries are.
    path = import_module("secateur.path.path_file").load_path(file)
    named = replace(report, format=f"secateur path, {len(path):,} points by {path.solver}")
    return with_forest(named, path.forest)


def check_json(file: Path, report: FileReport) -> FileReport:
    """Check a .json file of XGBoost or CatBoost; its content determines which."""
    package = json_package(file)
    check = {"xgboost": check_xgboost, "catboost": check_catboost_json}[package]
    return check(file, replace(report, library=package))
