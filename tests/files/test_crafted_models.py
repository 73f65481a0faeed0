"""Crafted files that make native libraries crash or read out of bounds: reported as damaged, refused by the readers.

They are in the spirit of public reports, such as GHSA-wvg4-4w35-4jc9 of LightGBM, and are made here by editing small
valid files. The libraries themselves never see them.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import secateur as sc
from secateur.errors import DamagedFileError
from secateur.files.models import load_model, save_model
from secateur.libraries.catboost.cbm import read_cbm
from secateur.libraries.catboost.flatbuffer import root, with_vectors
from secateur.libraries.xgboost.ubjson import decode, encode

MODELS = Path(__file__).parents[1] / "models"


def check_damaged(file):
    """Check that the file is reported as damaged, in three parts, and that the reader refuses it."""
    report = sc.check_file(file)
    assert report.status == "damaged", report
    assert report.problem.endswith(".")
    assert len(re.findall(r"[.;:] ", report.problem)) >= 1
    with pytest.raises(DamagedFileError):
        load_model(file)


def first_tree(line, change):
    """Return an edit of a line of the first tree of a LightGBM text: `change` takes and returns its numbers."""

    def edit(text):
        head, mark, rest = text.partition(f"\n{line}=")
        numbers, newline, rest = rest.partition("\n")
        return f"{head}{mark}{' '.join(map(str, change(numbers.split(' '))))}{newline}{rest}"

    return edit


def set_to(place, number):
    """Return a change of one number of a list."""

    def change(numbers):
        return [number if k == place else entry for k, entry in enumerate(numbers)]

    return change


LIGHTGBM = {
    "a left child beyond the splits": first_tree("left_child", set_to(0, 1_000_000)),
    "a right child beyond the splits": first_tree("right_child", set_to(0, 2**31 - 1)),
    "a leaf beyond the leaves": first_tree("left_child", set_to(1, -1_000_000)),
    "a child that is its own parent": first_tree("right_child", set_to(0, 0)),
    "a cycle of two splits": first_tree("left_child", set_to(1, 0)),
    "two parents of one leaf": first_tree("left_child", lambda numbers: [numbers[-1]] * len(numbers)),
    "a feature beyond the features": first_tree("split_feature", set_to(0, 1_000_000)),
    "a negative feature": first_tree("split_feature", set_to(0, -5)),
    "a huge num_leaves": first_tree("num_leaves", set_to(0, 999_999_999)),
    "a num_leaves beyond all integers": first_tree("num_leaves", set_to(0, 2**63)),
    "a negative num_leaves": first_tree("num_leaves", set_to(0, -1)),
    "no leaves": first_tree("num_leaves", set_to(0, 0)),
    "a huge num_cat": first_tree("num_cat", set_to(0, 999_999_999)),
    "a negative num_cat": first_tree("num_cat", set_to(0, -1)),
    "a list of categories beyond the bitsets": first_tree("cat_boundaries", set_to(1, 1_000_000)),
    "a list of categories that ends before it starts": first_tree("cat_boundaries", set_to(0, 7)),
    "a categorical split without a list": first_tree("threshold", set_to(0, 1000)),
    "too few thresholds": first_tree("threshold", lambda numbers: numbers[:-1]),
    "too many leaf values": first_tree("leaf_value", lambda numbers: numbers * 1000),
    "a huge max_feature_idx": first_tree("max_feature_idx", set_to(0, 999_999_999)),
    "a negative max_feature_idx": first_tree("max_feature_idx", set_to(0, -2)),
    "a huge number of classes": first_tree("num_class", set_to(0, 999_999_999)),
    "a huge number of trees per iteration": first_tree("num_tree_per_iteration", set_to(0, 999_999_999)),
    "a text instead of a number": first_tree("leaf_value", set_to(0, "%n%n%n")),
    "an end inside a tree": lambda text: text[: len(text) // 2],
}


@pytest.mark.parametrize("name", LIGHTGBM)
def test_crafted_lightgbm_text_is_refused(name, tmp_path):
    text = (MODELS / "lightgbm-4.7.0-categories.txt").read_text()
    changed = LIGHTGBM[name](text)
    assert changed != text
    (tmp_path / "crafted.txt").write_text(changed)
    check_damaged(tmp_path / "crafted.txt")


def tree(**changes):
    """Return an edit of entries of the first tree of an XGBoost model."""

    def edit(saved):
        found = saved["learner"]["gradient_booster"]["model"]["trees"][0]
        for name, change in changes.items():
            found[name] = change(list(found[name]))

    return edit


def entry(value, *keys):
    """Return an edit of an entry of nested tables."""

    def edit(saved):
        for key in keys[:-1]:
            saved = saved[key]
        saved[keys[-1]] = value

    return edit


_MODEL = ("learner", "gradient_booster", "model")
XGBOOST = {
    "a left child beyond the nodes": tree(left_children=set_to(0, 1_000_000)),
    "a right child beyond the nodes": tree(right_children=set_to(0, 2**31 - 1)),
    "a negative child": tree(left_children=set_to(0, -2)),
    "a child that is its own parent": tree(left_children=set_to(0, 0)),
    "a cycle of two nodes": tree(left_children=set_to(1, 0)),
    "a parent beyond the nodes": tree(parents=set_to(1, 1_000_000)),
    "a feature beyond the features": tree(split_indices=set_to(0, 1_000_000)),
    "a negative feature": tree(split_indices=set_to(0, -1)),
    "too few left children": tree(left_children=lambda numbers: numbers[:-1]),
    "no thresholds": tree(split_conditions=lambda _: []),
    "too many default directions": tree(default_left=lambda numbers: numbers * 100),
    "an unknown type of split": tree(split_type=set_to(0, 7)),
    "a huge number of nodes": entry("2147483647", *_MODEL, "trees", 0, "tree_param", "num_nodes"),
    "a huge number of trees": entry("2147483647", *_MODEL, "gbtree_model_param", "num_trees"),
    "an output beyond the outputs": entry([5] * 4, *_MODEL, "tree_info"),
    "no features": entry("0", "learner", "learner_model_param", "num_feature"),
    "a huge number of classes": entry("999999999999", "learner", "learner_model_param", "num_class"),
    "a base score that is no number": entry("[nan]", "learner", "learner_model_param", "base_score"),
    "rounds beyond the trees": entry([0, 1, 2, 3, 400], *_MODEL, "iteration_indptr"),
    "no version": entry([], "version"),
}
XGBOOST_CATEGORIES = {
    "a list of categories beyond the codes": tree(categories_sizes=set_to(0, 1_000_000)),
    "a list of categories that starts beyond the codes": tree(categories_segments=set_to(0, 2**40)),
    "a negative start of a list": tree(categories_segments=set_to(0, -1)),
    "a list of a node that does not exist": tree(categories_nodes=set_to(0, 1_000_000)),
    "a negative category": tree(categories=set_to(0, -1)),
    "too few lists": tree(categories_sizes=lambda numbers: numbers[:-1]),
}


def edited_xgboost(name, edit, target):
    """Write an edited model as JSON or UBJSON."""
    saved = json.loads((MODELS / name).read_bytes())
    edit(saved)
    target.write_bytes(json.dumps(saved).encode() if target.suffix == ".json" else encode(saved))
    return target


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("name", XGBOOST)
def test_crafted_xgboost_models_are_refused(name, suffix, tmp_path):
    check_damaged(edited_xgboost("xgboost-3.2.0-regression.json", XGBOOST[name], tmp_path / f"crafted{suffix}"))


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("name", XGBOOST_CATEGORIES)
def test_crafted_categories_of_xgboost_are_refused(name, suffix, tmp_path):
    edit = XGBOOST_CATEGORIES[name]
    check_damaged(edited_xgboost("xgboost-3.2.0-categories.json", edit, tmp_path / f"crafted{suffix}"))


@pytest.mark.parametrize(("name", "count"), [("num_feature", "999999999999"), ("num_class", "1000000")])
def test_huge_counts_of_valid_models_are_warnings(name, count, tmp_path):
    def edit(saved):
        saved["learner"]["learner_model_param"][name] = count
        saved["learner"].update(feature_names=[], feature_types=[])

    report = sc.check_file(edited_xgboost("xgboost-3.2.0-regression.json", edit, tmp_path / "crafted.json"))
    assert report.ok
    assert "reserves memory" in report.warnings[0]


def test_ubjson_arrays_longer_than_the_file_are_refused(tmp_path):
    data = (MODELS / "xgboost-3.2.0-logistic.ubj").read_bytes()
    at = data.index(b"[$l#L") + 5
    for length in (2**62, -1, len(data)):
        crafted = data[:at] + length.to_bytes(8, "big", signed=True) + data[at + 8 :]
        (tmp_path / "crafted.ubj").write_bytes(crafted)
        check_damaged(tmp_path / "crafted.ubj")


def test_the_edited_copies_without_an_edit_are_valid(tmp_path):
    for suffix in (".json", ".ubj"):
        assert sc.check_file(
            edited_xgboost("xgboost-3.2.0-regression.json", lambda _: None, tmp_path / f"a{suffix}")
        ).ok
    assert decode(encode({"a": [1]})) == {"a": [1]}


CATBOOST = {
    "a split condition beyond the conditions": (1, "<i4", set_to(0, 1_000_000)),
    "a negative split condition": (1, "<i4", set_to(0, -1)),
    "a huge tree": (2, "<i4", set_to(0, 2**31 - 1)),
    "a tree of negative size": (2, "<i4", set_to(0, -1)),
    "a start beyond the splits": (3, "<i4", set_to(0, 1_000_000)),
    "too few leaf values": (8, "<f8", lambda numbers: numbers[:-3]),
    "leaf values that are NaN": (8, "<f8", set_to(0, float("nan"))),
    "too many leaf weights": (9, "<f8", lambda numbers: numbers * 2),
}


@pytest.mark.parametrize("name", CATBOOST)
def test_crafted_catboost_models_are_refused(name, tmp_path):
    field, dtype, change = CATBOOST[name]
    model = read_cbm((MODELS / "catboost-1.2.10-classes.cbm").read_bytes())
    trees = root(model.core).table(1)
    core = with_vectors(trees, {field: np.array(change(trees.vector(field, dtype).tolist()), dtype)})
    (tmp_path / "crafted.cbm").write_bytes(b"CBM1" + len(core).to_bytes(4, "little") + core + model.tail)
    check_damaged(tmp_path / "crafted.cbm")


def test_catboost_sizes_beyond_the_file_are_refused(tmp_path):
    data = (MODELS / "catboost-1.2.10-classes.cbm").read_bytes()
    for size in (2**32 - 1, 2**31, len(data)):
        (tmp_path / "crafted.cbm").write_bytes(data[:4] + size.to_bytes(4, "little") + data[8:])
        check_damaged(tmp_path / "crafted.cbm")


@pytest.mark.parametrize("number", [10**40, 10**400, float("nan"), "1", True, None])
def test_odd_leaf_values_in_catboost_json_are_refused_or_read_as_numbers(number, tmp_path):
    found = json.loads((MODELS / "catboost-1.2.10-depthwise.json").read_text())
    leaf = found["trees"][0]
    while "value" not in leaf:
        leaf = leaf["left"]
    leaf["value"] = number
    (tmp_path / "crafted.json").write_text(json.dumps(found))
    if number == 10**40:
        assert sc.check_file(tmp_path / "crafted.json").warnings == ("1 leaf values are out of the range of float32.",)
    else:
        check_damaged(tmp_path / "crafted.json")


def test_crafted_trees_of_scikit_learn_are_refused(tmp_path):
    pytest.importorskip("skops")
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor(max_depth=2).fit(np.arange(8.0)[:, None], np.arange(8.0))
    state = model.tree_.__getstate__()
    for name, number in (("left_child", 1_000_000), ("right_child", -7), ("left_child", 0), ("feature", 99)):
        nodes = state["nodes"].copy()
        nodes[name][0] = number
        model.tree_.__setstate__({**state, "nodes": nodes})
        save_model(model, tmp_path / "crafted.skops", force=True)
        check_damaged(tmp_path / "crafted.skops")


SECATEUR = {
    "a right child beyond the nodes": ("forest.right", 0, 1_000_000),
    "a feature beyond the features": ("forest.feature", 0, 1_000_000),
    "a negative feature": ("forest.feature", 0, -3),
    "a tree beyond the nodes": ("forest.tree_start", 1, 1_000_000),
    "trees that go backwards": ("forest.tree_start", 1, -1),
    "an output beyond the outputs": ("forest.tree_output", 0, 99),
}


@pytest.mark.parametrize("name", SECATEUR)
def test_crafted_forests_of_secateur_are_refused(name, tmp_path):
    array, place, number = SECATEUR[name]
    with np.load(MODELS / "secateur-0.1.0-classes.secateur") as archive:
        arrays = dict(archive)
    arrays[array] = arrays[array].copy()
    arrays[array][place] = number
    with (tmp_path / "crafted.secateur").open("wb") as stream:
        np.savez(stream, **arrays)
    check_damaged(tmp_path / "crafted.secateur")
