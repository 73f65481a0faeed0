"""Test XGBoost beyond the contracts: rounds, best iteration, wrapper attributes, kinds of rows, refusals."""

import copy
import json
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xgboost as xgb
from tests.cases import case
from tests.cases.xgboost import QUICK, RECIPES, SMALL, frame
from tests.libraries.boosters import raw_of, trees_of
from tests.strategies import raised_keep, random_keep

from secateur import Decision, prune_path
from secateur.data.rows import read_sample
from secateur.libraries import adapt
from secateur.libraries.xgboost import dump
from secateur.libraries.xgboost.adapter import _with_trees
from secateur.libraries.xgboost.saved_model import booster_part
from secateur.libraries.xgboost.trees import read_trees

knows_categories = pytest.mark.skipif(
    int(xgb.__version__.partition(".")[0]) < 3,
    reason="XGBoost 2 keeps no names of categories",
)


@pytest.mark.parametrize("name", ["xgboost_regressor_exact", "xgboost_codes", "xgboost_booster_dart"])
@pytest.mark.parametrize("cut", [random_keep, raised_keep])
def test_no_node_is_an_orphan_and_siblings_stay_together(name, cut):
    adapter = adapt(case(name).model)
    small = adapter.write(Decision(cut(np.random.default_rng(0), adapter.forest)))
    for tree in trees_of(small)["trees"]:
        left, right, parents = (np.array(tree[k]) for k in ("left_children", "right_children", "parents"))
        split = np.flatnonzero(left != -1)
        assert tree["tree_param"]["num_nodes"] == str(len(left))
        assert tree["tree_param"]["num_deleted"] == "0"
        assert sorted([0, *left[split], *right[split]]) == list(range(len(left)))
        assert np.array_equal(right[split], left[split] + 1)
        assert np.array_equal(parents[left[split]], split)
        assert parents[0] == 2**31 - 1


def without_trees(forest, gone):
    keep = np.ones(forest.n_nodes, bool)
    for tree in gone:
        keep[forest.tree_start[tree] : forest.tree_start[tree + 1]] = False
    return Decision(keep)


@pytest.mark.parametrize("name", ["xgboost_classifier_three", "xgboost_rounds_of_trees"])
def test_all_outputs_keep_as_many_trees_in_all_rounds(name):
    adapter, X = adapt(case(name).model), case(name).X_new
    per_round = adapter.trees.rounds[1]
    decision = without_trees(adapter.forest, [1, *range(per_round, 2 * per_round), 2 * per_round])
    small = adapter.write(decision)
    model = trees_of(small)
    rounds = model["iteration_indptr"]
    assert len(rounds) == len(adapter.trees.rounds) - 1
    per_output = {n for first, stop in pairwise(rounds) for n in np.bincount(model["tree_info"][first:stop])}
    assert per_output == {int(model["gbtree_model_param"]["num_parallel_tree"])}
    assert model["gbtree_model_param"]["num_trees"] == str(len(model["trees"]))
    assert [tree["id"] for tree in model["trees"]] == list(range(len(model["trees"])))
    assert np.array_equal(small.predict(X, output_margin=True), raw_of(adapter, X, decision))
    first = small.get_booster()[:1].predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(first, small.predict(X, output_margin=True, iteration_range=(0, 1)))


def test_a_round_that_keeps_fewer_trees_than_another_is_filled_up_to_it():
    adapter, X = adapt(case("xgboost_rounds_of_trees").model), case("xgboost_rounds_of_trees").X_new
    decision = without_trees(adapter.forest, [0, 2, 4])  # one of the two trees of each output in the first round
    small = adapter.write(decision)
    assert trees_of(small)["iteration_indptr"] == trees_of(adapter.model)["iteration_indptr"]
    assert np.array_equal(small.predict(X, output_margin=True), raw_of(adapter, X, decision))


