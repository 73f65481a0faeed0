"""prune() and prune_path(): the promises of the front door, and its errors."""

import logging
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import RECIPES, case
from tests.in_one_test import for_each

import secateur as sc
from secateur.api import prune_point
from secateur.data.rows import read_sample
from secateur.errors import NoisyChoiceWarning, NothingPrunedWarning, TrainingRowsWarning
from secateur.files.models import save_model
from secateur.libraries import adapt
from secateur.selection.evaluated_path import evaluated_path


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
    return RandomForestClassifier(30, random_state=0).fit(X_train, y_train), X_train, y_train, X_rest, y_rest


@pytest.mark.each_kind(RECIPES)
def test_every_model_can_be_pruned_to_half_its_nodes_and_predicts_what_we_say(name):
    c = case(name)
    before = sc.as_forest(c.model)
    if before.n_nodes < 3 * before.n_trees:
        return
    limit = max(before.n_nodes // 2, before.n_trees)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingRowsWarning)
        ours = prune_point(c.model, c.X, c.y, max_nodes=limit)
    small = ours.to_model()
    assert type(small) is type(c.model)
    assert sc.as_forest(small).n_nodes <= limit
    for method, expected in c.predictions(small, c.X_new).items():
        assert c.same(getattr(ours, method)(c.X_new), expected), method


def test_without_limits_an_overfitted_tree_does_not_become_a_constant():
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(random_state=0).fit(X[::2], y[::2])
    unpruned, constant = tree.score(X[1::2], y[1::2]), 0.0
    assert unpruned < constant
    assert sc.prune(tree, X[1::2], y[1::2]).get_n_leaves() > 1


def test_without_limits_the_loss_rises_by_at_most_one_per_cent(cancer):
    model, _, _, X, y = cancer
    chosen = prune_point(model, X, y, validation=(X, y))
    losses = chosen.summary()["loss"]
    assert losses["before"] == sc.prune_path(model, X, y).evaluate(X, y).table["loss"][0]
    assert losses["after"] <= 1.01 * losses["before"]
    assert chosen.row["n_nodes"] < sc.as_forest(model).n_nodes


@pytest.mark.parametrize(
    ("limit", "value", "column"),
    [
        ("max_nodes", 200, "n_nodes"),
        ("max_leaves", 100, "n_leaves"),
        ("max_depth", 3, "depth"),
        ("max_features", 5, "n_features"),
        ("max_cost", 150.5, "cost"),
    ],
)
def test_limits_are_obeyed(cancer, limit, value, column):
    model, _, _, X, y = cancer
    cost = "nodes" if limit == "max_cost" else None
    assert prune_point(model, X, y, cost=cost, **{limit: value}).row[column] <= value


def test_a_path_has_a_point_that_uses_up_the_limit(cancer):
    model, _, _, X, y = cancer
    sizes = evaluated_path(model, X, y, max_nodes=123).table["n_nodes"][1:]
    assert sizes.max() in (122, 123)


def test_the_summary_says_what_was_gained_and_on_which_rows(cancer):
    import pickle

    model, _, _, X, y = cancer
    summary = prune_point(model, X, y, max_nodes=200, validation=0.4).summary()
    small = sc.prune(model, X, y, max_nodes=200, validation=0.4)
    assert summary["before"]["nodes"] == sum(t.tree_.node_count for t in model.estimators_)
    assert summary["after"]["nodes"] == sum(t.tree_.node_count for t in small.estimators_)
    assert summary["after"]["leaves"] == sum(t.get_n_leaves() for t in small.estimators_)
    assert summary["after"]["depth"] == max(t.get_depth() for t in small.estimators_)
    assert summary["after"]["features"] == np.count_nonzero(small.feature_importances_)
    assert summary["after"]["bytes"] == pytest.approx(len(pickle.dumps(small, protocol=5)), rel=0.02)
    assert summary["after"]["bytes"] < summary["before"]["bytes"]
    assert 0 <= summary["changed"] <= 1
    assert summary["rows"]["chosen_on_rows"] == round(0.4 * len(X))
    assert "40 %" in summary["rows"]["chosen_on"]


def test_training_rows_are_noticed_and_other_rows_are_not(cancer):
    model, X_train, y_train, X, y = cancer
    for validation in (0.3, None):
        with pytest.warns(TrainingRowsWarning, match="rows the model was trained on"):
            sc.prune(model, X_train, y_train, max_nodes=300, validation=validation)
    tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
    with pytest.warns(TrainingRowsWarning, match="rows the model was trained on"):
        sc.prune(tree, X_train, y_train)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingRowsWarning)
        sc.prune(model, X, y, max_nodes=300)
        sc.prune(model, X_train, y_train, validation=(X, y), max_nodes=300)
        chosen_on = prune_point(model, X_train, y_train, max_nodes=300).summary()["rows"]["chosen_on"]
    assert "refitted clones" in chosen_on


