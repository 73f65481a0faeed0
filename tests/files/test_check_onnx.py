"""Tree ensembles in ONNX files: valid ones pass, those with bad ids, lengths or weights are damaged."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier

import secateur as sc
from secateur.files.models import save_model

onnx = pytest.importorskip("onnx", reason="needs onnx")

# One tree of two splits and three leaves, then one of a single split.
NODES = {
    "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 1.5, 0.0, 0.0, 0.0, 2.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 2, 0, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [4, 3, 0, 0, 0, 2, 0, 0],
}
LEAVES = {"treeids": [0, 0, 0, 1, 1], "nodeids": [2, 3, 4, 1, 2], "ids": [0] * 5, "weights": [1.0, 2.0, 3.0, 4.0, 5.0]}
REGRESSOR = {**NODES, **{f"target_{name}": numbers for name, numbers in LEAVES.items()}, "n_targets": 1}
CLASSIFIER = {
    **NODES,
    **{f"class_{name}": numbers for name, numbers in LEAVES.items()},
    "class_ids": [0, 1, 2, 0, 1],
    "classlabels_int64s": [10, 20, 30],
}
ENSEMBLE = {
    "tree_roots": [0, 2],
    "nodes_featureids": [0, 1, 2],
    "nodes_modes": np.array([0, 1, 0], np.uint8),
    "nodes_splits": np.array([0.5, 1.5, 2.5]),
    "nodes_truenodeids": [1, 0, 3],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falsenodeids": [2, 1, 4],
    "nodes_falseleafs": [1, 1, 1],
    "leaf_targetids": [0] * 5,
    "leaf_weights": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
    "n_targets": 1,
}
OPERATORS = {"TreeEnsembleRegressor": REGRESSOR, "TreeEnsembleClassifier": CLASSIFIER, "TreeEnsemble": ENSEMBLE}


def model_of(operator, attributes, width=4, domain="ai.onnx.ml"):
    """Return a model of one operator; numpy arrays become tensors."""
    made = {
        name: onnx.numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
        for name, value in attributes.items()
    }
    outputs = ["y", "z"] if operator == "TreeEnsembleClassifier" else ["y"]
    node = onnx.helper.make_node(operator, ["X"], outputs, domain=domain, **made)
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [node], "g", [info("X", onnx.TensorProto.FLOAT, [None, width])], [info("y", onnx.TensorProto.FLOAT, None)]
    )
    opsets = [onnx.helper.make_opsetid(domain, 5 if operator == "TreeEnsemble" else 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, producer_name="test")


def check(tmp_path, *arguments, **more):
    (tmp_path / "a.onnx").write_bytes(model_of(*arguments, **more).SerializeToString())
    return sc.check_file(tmp_path / "a.onnx")


@pytest.mark.parametrize("operator", OPERATORS)
def test_valid_ensembles_pass_with_their_sizes(operator, tmp_path):
    report = check(tmp_path, operator, OPERATORS[operator])
    assert report.ok, report
    sizes = (report.trees, report.nodes, report.leaves, report.features, report.outputs)
    assert sizes == (2, 8, 5, 4, 3 if operator == "TreeEnsembleClassifier" else 1)
    assert report.warnings == ()


def test_our_own_exports_pass_with_the_sizes_of_the_forest(tmp_path):
    X, y = load_iris(return_X_y=True)
    for model in (RandomForestClassifier(3, random_state=0), GradientBoostingRegressor(n_estimators=3)):
        save_model(model.fit(X, y), tmp_path / "a.onnx", force=True)
        report, forest = sc.check_file(tmp_path / "a.onnx"), sc.as_forest(model)
        assert report.ok, report
        assert (report.trees, report.nodes, report.leaves) == (forest.n_trees, forest.n_nodes, forest.n_leaves)


def changed(name, place, value):
    """Return an edit of one entry of an attribute."""

    def edit(attributes):
        array = attributes[name].copy() if isinstance(attributes[name], np.ndarray) else list(attributes[name])
        array[place] = value
        return {**attributes, name: array}

    return edit


def shortened(name):
    return lambda attributes: {**attributes, name: attributes[name][:-1]}


def without(name):
    return lambda attributes: {key: value for key, value in attributes.items() if key != name}


BY_IDS = {
    "a true child that does not exist": changed("nodes_truenodeids", 0, 1_000_000),
    "a negative false child": changed("nodes_falsenodeids", 0, -1),
    "a child in another tree only": changed("nodes_truenodeids", 5, 4),
    "a child that is its own parent": changed("nodes_truenodeids", 0, 0),
    "a cycle below the root": changed("nodes_truenodeids", 1, 1),
    "a cycle through the root": changed("nodes_truenodeids", 1, 0),
    "nodes that are not reached": changed("nodes_falsenodeids", 0, 1),
    "two nodes with one id": changed("nodes_nodeids", 1, 0),
    "a feature beyond the columns": changed("nodes_featureids", 0, 4),
    "a negative feature": changed("nodes_featureids", 0, -1),
    "an unknown mode": changed("nodes_modes", 0, "BRANCH"),
    "too few modes": shortened("nodes_modes"),
    "too few thresholds": shortened("nodes_values"),
    "too few children": shortened("nodes_truenodeids"),
    "no children": without("nodes_falsenodeids"),
    "no nodes": without("nodes_treeids"),
    "too few hit rates": lambda attributes: {**attributes, "nodes_hitrates": [1.0]},
    "too many missing values": lambda a: {**a, "nodes_missing_value_tracks_true": [0] * 9},
    "a base value that is NaN": lambda a: {**a, "base_values": [float("nan")]},
    "too many base values": lambda a: {**a, "base_values": [0.0] * 5},
}


@pytest.mark.parametrize("operator", ["TreeEnsembleRegressor", "TreeEnsembleClassifier"])
@pytest.mark.parametrize("name", BY_IDS)
def test_crafted_ensembles_by_ids_are_damaged(name, operator, tmp_path):
    report = check(tmp_path, operator, BY_IDS[name](OPERATORS[operator]))
    assert report.status == "damaged", report
    assert report.problem.endswith("Export the model again.")


OUTPUTS = {
    "an output beyond the outputs": ("{}_ids", 0, 5),
    "a negative output": ("{}_ids", 0, -1),
    "a value of a split": ("{}_nodeids", 0, 0),
    "a value of a node that does not exist": ("{}_nodeids", 0, 1_000_000),
    "a value of a tree that does not exist": ("{}_treeids", 0, -7),
    "a weight that is NaN": ("{}_weights", 0, float("nan")),
    "an infinite weight": ("{}_weights", 0, float("inf")),
}


@pytest.mark.parametrize(
    ("operator", "kind"), [("TreeEnsembleRegressor", "target"), ("TreeEnsembleClassifier", "class")]
)
@pytest.mark.parametrize("name", OUTPUTS)
def test_crafted_outputs_are_damaged(name, operator, kind, tmp_path):
    attribute, place, value = OUTPUTS[name]
    edit = changed(attribute.format(kind), place, value)
    assert check(tmp_path, operator, edit(OPERATORS[operator])).status == "damaged"
    assert check(tmp_path, operator, shortened(f"{kind}_weights")(OPERATORS[operator])).status == "damaged"


BY_POSITIONS = {
    "a node beyond the nodes": changed("nodes_truenodeids", 0, 3),
    "a leaf beyond the leaves": changed("nodes_truenodeids", 1, 5),
    "a negative node": changed("nodes_truenodeids", 0, -1),
    "a child that is its own parent": changed("nodes_truenodeids", 0, 0),
    "a root below another node": changed("nodes_truenodeids", 0, 2),
    "a root beyond the nodes": changed("tree_roots", 0, 3),
    "a negative root": changed("tree_roots", 0, -1),
    "a root twice": changed("tree_roots", 1, 0),
    "a node that is not reached": changed("tree_roots", 0, 1),
    "a mark of a leaf that is neither 0 nor 1": changed("nodes_trueleafs", 0, 2),
    "a mode beyond the modes": changed("nodes_modes", 0, 99),
    "a list of members that is missing": changed("nodes_modes", 0, 6),
    "an output beyond the outputs": changed("leaf_targetids", 0, 1),
    "a weight that is NaN": changed("leaf_weights", 0, float("nan")),
    "a feature beyond the columns": changed("nodes_featureids", 0, 4),
    "no roots": without("tree_roots"),
    "no number of outputs": without("n_targets"),
    **{f"too few entries of {name}": shortened(name) for name in ENSEMBLE if name not in ("n_targets", "tree_roots")},
}


@pytest.mark.parametrize("name", BY_POSITIONS)
def test_crafted_ensembles_by_positions_are_damaged(name, tmp_path):
    report = check(tmp_path, "TreeEnsemble", BY_POSITIONS[name](ENSEMBLE))
    assert report.status == "damaged", report


def test_ensembles_inside_other_operators_are_checked(tmp_path):
    inner = model_of("TreeEnsemble", changed("tree_roots", 0, 3)(ENSEMBLE)).graph
    outer = model_of("If", {"then_branch": inner, "else_branch": inner}, domain="")
    (tmp_path / "a.onnx").write_bytes(outer.SerializeToString())
    assert sc.check_file(tmp_path / "a.onnx").status == "damaged"


def test_tensors_of_a_wrong_size_are_damaged(tmp_path):
    model = model_of("TreeEnsemble", ENSEMBLE)
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "leaf_weights":
            attribute.t.dims[0] = 2**40
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    report = sc.check_file(tmp_path / "a.onnx")
    assert report.status == "damaged"
    assert "leaf_weights" in report.problem


def test_nan_thresholds_and_foreign_operators_are_warnings(tmp_path):
    report = check(tmp_path, "TreeEnsemble", changed("nodes_splits", 0, float("nan"))(ENSEMBLE))
    assert report.ok
    assert "1 thresholds are NaN" in report.warnings[0]
    report = check(tmp_path, "Custom", {}, domain="com.example")
    assert report.status == "unsupported"


def test_other_files_are_no_onnx_models(tmp_path):
    for content in (b"", b"\x00\x01", b"not a model"):
        (tmp_path / "a.onnx").write_bytes(content)
        assert sc.check_file(tmp_path / "a.onnx").status == "damaged"