def test_dropped_trees_of_a_single_output_are_removed():
    adapter = adapt(case("xgboost_forest_regressor").model)
    small = adapter.write(without_trees(adapter.forest, [0, 2, 3]))
    assert trees_of(small)["iteration_indptr"] == [0, 3]
    assert trees_of(small)["gbtree_model_param"]["num_parallel_tree"] == "3"
    assert len(trees_of(small)["trees"]) == 3


@pytest.mark.parametrize("name", list(RECIPES))
def test_without_trees_the_base_is_predicted(name):
    adapter, X = adapt(case(name).model), case(name).X_new
    decision = Decision(np.zeros(adapter.forest.n_nodes, bool))
    found = case(name).predictions(adapter.write(decision), X)["raw"]
    assert np.array_equal(found, np.tile(adapter.forest.base.astype(np.float32), (len(X), 1)))


@pytest.mark.parametrize("name", ["xgboost_classifier_stopped", "xgboost_regressor_stopped"])
def test_predictions_use_the_rounds_up_to_the_best_one_before_and_after(name):
    model, X = case(name).model, case(name).X_new
    adapter = adapt(model)
    per_round = adapter.trees.rounds[1]
    assert adapter.forest.n_trees == (model.best_iteration + 1) * per_round < len(adapter.trees.output)
    small = adapter.write(without_trees(adapter.forest, range(per_round)))
    assert small.best_iteration == model.best_iteration - 1
    assert small.get_booster().num_boosted_rounds() == small.best_iteration + 1
    everything_used = small.get_booster().predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(small.predict(X, output_margin=True), everything_used)


def test_a_booster_uses_all_rounds_and_its_best_one_moves():
    model = case("xgboost_regressor_stopped").model
    booster = adapt(copy.deepcopy(model.get_booster()))
    assert booster.forest.n_trees == model.get_booster().num_boosted_rounds()
    last = booster.forest.n_trees - 1
    assert booster.write(without_trees(booster.forest, [0, last])).best_iteration == model.best_iteration - 1
    early = booster.write(without_trees(booster.forest, range(model.best_iteration + 1)))
    assert early.attr("best_iteration") is None


def test_a_pruned_wrapper_keeps_attributes():
    X, y = frame()
    model = xgb.XGBClassifier(**SMALL, enable_categorical=True, eval_metric="mlogloss")
    model.fit(X, y, eval_set=[(X, y)], verbose=False)
    adapter = adapt(model)
    small = adapter.write(Decision(random_keep(np.random.default_rng(0), adapter.forest)))
    assert small.get_params() == model.get_params()
    assert small.evals_result() == model.evals_result()
    assert np.array_equal(small.classes_, model.classes_)
    assert small.n_features_in_ == model.n_features_in_
    assert list(small.feature_names_in_) == list(model.feature_names_in_)
    assert small.get_booster().feature_types == model.get_booster().feature_types
    assert json.loads(small.get_booster().save_config())["learner"]["learner_train_param"]


@pytest.mark.parametrize("name", ["xgboost_classifier_stopped", "xgboost_categories", "xgboost_regressor_dart"])
def test_saving_and_loading_the_pruned_wrapper_changes_nothing(name, tmp_path):
    adapter, X = adapt(case(name).model), case(name).X_new
    small = adapter.write(Decision(random_keep(np.random.default_rng(0), adapter.forest)))
    small.save_model(tmp_path / "small.ubj")
    again = type(small)()
    again.load_model(tmp_path / "small.ubj")
    assert np.array_equal(again.predict(X), small.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(small)).predict(X), small.predict(X))


def test_a_pruned_booster_can_be_trained_further():
    X, y = case("xgboost_booster_softprob").X, case("xgboost_booster_softprob").y
    adapter = adapt(case("xgboost_booster_softprob").model)
    small = adapter.write(without_trees(adapter.forest, [1, 3, 4, 5]))
    more = xgb.train(QUICK | {"objective": "multi:softprob", "num_class": 3}, xgb.DMatrix(X, y), 2, xgb_model=small)
    rounds = small.num_boosted_rounds()
    assert more.num_boosted_rounds() == rounds + 2
    matrix = xgb.DMatrix(X)
    assert np.array_equal(more.predict(matrix, iteration_range=(0, rounds)), small.predict(matrix))


