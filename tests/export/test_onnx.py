"""Test ONNX files with onnxruntime as the oracle: raw predictions agree bit for bit, links to the last digits."""

import builtins
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tests.cases import ALL_RECIPES, case
from tests.strategies import examples, forests, random_forest, random_keep, random_rows

from secateur import Decision
from secateur.export.onnx import to_onnx, why_not
from secateur.forest import Categories, Forest
from secateur.forest.links import LINKS
from secateur.forest.routing import raw_scores, route
from secateur.libraries import adapt
from secateur.libraries.adapter import ForestAdapter

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run(model, X):
    """Return the outputs of onnxruntime by name; a single thread adds in the order of the trees."""
    data = to_onnx(adapt(model))
    onnx.checker.check_model(data, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(data, options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": np.asarray(X, np.float64)}), strict=True))


def edges(forest, X):
    """Return rows to which a threshold was added, one for each split."""
    split = np.flatnonzero(forest.is_split)
    rows = np.resize(X, (len(split), X.shape[1])).copy()
    rows[np.arange(len(split)), forest.feature[split]] = forest.threshold[split]
    return np.vstack([X, rows])


def our_raw(forest, X):
    return raw_scores(forest, route(forest, X))


@given(forests(), st.integers(0, 2**32 - 1))
@examples(150)
def test_raw_predictions_equal_ours_bit_for_bit(forest, seed):
    rng = np.random.default_rng(seed)
    zero_is_missing = tuple(np.flatnonzero(rng.random(forest.n_features) < 0.3).tolist())
    forest = replace(forest, link="identity", n_classes=(), zero_is_missing=zero_is_missing)
    X = edges(forest, random_rows(rng, 20, forest.n_features))
    X[rng.random(X.shape) < 0.2] = rng.choice([1e300, -1e300, 2.0**40, -0.5, 0.5, 1.5, -1.5, -0.0, 1e-36])
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


@pytest.mark.parametrize("other_left", [False, True])
def test_a_split_without_listed_categories_is_exported(other_left):
    tree = DecisionTreeRegressor(max_leaf_nodes=2).fit([[0.0], [1.0]], [0.0, 1.0])
    forest = adapt(tree).forest
    lists = Categories(np.array([0, -1, -1], np.int32), np.array([0, 0]), other_left=np.array([other_left]))
    forest = replace(forest, categories=lists)
    X = np.array([[0.0], [1.0], [5.0], [np.nan]])
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


@pytest.mark.contracts
@pytest.mark.parametrize("name", ALL_RECIPES)
def test_every_model_and_its_prunings_predict_the_same_or_are_refused(name, request):
    adapter = adapt(case(name).model)
    check_onnx(case(name), adapter)
    for seed in (1, 2) if request.config.getoption("full") else (1,):
        keep = random_keep(np.random.default_rng(seed), adapter.forest)
        check_onnx(case(name), adapt(adapter.write(Decision(keep))))


def check_onnx(fitted, adapter):
    """Assert that ONNX Runtime predicts as the model does, or that writing is refused with a reason."""
    if why_not(adapter):
        with pytest.raises(ValueError, match=r"cannot be written as \.onnx: .*(Save|Train)"):
            to_onnx(adapter)
        return
    forest = adapter.forest
    X = edges(forest, adapter.rows(fitted.X_new).astype(np.float64))
    found, raw = run(adapter, X), our_raw(forest, adapter.rows(X))
    means = forest.response.mean(raw, forest.n_classes)
    tolerance = {"rtol": 1e-12} if forest.sum_dtype == "float64" else {"rtol": 1e-5, "atol": 1e-6}
    if not forest.n_classes:
        np.testing.assert_allclose(found["variable"], means[0], **tolerance)
        return
    labels = adapter.decode(forest.response.label(raw, forest.n_classes)).reshape(len(X), -1)
    answer = fitted.predictions(adapter.model, fitted.X_new).get("predict")
    if answer is not None and answer.dtype == labels.dtype and answer.dtype.kind != "f":
        assert np.array_equal(answer.reshape(len(answer), -1), labels[: len(answer)])
    for target, mean in enumerate(means):
        suffix = "" if len(means) == 1 else f"_{target}"
        np.testing.assert_allclose(found[f"probabilities{suffix}"], mean, **tolerance)
        sure = forest.sum_dtype == "float64" or np.abs(raw).min(axis=1) > 1e-5
        assert (found[f"label{suffix}"] == labels[:, target])[sure].all()


NUMBERS = {"identity", "log", "log_c", "anomaly", "sigmoid", "softplus", "signed_square"}
ONE_SUM = NUMBERS | {"logit", "logit_tie_up", "half_logit", "logit:0.7"}


@pytest.mark.parametrize("link", [*LINKS, "logit:0.7", "one_vs_all:2.5"])
def test_every_link(link):
    rng = np.random.default_rng(0)
    outputs = 1 if link in ONE_SUM else 3
    n_classes = () if link in NUMBERS else (max(outputs, 2),)
    forest = random_forest(rng, n_trees=6, link="softmax" if outputs > 1 else "identity", n_outputs=outputs)
    forest = replace(forest, link=link, n_classes=n_classes)
    X = random_rows(rng, 40, forest.n_features)
    found, raw = run(forest, X), our_raw(forest, X)
    mean = forest.response.mean(raw, n_classes)[0]
    np.testing.assert_allclose(found["probabilities" if n_classes else "variable"], mean, rtol=1e-13)
    if n_classes:
        assert np.array_equal(found["label"], forest.response.label(raw, n_classes)[:, 0])


@pytest.mark.parametrize(("link", "expected"), [("logit", 0), ("logit_tie_up", 1), ("half_logit", 1)])
def test_a_raw_prediction_of_zero_gives_the_label_of_the_library(link, expected):
    forest = replace(leaf_forest([0.0], base=[0.0]), link=link, n_classes=(2,))
    assert run(forest, np.zeros((2, 1)))["label"].tolist() == [expected, expected]


def leaf_forest(values, base, n_features=1):
    """Return a forest of trees that are one leaf each."""
    n = len(values)
    return Forest(
        tree_start=np.arange(n + 1),
        right=np.full(n, -1, np.int32),
        feature=np.full(n, -1, np.int32),
        threshold=np.zeros(n),
        default_left=np.zeros(n, bool),
        value=np.array(values, float).reshape(n, 1),
        weight=np.ones(n),
        tree_weight=np.ones(n),
        tree_output=np.zeros(n, np.int32) if len(base) > 1 else np.full(n, -1, np.int32),
        base=np.array(base, float),
        link="identity",
        n_features=n_features,
    )


@pytest.mark.parametrize("n_features", [0, 1, 4])
@pytest.mark.parametrize("values", [[], [2.5], [0.1, 0.2, 0.3]])
@pytest.mark.parametrize("base", [[0.0], [7.0, -1.0]])
def test_forests_without_a_split_or_a_tree_or_a_feature(n_features, values, base):
    forest = leaf_forest(values, base, n_features)
    X = np.full((3, n_features), np.nan)
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


def two_splits(lone_first):
    """Return trees whose roots have a leaf on one side and a split on the other, and trees that are leaves, mixed."""
    right_heavy, left_heavy = [2, -1, 4, -1, -1], [4, 3, -1, -1, -1]
    trees = [[-1]] * lone_first + [right_heavy, right_heavy, left_heavy, [-1], right_heavy, left_heavy]
    start = np.concatenate([[0], np.cumsum([len(t) for t in trees])])
    right = np.concatenate([[r + s if r >= 0 else -1 for r in t] for t, s in zip(trees, start[:-1], strict=True)])
    n = len(right)
    forest = leaf_forest(np.arange(n) / 7, [0.25], 2)
    return replace(
        forest,
        tree_start=start,
        right=right.astype(np.int32),
        feature=np.where(right >= 0, np.arange(n) % 2, -1).astype(np.int32),
        tree_weight=np.linspace(0.5, 1.5, len(trees)),
        tree_output=np.full(len(trees), -1, np.int32),
    )


@pytest.mark.parametrize("lone_first", range(4))
def test_a_leaf_and_a_node_with_the_same_index_below_a_root_are_distinguished(lone_first):
    forest = two_splits(lone_first)
    X = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


def test_outputs_without_trees_equal_their_base():
    forest = replace(two_splits(0), base=np.array([1.0, 2.0, 3.0]), tree_output=np.ones(6, np.int32))
    found = run(forest, np.zeros((2, 2)))["variable"]
    assert np.array_equal(found, our_raw(forest, np.zeros((2, 2))))
    assert np.array_equal(found[:, [0, 2]], [[1.0, 3.0]] * 2)


def test_many_outputs_and_trees_are_added_in_blocks_in_order():
    rng = np.random.default_rng(3)
    forest = random_forest(rng, n_trees=150, max_splits=3, n_outputs=30)
    X = random_rows(rng, 5, forest.n_features)
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


def test_a_mean_over_trees_without_rows_is_one():
    forest = replace(leaf_forest([1.0, 2.0], [0.0]), aggregation="mean", unit=0.0, divisor=0.0, link="anomaly")
    X = np.zeros((2, 1))
    assert np.array_equal(run(forest, X)["variable"], -0.5 * np.ones((2, 1)))


def test_categories_of_any_size_and_sign():
    forest = replace(two_splits(1), n_features=2)
    nodes = np.flatnonzero(forest.is_split)
    row = np.full(forest.n_nodes, -1, np.int32)
    row[nodes] = np.arange(len(nodes)) % 3
    categories = Categories(
        row,
        np.array([0, 3, 5, 5]),
        np.array([-5, 0, 2, -(2**31), 2**31 - 1], np.int32),
        np.array([True, False, True, True, False]),
        np.array([False, True, True]),
    )
    forest = replace(forest, categories=categories)
    odd = [-5, 0, 2, 2.9, -0.9, -5.9, 2**31 - 1, -(2**31), 2.0**31, 2.0**63, 1e300, np.inf, -np.inf, np.nan, 7]
    X = np.array([[a, b] for a in odd for b in odd], float)
    assert np.array_equal(run(forest, X)["variable"], our_raw(forest, X))


def test_narrow_input_is_rounded_as_the_library_rounds_it():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0])
    Z = np.vstack([X, edges(adapt(model).forest, X), [[1e300, -1e300]]])
    Z = np.clip(Z, -3e38, 3e38)
    assert np.array_equal(run(model, Z)["variable"][:, 0], model.predict(Z))