def sent_elsewhere(X):
    """Return whether training sent rows other ways than prediction does: scikit-learn 1.6, where values are missing."""
    return sklearn.__version__.startswith("1.6.") and (np.asarray(X, object) != np.asarray(X, object)).any()


@pytest.mark.parametrize("name", [name for name in RECIPES if "weight" not in RECIPES[name].args[2]])
def test_training_rows_are_recognised(name):
    c = case(name)
    adapter = adapt(c.model)
    no_record = name in ("adaboost regressor", "tree classifier, one leaf")  # draws rows; nothing to tell rows by
    if adapter.supervised and not no_record and not sent_elsewhere(c.X):
        assert adapter.grown_on(read_sample(adapter, c.X, c.y).leaves)
    shuffled = np.random.default_rng(0).permutation(len(c.X))
    X = c.X.iloc[shuffled] if hasattr(c.X, "iloc") else c.X[shuffled]
    if adapter.in_bag(len(X)) is not None and (adapter.in_bag(len(X)) != 1).any():
        assert not adapter.grown_on(read_sample(adapter, X, np.asarray(c.y)[shuffled]).leaves)
    assert not adapter.grown_on(read_sample(adapter, c.X_new[: len(c.X) - 1], c.y[:-1]).leaves)


def test_pruning_that_changes_nothing_says_so():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(n_estimators=3, max_depth=1, random_state=0).fit(X[::2], y[::2])
    with pytest.warns(NothingPrunedWarning, match="Nothing was pruned"):
        small = sc.prune(model, X[1::2], y[1::2], solver="weakest_link", max_loss_increase=0.0)
    assert np.array_equal(small.predict(X), model.predict(X))


def test_an_isolation_forest_needs_no_target():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = IsolationForest(n_estimators=20, random_state=0).fit(X)
    small = sc.prune(model, X, max_nodes=400)
    assert np.corrcoef(small.score_samples(X), model.score_samples(X))[0, 1] > 0.9


def test_a_forest_goes_in_and_comes_out(cancer):
    model, _, _, X, y = cancer
    forest = sc.as_forest(model)
    assert sc.as_forest(forest) is forest
    small = sc.prune(forest, X, y, max_nodes=200)
    assert isinstance(small, sc.Forest)
    assert small.n_nodes <= 200


def test_the_split_is_repeatable_and_follows_the_seed(cancer):
    model, _, _, X, y = cancer
    rows = [prune_point(model, X, y, random_state=seed, max_nodes=300).row["loss"] for seed in (0, 0, 1)]
    assert rows[0] == rows[1] != rows[2]


def test_progress_is_called_to_the_end(cancer):
    model, _, _, X, y = cancer
    calls = []
    sc.prune(model, X, y, max_nodes=300, progress=lambda *call: calls.append(call))
    assert calls[-1][0] == calls[-1][1]
    assert all(0 < done <= total for done, total, _ in calls)
    assert {what for *_, what in calls} == {"pruning", "validating"}