def test_entries_not_stored_in_a_sparse_matrix_are_missing():
    model = case("xgboost_regressor").model
    X = scipy.sparse.random(40, 6, 0.5, "csr", random_state=0, dtype=np.float32)
    X.data[::3] = 0.0
    assert np.array_equal(raw_of(adapt(model), X)[:, 0], model.predict(X, output_margin=True))
    assert np.isnan(adapt(model).rows(X)).sum() == 240 - X.nnz


def test_infinite_values_are_routed():
    model = case("xgboost_regressor").model
    X = np.where(np.random.default_rng(0).random((30, 6)) < 0.5, np.inf, -np.inf)
    assert np.array_equal(raw_of(adapt(model), X)[:, 0], model.predict(X, output_margin=True))


def test_rows_do_not_change_the_matrix_they_come_from():
    model = case("xgboost_regressor_missing").model
    X = np.full((3, 6), -999, np.float32)
    assert np.isnan(adapt(model).rows(X)).all()
    assert (X == -999).all()


def test_tables_with_other_types_are_read():
    model, X = case("xgboost_regressor").model, case("xgboost_regressor").X
    table = pd.DataFrame({f"f{i}": pd.array(np.round(X[:, i]), dtype="Float64") for i in range(6)})
    table["f1"] = table["f1"] > 0
    fitted = xgb.XGBRegressor(**SMALL).fit(table, model.predict(X))
    assert np.array_equal(raw_of(adapt(fitted), table)[:, 0], fitted.predict(table, output_margin=True))
    with pytest.raises(ValueError, match="another order"):
        adapt(fitted).rows(table[["f1", "f0", "f2", "f3", "f4", "f5"]])


@knows_categories
def test_a_new_category_is_refused():
    model, X = case("xgboost_categories").model, case("xgboost_categories").X
    more = X.assign(colour=X["colour"].cat.add_categories(["pink"]))
    with pytest.raises(ValueError, match="new"):
        adapt(model).rows(more.fillna({"colour": "pink"}))


@knows_categories
@pytest.mark.parametrize("names", [["b", "c"], ["c", "b"], ["b", "c", "é", "new"], ["b", "c", "é"], ["c"]])
def test_names_before_the_first_beyond_ascii_and_those_in_their_places_are_matched(names):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"letter": pd.Categorical(rng.choice(["b", "c", "é", "f"], 80), ["b", "c", "é", "f"])})
    model = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(X, X["letter"].cat.codes)
    some = X[X["letter"].isin(names)]
    moved = pd.DataFrame({"letter": pd.Categorical(some["letter"].astype(str), names)})
    assert np.array_equal(adapt(model).rows(moved), adapt(model).rows(some))
    if not (stores_whole_names(model) and "new" in names):  # which XGBoost refuses, even where no row has it
        assert np.array_equal(raw_of(adapt(model), moved)[:, 0], model.predict(moved, output_margin=True))


@knows_categories
@pytest.mark.parametrize("names", [["c", "é"], ["f"], ["é"], ["b", "c", "f"]])
def test_names_that_xgboost_may_mistake_for_others_are_refused(names):
    # XGBoost keeps of these names the pieces b, c, half of é, and the other half.
    X = pd.DataFrame({"letter": pd.Categorical(["b", "c", "é", "f"] * 20, ["b", "c", "é", "f"])})
    model = xgb.XGBRegressor(**SMALL, enable_categorical=True).fit(X, X["letter"].cat.codes)
    moved = pd.DataFrame({"letter": pd.Categorical(names, names)})
    if stores_whole_names(model):
        assert adapt(model).rows(moved)[:, 0].tolist() == [["b", "c", "é", "f"].index(name) for name in names]
        return
    with pytest.raises(ValueError, match="Set the categories"):
        adapt(model).rows(moved)