@pytest.mark.parametrize("labels", [["no", "yes", "perhaps"], [3, 5, 9], [1.0, 2.0, 4.0]])
def test_labels_equal_those_of_the_model(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.array(labels)[rng.integers(0, 3, 90)]
    model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
    found = run(model, X)
    assert found["label"].tolist() == model.predict(X).tolist()
    assert np.array_equal(found["probabilities"], model.predict_proba(X))


def test_bool_labels_stay_bool():
    X = np.random.default_rng(0).normal(size=(90, 3))
    model = GradientBoostingClassifier(n_estimators=3).fit(X, X[:, 0] > 0)
    assert run(model, X)["label"].dtype == bool
    assert np.array_equal(run(model, X)["label"], model.predict(X))


def test_feature_names_are_in_the_file():
    forest = replace(two_splits(0), feature_names=("size", "år"))
    model = onnx.load_model_from_string(to_onnx(ForestAdapter(forest)))
    assert json.loads({entry.key: entry.value for entry in model.metadata_props}["feature_names"]) == ["size", "år"]


def test_single_rows_are_predicted_like_many():
    fitted = case("random forest classifier")
    X = np.asarray(fitted.X_new)
    many = run(fitted.model, X)["probabilities"]
    assert np.array_equal(np.vstack([run(fitted.model, X[i : i + 1])["probabilities"] for i in range(3)]), many[:3])


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=2)), "transforms its columns"),
        (GradientBoostingClassifier(init=LogisticRegression(), n_estimators=2), "predictions of another model"),
    ],
)
def test_models_that_a_graph_cannot_represent_are_refused(model, reason):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match=reason):
        to_onnx(adapt(model.fit(X, X[:, 0] > 0)))


def test_without_onnx_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "onnx":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"secateur\[onnx\]"):
        to_onnx(ForestAdapter(leaf_forest([1.0], [0.0])))