def test_a_library_does_not_print(cancer, capsys, caplog):
    model, _, _, X, y = cancer
    with caplog.at_level(logging.WARNING):
        sc.prune(model, X, y, max_nodes=300)
    assert capsys.readouterr() == ("", "")


def test_weights_of_zero_are_rows_that_are_not_there(cancer):
    model, _, _, X, y = cancer
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    some = sc.prune_path(model, X[weight > 0], y[weight > 0]).evaluate(X[weight > 0], y[weight > 0])
    weighted = sc.prune_path(model, X, y, sample_weight=weight).evaluate(X, y, sample_weight=weight)
    for name in ("n_nodes", "penalty", "loss", "changed"):
        np.testing.assert_allclose(some.table[name], weighted.table[name], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros((5, 3))}, "3 features|30 features"),
        ({"X": np.zeros((0, 30)), "y": []}, "no rows"),
        ({"X": np.full((5, 30), "a")}, "cannot be read as numbers"),
        ({"X": np.zeros(30)}, "shape"),
        ({"y": None}, "y is missing"),
        ({"y": [0, 1, 0]}, "5 rows, but y has 3"),
        ({"y": [0, 1, 2, 0, 1]}, r"labels that the model was not trained on: \[2\]"),
        ({"y": [0, 1, np.nan, 0, 1]}, "missing values"),
        ({"y": np.zeros((5, 2))}, "shape"),
        ({"sample_weight": np.ones(4)}, "one weight per row"),
        ({"sample_weight": -np.ones(5)}, "negative values"),
        ({"sample_weight": np.zeros(5)}, "sums to zero"),
        ({"solver": "magic"}, "weakest_link"),
        ({"cost": "gold"}, "nodes, leaves, depth"),
        ({"loss": "regret"}, "brier"),
        ({"loss": "squared_error"}, "this is a classification model"),
        ({"validation": 1.5}, "a fraction between 0 and 1"),
        ({"validation": "maybe"}, "a fraction such as 0.25"),
        ({"max_nodes": 3, "solver": "weakest_link"}, "nearest"),
    ],
)
def test_bad_input_gets_a_clear_error(cancer, change, message):
    model, _, _, X, y = cancer
    arguments = {"X": X[:5], "y": y[:5], "validation": (X[5:], y[5:]), **change}
    with pytest.raises(ValueError, match=message):
        sc.prune(model, arguments.pop("X"), arguments.pop("y"), **arguments)


def test_one_row_cannot_be_split(cancer):
    model, _, _, X, y = cancer
    with pytest.raises(ValueError, match="cannot be split"):
        sc.prune(model, X[:1], y[:1])
    with pytest.raises(ValueError, match=r"chosen by 1 row\(s\): the rows passed"):
        sc.prune(model, X[:1], y[:1], validation=None, max_nodes=100)
    sc.prune(model, X[:1], y[:1], validation=(X, y), max_nodes=100)


def test_a_target_with_missing_numbers_is_refused():
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    y = y.copy()
    y[3] = np.nan
    with pytest.raises(ValueError, match="1 missing or infinite"):
        sc.prune_path(model, X, y)
    with pytest.raises(ValueError, match="y cannot be converted to numbers"):
        sc.prune_path(model, X, np.array(["a"] * len(X)))


def test_pruned_refuses_what_its_model_cannot_do(cancer):
    model, _, _, X, y = cancer
    with pytest.raises(ValueError, match="not an outlier detector"):
        sc.prune_path(model, X, y)[0].score_samples(X)
    c = case("tree regressor")
    with pytest.raises(ValueError, match="no probabilities"):
        sc.prune_path(c.model, c.X, c.y)[0].predict_proba(c.X)


def test_points_of_a_path_can_be_counted_from_the_end():
    c = case("tree classifier")
    path = sc.prune_path(c.model, c.X, c.y)
    assert path[-1].row["n_nodes"] == 1
    assert [p.row["n_nodes"] for p in path] == path.table["n_nodes"].tolist()
    with pytest.raises(IndexError, match="has points 0 to"):
        path[len(path)]