def stores_whole_names(model):
    """Return whether this version of XGBoost saves names beyond ASCII whole."""
    return tuple(adapt(model).saved["version"]) >= (3, 4)


@knows_categories
def test_category_names_beyond_ascii_must_equal_those_of_training():
    X, y = frame()
    X["colour"] = X["colour"].cat.rename_categories({"red": "rouge é", "blue": "青"})
    model = xgb.XGBClassifier(**SMALL, enable_categorical=True).fit(X, y)
    assert np.array_equal(raw_of(adapt(model), X), model.predict(X, output_margin=True))
    moved = X.assign(colour=X["colour"].cat.reorder_categories(X["colour"].cat.categories[::-1]))
    if stores_whole_names(model):
        assert np.array_equal(adapt(model).rows(moved), adapt(model).rows(X), equal_nan=True)
        assert np.array_equal(raw_of(adapt(model), moved), model.predict(moved, output_margin=True))
        return
    with pytest.raises(ValueError, match="ASCII"):
        adapt(model).rows(moved)


def test_dart_trees_are_summed_as_xgboost_does_with_and_without_a_dmatrix():
    model, X = case("xgboost_regressor_dart").model, case("xgboost_regressor_dart").X_new
    with_matrix = model.get_booster().predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(raw_of(adapt(model.get_booster()), X)[:, 0], with_matrix)
    assert np.array_equal(raw_of(adapt(model), X)[:, 0], model.predict(X))
    # From version 3.4 on, XGBoost adds in the same order without a DMatrix.
    flat = "gbtree" not in adapt(model).saved["learner"]["gradient_booster"]
    assert np.array_equal(with_matrix, model.predict(X)) == flat


def test_a_dart_takes_new_tree_weights():
    adapter, X = adapt(case("xgboost_booster_dart").model), case("xgboost_booster_dart").X_new
    weight = np.linspace(0.1, 2, adapter.forest.n_trees)
    decision = Decision(random_keep(np.random.default_rng(1), adapter.forest), tree_weight=weight)
    found = adapter.write(decision).predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(found, raw_of(adapter, X, decision))


@pytest.mark.parametrize("place", ["booster", "model", "flat"])
def test_dart_weights_are_found_in_files_of_every_version(place):
    saved = adapt(case("xgboost_booster_dart").model).saved
    expected = read_trees(saved).weight
    assert len(set(expected.tolist())) > 1
    gradient = copy.deepcopy(saved["learner"]["gradient_booster"])
    if "gbtree" not in gradient:
        # XGBoost 3.4 writes the flat one; the others are made from it.
        gradient = {"name": "dart", "gbtree": {"name": "gbtree", "model": gradient["model"]}}
        gradient["weight_drop"] = gradient["gbtree"]["model"].pop("weight_drop")
    if place != "booster":
        gradient["gbtree"]["model"]["weight_drop"] = gradient.pop("weight_drop")
    if place == "flat":
        gradient["model"] = gradient.pop("gbtree")["model"]
    other = {**saved, "learner": {**saved["learner"], "gradient_booster": gradient}}
    assert np.array_equal(read_trees(other).weight, expected)
    changed = _with_trees(other, booster_part(other)["model"], expected[::-1].copy(), -1)
    assert np.array_equal(read_trees(changed).weight, expected[::-1])
    assert np.array_equal(read_trees(other).weight, expected)


def test_quantities_that_a_booster_cannot_store_are_refused():
    adapter = adapt(case("xgboost_regressor").model)
    keep = np.ones(adapter.forest.n_nodes, bool)
    with pytest.raises(ValueError, match="only in DART"):
        adapter.write(Decision(keep, tree_weight=np.ones(adapter.forest.n_trees)))
    with pytest.raises(ValueError, match="Include it"):
        adapter.write(Decision(keep, base=np.zeros(1)))
    with pytest.raises(ValueError, match="float32"):
        adapter.write(Decision(keep, value=np.full((adapter.forest.n_nodes, 1), 1e300)))


