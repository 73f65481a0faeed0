"""Test scikit-learn models: what works on the pruned model, and what is refused with a reason."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, export_text
from tests.cases import case
from tests.strategies import random_keep

import secateur as sc
from secateur import Decision
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.libraries import adapt


def cut(model, seed=0, p_cut=0.3):
    adapter = adapt(model)
    return adapter.write(Decision(random_keep(np.random.default_rng(seed), adapter.forest, p_cut)))


def drop(model, *trees):
    """Return the model without some whole trees."""
    adapter = adapt(model)
    keep = np.ones(adapter.forest.n_nodes, bool)
    for tree in trees:
        keep[adapter.forest.tree_start[tree] : adapter.forest.tree_start[tree + 1]] = False
    return adapter.write(Decision(keep))


def test_a_pruned_tree_exports_as_text_without_dead_nodes():
    c = case("tree classifier")
    path = sc.prune_path(c.model, c.X, c.y)
    small = path.select(max_leaves=3).to_model()
    text = export_text(small)
    assert text.count("class:") == small.get_n_leaves() == small.tree_.n_leaves <= 3
    assert small.get_depth() == small.tree_.max_depth
    reached = np.asarray(small.decision_path(c.X).sum(axis=0)).ravel()
    assert len(reached) == small.tree_.node_count
    assert (reached > 0).all()


def test_a_pruned_tree_is_a_ccp_refit_array_for_array():
    c = case("tree classifier, entropy, strings")
    path = c.model.cost_complexity_pruning_path(c.X, c.y)
    alpha = (path.ccp_alphas[-4] + path.ccp_alphas[-3]) / 2
    refit = clone(c.model).set_params(ccp_alpha=alpha).fit(c.X, c.y)
    ours = sc.prune_path(c.model, c.X, c.y, loss="log_loss", cost="leaves")
    small = ours[int(np.searchsorted(ours.table["penalty"], alpha * np.log(2))) - 1].to_model()
    for name in ("children_left", "children_right", "feature", "threshold", "impurity", "n_node_samples", "value"):
        assert np.array_equal(getattr(small.tree_, name), getattr(refit.tree_, name)), name
    assert np.array_equal(small.feature_importances_, refit.feature_importances_)


@pytest.mark.parametrize("name", ["tree regressor", "random forest classifier", "gradient boosting regressor"])
def test_feature_importances_ignore_cut_splits(name):
    c = case(name)
    small = sc.prune_path(c.model, c.X, c.y).select(max_features=2).to_model()
    assert np.count_nonzero(small.feature_importances_) <= 2


@pytest.mark.parametrize(
    "name",
    [
        "tree classifier",
        "tree regressor",
        "random forest classifier, missing values",
        "random forest regressor",
        "extra trees regressor",
        "gradient boosting classifier",
        "gradient boosting regressor",
        "hist boosting regressor",
        "isolation forest",
    ],
)
def test_shap_explains_the_pruned_model(name):
    shap = pytest.importorskip("shap")
    c = case(name)
    small = cut(c.model, p_cut=0.2)
    X = np.nan_to_num(c.X[:20])
    explainer = shap.TreeExplainer(small)
    values = explainer.shap_values(X, check_additivity=False)
    expected = explainer.expected_value
    if name.startswith(("gradient boosting classifier",)):
        output = small.decision_function(X)
    elif "classifier" in name:
        values, expected, output = values[..., 1], expected[1], small.predict_proba(X)[:, 1]
    elif name == "isolation forest":
        return  # shap explains the path length, not the score; that it runs on the pruned trees is what we ask
    else:
        output = small.predict(X)
    np.testing.assert_allclose(values.sum(axis=1) + expected, output, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["random forest classifier", "bagging classifier, some columns", "adaboost classifier", "isolation forest"]
)
def test_dropping_trees_leaves_a_consistent_ensemble(name):
    c = case(name)
    small = drop(c.model, 0, 3)
    assert len(small.estimators_) == small.n_estimators == len(c.model.estimators_) - 2
    assert small.get_params()["n_estimators"] == small.n_estimators
    again = clone(small).fit(c.X, None if name == "isolation forest" else c.y)
    assert len(again.estimators_) == small.n_estimators


def test_a_smaller_forest_averages_over_its_own_trees():
    c = case("random forest classifier")
    small = drop(c.model, 1, 2, 4)
    kept = [c.model.estimators_[i] for i in (0, 3, 5, 6)]
    np.testing.assert_allclose(small.predict_proba(c.X), np.mean([t.predict_proba(c.X) for t in kept], axis=0))


@pytest.mark.parametrize(
    "name", ["gradient boosting classifier, three classes", "hist boosting classifier, three classes"]
)
def test_dropped_trees_of_kept_iterations_predict_zero(name):
    c = case(name)
    whole = adapt(c.model)
    small = drop(c.model, 0, 1, 2, 4)  # the whole first iteration, and one class of the second
    iterations = small.estimators_ if hasattr(small, "estimators_") else small._predictors
    assert len(iterations) == whole.forest.n_trees // 3 - 1
    raw = small.decision_function(c.X)
    before = c.model.decision_function(c.X)
    assert raw.shape == before.shape
    assert np.abs(raw - before).max() > 0


@pytest.mark.parametrize("name", ["gradient boosting regressor", "hist boosting classifier", "hist boosting regressor"])
def test_a_booster_without_trees_predicts_its_base(name):
    c = case(name)
    small = drop(c.model, *range(adapt(c.model).forest.n_trees))
    assert len(np.unique(small.predict(c.X))) == 1


def test_best_first_trees_keep_their_own_node_order():
    c = case("tree classifier, best first")
    copied = cut(c.model, p_cut=0)
    assert np.array_equal(copied.tree_.children_left, c.model.tree_.children_left)
    assert np.array_equal(copied.apply(c.X.astype(np.float32)), c.model.apply(c.X.astype(np.float32)))


def test_an_infinite_threshold_sends_only_missing_values_right():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    tree = DecisionTreeClassifier(random_state=0).fit(X, [0, 0, 1, 1])
    assert np.isinf(tree.tree_.threshold[0])
    assert np.array_equal(sc.prune_path(tree, X, [0, 0, 1, 1])[0].predict(X), tree.predict(X))


def test_a_value_equal_to_a_threshold_is_routed_as_scikit_learn_does():
    c = case("random forest regressor")
    adapter = adapt(c.model)
    thresholds = adapter.forest.threshold[adapter.forest.is_split]
    X = np.random.default_rng(0).choice(thresholds, size=(200, 6))
    pruned = sc.prune_path(c.model, c.X, c.y)[3]
    assert np.array_equal(pruned.predict(X), pruned.to_model().predict(X))


def test_hist_boosting_takes_infinite_values_and_unseen_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 300), rng.normal(size=300), rng.integers(0, 9, 300)]).astype(float)
    y = (X[:, 0] % 2) * 3 + X[:, 1] + (X[:, 2] > 4)
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=[0, 2], random_state=0).fit(X, y)
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1.0, 7.0], size=(200, 3))
    odd[:, [0, 2]] = rng.choice([0.0, 1.0, 4.0, 8.0, 99.0, -3.0, np.nan], size=(200, 2))
    pruned = sc.prune_path(model, X, y)[5]
    assert np.array_equal(pruned.predict(odd), pruned.to_model().predict(odd))
    assert set(adapt(model).forest.features_used) == {0, 1, 2}


def test_features_of_hist_boosting_are_the_users_columns():
    c = case("hist boosting classifier, categories")
    forest = sc.as_forest(c.model)
    assert forest.feature_names == tuple(c.X.columns)
    colour, size = list(c.X.columns).index("colour"), list(c.X.columns).index("size")
    listed = forest.feature[np.flatnonzero(forest.categories.row != -1)]
    assert set(listed.tolist()) == {colour, size}


def test_sparse_rows_give_the_same_path():
    c = case("random forest classifier")
    dense = sc.prune_path(c.model, c.X, c.y)
    thin = sc.prune_path(c.model, sparse.csr_matrix(c.X), c.y)
    assert np.array_equal(dense.table["penalty"], thin.table["penalty"], equal_nan=True)


def test_data_frames_are_checked_by_name():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    y = X["a"] > 0
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    sc.prune_path(tree, X, y)
    with pytest.raises(ValueError, match="another order"):
        sc.prune_path(tree, X[["b", "a", "c"]], y)
    with pytest.raises(ValueError, match=r"missing \['c'\], unexpected \['d'\]"):
        sc.prune_path(tree, X.rename(columns={"c": "d"}), y)


def test_a_pruned_subclass_keeps_its_class():
    class MyForest(RandomForestRegressor):
        pass

    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    small = cut(MyForest(3, random_state=0).fit(X, y))
    assert type(small) is MyForest


def test_a_failing_pipeline_step_raises_an_error_with_its_reason():
    c = case("pipeline")
    broken = Pipeline([("broken", FunctionTransformer(lambda X: X.no_such_thing)), c.model.steps[-1]])
    with pytest.raises(ValueError, match=r"fail on these rows \(AttributeError: .*no_such_thing.*save it again\."):
        sc.prune_path(broken, c.X, c.y)


def test_a_pipeline_keeps_its_other_steps():
    c = case("pipeline")
    small = cut(c.model)
    assert isinstance(small, Pipeline)
    assert np.array_equal(small[0].mean_, c.model[0].mean_)
    assert small[0] is not c.model[0]


def test_a_pruned_search_keeps_its_results():
    c = case("search")
    small = cut(c.model)
    assert isinstance(small, GridSearchCV)
    assert small.best_params_ == c.model.best_params_
    assert sc.as_forest(small).n_nodes < sc.as_forest(c.model).n_nodes


def test_models_that_are_not_fitted_are_refused():
    for model in (
        DecisionTreeClassifier(),
        RandomForestClassifier(),
        GradientBoostingClassifier(),
        HistGradientBoostingClassifier(),
        IsolationForest(),
        make_pipeline(DecisionTreeClassifier()),
        GridSearchCV(DecisionTreeClassifier(), {}),
    ):
        with pytest.raises(InvalidInputError, match="not fitted"):
            sc.as_forest(model)


@pytest.mark.parametrize("model", [LogisticRegression(), KNeighborsClassifier(), DummyClassifier()])
def test_other_models_are_refused_with_a_list_of_supported_ones(model):
    with pytest.raises(UnsupportedModelError, match="RandomForestClassifier"):
        sc.as_forest(model)


@pytest.mark.parametrize("ensemble", [BaggingClassifier, AdaBoostClassifier])
def test_ensembles_of_other_estimators_are_refused(ensemble):
    c = case("tree classifier")
    with pytest.raises(UnsupportedModelError, match="made of LogisticRegression"):
        sc.as_forest(ensemble(LogisticRegression(), n_estimators=2).fit(c.X, c.y))


def test_a_model_of_another_library_is_refused_with_a_list_of_libraries():
    with pytest.raises(UnsupportedModelError, match="Supported libraries: sklearn"):
        sc.as_forest(object())


def test_new_leaf_values_are_written():
    for name in (
        "tree classifier, several targets",
        "random forest regressor, several targets",
        "hist boosting regressor",
    ):
        adapter = adapt(case(name).model)
        rng = np.random.default_rng(0)
        keep = random_keep(rng, adapter.forest)
        value = rng.random(adapter.forest.value.shape)
        native = adapter.write(Decision(keep, value))
        again, expected = adapt(native).forest, sc.subforest(adapter.forest, Decision(keep, value))
        leaf = ~expected.is_split
        if again.n_trees == expected.n_trees:
            assert np.array_equal(again.value[leaf], expected.value[leaf])


def test_changes_that_a_model_cannot_store_are_refused():
    forest_like = {
        "random forest classifier": "tree_weight",
        "gradient boosting classifier": "base",
        "hist boosting classifier": "tree_weight",
        "adaboost classifier": "value",
        "isolation forest": "value",
        "bagging classifier, few rows": "value",
    }
    for name, what in forest_like.items():
        adapter = adapt(case(name).model)
        change = {what: getattr(adapter.forest, what) * 2}
        with pytest.raises(ValueError, match="The pruning changes"):
            adapter.write(Decision(np.ones(adapter.forest.n_nodes, bool), **change))


def test_adaboost_takes_new_tree_weights():
    c = case("adaboost classifier, three classes")
    adapter = adapt(c.model)
    weight = np.arange(1.0, 1 + adapter.forest.n_trees)
    decision = Decision(np.ones(adapter.forest.n_nodes, bool), tree_weight=weight)
    native = adapter.write(decision)
    ours = sc.Pruned(adapter, decision, 0, {}, "", {})
    assert np.array_equal(native.estimator_weights_, weight)
    assert np.array_equal(native.predict_proba(c.X), ours.predict_proba(c.X))


def test_a_damaged_tree_is_refused():
    tree = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0).fit(np.arange(40.0)[:, None], np.arange(40.0) % 7)
    state = tree.tree_.__getstate__()
    state["nodes"]["right_child"][0] = state["nodes"]["left_child"][0]
    with pytest.raises(ValueError, match=r"do not form a tree|not in preorder"):
        sc.as_forest(tree)


def test_metadata_routing_changes_nothing():
    c = case("bagging classifier, few rows")
    with sklearn.config_context(enable_metadata_routing=True):
        assert np.array_equal(cut(c.model).predict(c.X), cut(c.model).predict(c.X))


def test_cover_is_the_weight_of_the_training_rows():
    c = case("tree classifier, class weights")
    assert np.array_equal(adapt(c.model).forest.weight[0], c.model.tree_.weighted_n_node_samples[0])
    forest = case("random forest classifier").model
    cover = adapt(forest).forest.weight[adapt(forest).forest.root]
    assert np.array_equal(cover, [tree.tree_.weighted_n_node_samples[0] for tree in forest.estimators_])


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor, BaggingClassifier])
def test_out_of_bag_results_of_the_unpruned_trees_are_removed(kind):
    X = np.arange(60.0).reshape(30, 2)
    model = kind(n_estimators=15, oob_score=True, random_state=0).fit(X, X[:, 0] > 20)
    results = {"oob_score_", "oob_decision_function_", "oob_prediction_"} & vars(model).keys()
    assert results
    assert not results & vars(cut(model)).keys()
    assert results <= vars(cut(model, p_cut=0)).keys()