def test_thinning_keeps_the_ends_and_the_limits():
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(50, random_state=0).fit(X, y)
    path = sc.prune_path(model, X, y)
    thin = path.thin(20, max_nodes=600)
    assert len(thin) <= 20 < len(path)
    nodes = path.table["n_nodes"]
    assert thin.table["n_nodes"][0] == nodes[0]
    assert thin.table["n_nodes"][1] == nodes[nodes <= 600].max()
    assert thin.table["n_nodes"][-1] == nodes[-1]


def test_the_table_becomes_a_data_frame():
    pytest.importorskip("pandas")
    c = case("tree classifier")
    path = sc.prune_path(c.model, c.X, c.y)
    assert list(path.to_pandas().columns) == list(path.table)


def test_labels_may_be_lists_and_frames():
    c = case("tree classifier, entropy, strings")
    pd = pytest.importorskip("pandas")
    expected = sc.prune_path(c.model, c.X, c.y).table["penalty"]
    for y in (list(c.y), pd.Series(c.y), pd.Categorical(c.y), c.y.astype(object)):
        assert np.array_equal(sc.prune_path(c.model, c.X, y).table["penalty"], expected)


def test_a_tree_that_is_one_leaf_has_a_path_of_one_point():
    X = np.zeros((4, 1))
    tree = DecisionTreeClassifier().fit(X, [0, 1, 0, 1])
    path = sc.prune_path(tree, X, [0, 1, 0, 1])
    assert len(path) == 1
    assert path.table["penalty"].tolist() == [0.0]


@pytest.mark.parametrize("solver", ["auto", "weakest_link"])
def test_a_limit_on_bytes_is_that_of_the_pickled_model(cancer, solver):
    import pickle

    model, _, _, X, y = cancer
    for limit in (60_000, 15_000):
        small = sc.prune(model, X, y, solver=solver, max_bytes=limit)
        assert len(pickle.dumps(small, protocol=5)) <= limit
    path = sc.prune_path(model, X, y, solver=solver).with_bytes()
    for point in np.linspace(1, len(path) - 1, 5).astype(int):
        actual = len(pickle.dumps(path[int(point)].to_model(), protocol=5))
        assert path.table["bytes"][point] == pytest.approx(actual, rel=0.2)
    with pytest.raises(ValueError, match="max_bytes=100"):
        sc.prune(model, X, y, solver=solver, max_bytes=100)


@pytest.mark.parametrize("suffix", [".skops", ".joblib", ".onnx", ".secateur"])
def test_a_limit_on_bytes_is_that_of_the_files_named(cancer, suffix, tmp_path):
    model, _, _, X, y = cancer
    limit = save_model(model, tmp_path / f"whole{suffix}").stat().st_size // 3
    chosen = prune_point(model, X, y, max_bytes=limit, saved_as=suffix)
    size, summary = chosen.save(tmp_path / f"small{suffix}").stat().st_size, chosen.summary()
    assert limit / 2 < size <= limit
    assert summary["after"]["bytes"] == size
    assert summary["before"]["bytes"] == (tmp_path / f"whole{suffix}").stat().st_size
    assert summary["saved_as"] == suffix


def test_files_of_another_library_have_no_size(cancer):
    model, _, _, X, y = cancer
    with pytest.raises(ValueError, match="xgboost"):
        sc.prune(model, X, y, max_bytes=1000, saved_as=".ubj")


def test_an_ensemble_uses_a_node_budget_up(cancer):
    model, _, _, X, y = cancer
    for budget in (60, 200):
        chosen = prune_point(model, X, y, max_nodes=budget)
        assert 0.9 * budget <= chosen.row["n_nodes"] <= budget