def test_unsupported_boosters_are_refused():
    X, y = case("xgboost_regressor_targets").X, case("xgboost_regressor_targets").y
    with pytest.raises(ValueError, match="gblinear"):
        adapt(xgb.XGBRegressor(booster="gblinear").fit(X, y[:, 0]))
    with pytest.raises(ValueError, match="one_output_per_tree"):
        adapt(xgb.XGBRegressor(**SMALL, multi_strategy="multi_output_tree").fit(X, y)).read()
    with pytest.raises(ValueError, match="not fitted"):
        adapt(xgb.XGBRegressor())
    with pytest.raises(TypeError, match="not a model"):
        adapt(xgb.DMatrix(X))
    with pytest.raises(ValueError, match="read back"):
        adapt(case("xgboost_regressor").model).rows(xgb.DMatrix(X))


def test_the_loss_follows_from_the_objective():
    expected = {
        "xgboost_booster_quantile": "quantile:0.9",
        "xgboost_booster_tweedie": "tweedie:1.3",
        "xgboost_booster_poisson": "poisson",
        "xgboost_booster_hinge": "zero_one",
        "xgboost_booster": None,
    }
    assert {name: adapt(case(name).model).objective for name in expected} == expected
    unsupervised = {name for name in RECIPES if not adapt(case(name).model).supervised}
    assert unsupervised == {
        f"xgboost_{name}"
        for name in (
            *("booster_quantiles", "booster_cox", "booster_aft", "booster_rank", "booster_pairwise"),
            *("ranker", "own_objective"),
        )
    }


def test_a_regressor_trained_by_the_hinge_loss_predicts_two_labels():
    X, y = case("xgboost_classifier_hinge").X, case("xgboost_classifier_hinge").y
    labels = (y == np.unique(y)[1]).astype(int)
    model = xgb.XGBRegressor(**SMALL, objective="binary:hinge").fit(X, labels)
    path = prune_path(model, X, labels)
    assert path.info.loss == "zero_one"
    for point in (path[0], path[-1]):
        assert np.array_equal(point.predict(X), point.to_model().predict(X))
        assert np.allclose(point.predict_proba(X).sum(axis=1), 1)


def test_a_stopped_model_is_refitted_for_as_many_rounds():
    c = case("xgboost_regressor_stopped")
    adapter = adapt(c.model)
    again = adapter.refit(c.X, c.y, None)
    assert again.get_booster().num_boosted_rounds() == c.model.best_iteration + 1


def test_size_is_that_of_the_file():
    model = case("xgboost_regressor").model
    assert adapt(model).n_bytes(model) == len(dump(model, ".ubj"))


@pytest.mark.parametrize("objective", ["reg:squarederror", "binary:logistic", "count:poisson", "multi:softprob"])
def test_training_rows_are_recognised_by_how_they_fill_the_first_trees(objective):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] > 0).astype(int) + (objective == "multi:softprob") * (X[:, 1] > 0)
    options = {"objective": objective, "max_depth": 3, **({"num_class": 3} if "multi" in objective else {})}
    adapter = adapt(xgb.train(options, xgb.DMatrix(X, y), 5))
    assert adapter.grown_on(read_sample(adapter, X, y).leaves)
    assert not adapter.grown_on(read_sample(adapter, X[:-1], y[:-1]).leaves)
    assert not adapter.grown_on(read_sample(adapter, rng.normal(size=(400, 5)), y).leaves)
    drawn = adapt(xgb.train({**options, "subsample": 0.5}, xgb.DMatrix(X, y), 5))
    assert not drawn.grown_on(read_sample(drawn, X, y).leaves)