def test_a_difference_too_small_for_the_rows_is_warned_of(cancer):
    model, X_train, y_train, X, y = cancer
    with pytest.warns(NothingPrunedWarning, match=r"40 rows.*cannot tell that from luck. Pass about \d\d+ validation"):
        sc.prune(model, X_train, y_train, validation=(X[20:60], y[20:60]), max_loss_increase=0.02)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NoisyChoiceWarning)
        sc.prune(model, X_train, y_train, validation=(X, y), max_loss_increase=0.5)
        sc.prune(model, X_train, y_train, validation=(X[:40], y[:40]), max_nodes=50)


@pytest.mark.parametrize("model", [AdaBoostClassifier(n_estimators=4), IsolationForest(n_estimators=4, random_state=0)])
@pytest.mark.parametrize("cost", [None, sc.costs.FeatureCost()])
def test_models_that_keep_their_values_lose_whole_trees_within_a_limit_of_trees(model, cost):
    X, y = load_iris(return_X_y=True)
    model.fit(X, y > 1)
    found = sc.prune(model, X, y > 1, max_trees=2, cost=cost)
    assert 1 <= len(found.estimators_) <= 2
    # Without such a limit splits are cut.
    assert sc.prune_path(model, X, y > 1).solver == "WeakestLink()"


@for_each(
    "limits",
    [
        {},
        {"max_nodes": 60},
        {"max_trees": 8},
        {"max_bytes": 30_000},
        {"max_loss_increase": 0.2},
        {"max_loss_increase": 0.4, "max_nodes": 200},
        {"max_changed": 0.05},
        {"scoring": "accuracy", "max_score_drop": 0.02},
        {"solver": "weakest_link"},
        {"solver": "weakest_link", "max_loss_increase": 0.3, "validation": "cv"},
    ],
)
def test_the_path_of_a_pruned_selects_the_point_and_the_model_that_prune_returns(cancer, limits):
    model, X_train, y_train, X, y = cancer
    rows = (X_train, y_train) if limits.get("validation") == "cv" else (X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = sc.prune(model, *rows, **limits)
        pruned = sc.prune(model, *rows, **limits, return_pruned=True)
    of_path = {name: limit for name, limit in limits.items() if name.startswith("max")}
    again = pruned.path.select(**of_path)
    assert again.point == pruned.point
    assert again.path is pruned.path
    assert len(pruned.path) > 2 or pruned.point == 0
    assert sc.as_forest(small).n_nodes == sc.as_forest(pruned.model).n_nodes == pruned.row["n_nodes"]
    for other in (pruned.model, again.model):
        assert np.array_equal(small.predict_proba(X), other.predict_proba(X))
    assert pruned.model is pruned.model


def test_a_path_evaluated_on_the_validation_rows_selects_as_prune_does(cancer):
    model, X_train, y_train, X, y = cancer
    solver = "weakest_link"
    for limits in ({}, {"max_nodes": 300}, {"max_loss_increase": 0.3}):
        by_path = sc.prune_path(model, X_train, y_train, solver=solver).thin(256).evaluate(X, y).select(**limits)
        by_prune = sc.prune(model, X_train, y_train, solver=solver, validation=(X, y), return_pruned=True, **limits)
        assert np.array_equal(by_path.decision.keep, by_prune.decision.keep), limits


def test_a_pruned_writes_a_report_that_opens_at_its_point(cancer, tmp_path):
    model, _, _, X, y = cancer
    pruned = sc.prune(model, X, y, max_nodes=60, return_pruned=True)
    page = pruned.report(tmp_path / "report.html").read_text()
    assert f'"point": {pruned.point}' in page or f'"point":{pruned.point}' in page


def test_a_log_line_says_what_was_chosen_and_on_which_rows(cancer, caplog):
    model, _, _, X, y = cancer
    with caplog.at_level(logging.INFO, "secateur.prune"):
        sc.prune(model, X[:200], y[:200], validation=(X[200:], y[200:]), max_nodes=60)
    (record,) = (record for record in caplog.records if record.name == "secateur.prune")
    for part in (f"of {sc.as_forest(model).n_nodes} nodes", "max_nodes=60", "on 85 rows: the validation rows"):
        assert part in record.getMessage()
