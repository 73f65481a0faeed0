"""BudgetForestClassifier is a scikit-learn forest and prefers cheap features."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier, export_text
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.sklearn_checks import run_check

import secateur as sc
from secateur.costs import FeatureCost
from secateur.forest.routing import route
from secateur.libraries import adapt
from secateur.training import BudgetForestClassifier

CANCER = load_breast_cancer(as_frame=True)
IRIS = load_iris(as_frame=True)
BY_ROW = (
    "trees are grown on rows drawn one by one: a row of weight 2 is drawn or not, of two copies one may be. "
    "scikit-learn expects the same of its own random forests"
)


@parametrize_with_checks(
    [BudgetForestClassifier(n_estimators=5), BudgetForestClassifier(n_estimators=5, budget=1e9)],
    expected_failed_checks=lambda estimator: {"check_sample_weight_equivalence_on_dense_data": BY_ROW},
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    run_check(estimator, check)


@pytest.fixture(scope="module")
def forest():
    return BudgetForestClassifier(n_estimators=8, alpha=1.0, random_state=0).fit(CANCER.data, CANCER.target)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alpha": 2.0, "max_features": "sqrt"},
        {"bootstrap": False, "max_samples": 0.5, "max_depth": 4, "reuse_price": 0.0},
        {"max_samples": 50, "min_samples_leaf": 5, "max_features": 0.3},
    ],
)
def test_leaves_hold_the_rows_that_scikit_learn_sends_there(options):
    rng = np.random.default_rng(0)
    X, y = CANCER.data.to_numpy().copy(), CANCER.target.to_numpy()
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 0] = 1e6 + 0.1 * rng.random(len(X))  # float32 has few values here
    weight = rng.random(len(X)) + 0.5
    model = BudgetForestClassifier(n_estimators=4, random_state=1, **options).fit(X, y, weight)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        leaves, nodes = tree.apply(X.astype(np.float32)), tree.tree_
        leaf, distinct = nodes.children_left == -1, np.unique(rows)
        np.testing.assert_array_equal(
            np.bincount(leaves[distinct], minlength=nodes.node_count)[leaf], nodes.n_node_samples[leaf]
        )
        counts = np.zeros((nodes.node_count, 2))
        np.add.at(counts, (leaves[rows], y[rows]), weight[rows])
        np.testing.assert_allclose(counts.sum(axis=1)[leaf], nodes.weighted_n_node_samples[leaf])
        fraction = counts[leaf] / counts[leaf].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(nodes.value[leaf, 0], fraction, atol=1e-12)
        np.testing.assert_allclose(nodes.impurity[leaf], 1 - (fraction**2).sum(axis=1), atol=1e-12)
        assert nodes.n_node_samples[leaf].min() >= options.get("min_samples_leaf", 1)
        assert nodes.max_depth <= options.get("max_depth", 1000)
        split = ~leaf
        for field in (nodes.n_node_samples, nodes.weighted_n_node_samples):
            below = field[nodes.children_left[split]] + field[nodes.children_right[split]]
            np.testing.assert_allclose(below, field[split])


def test_without_alpha_leaves_are_pure():
    model = BudgetForestClassifier(n_estimators=3, random_state=0).fit(CANCER.data, CANCER.target)
    for tree in model.estimators_:
        assert (tree.tree_.impurity[tree.tree_.children_left == -1] == 0).all()


@pytest.mark.parametrize("bootstrap", [True, False])
def test_the_drawn_rows_are_recovered_from_the_seeds(bootstrap):
    model = BudgetForestClassifier(n_estimators=5, max_samples=0.6, bootstrap=bootstrap, random_state=0)
    adapter = adapt(model.fit(CANCER.data, CANCER.target))
    drawn = adapter.in_bag(len(CANCER.data))
    assert drawn.sum(axis=1).tolist() == [round(0.6 * len(CANCER.data))] * 5
    assert (drawn.max() > 1) == bootstrap
    assert adapter.grown_on(route(adapter.forest, adapter.rows(CANCER.data)))


def test_the_forest_is_the_same_whatever_the_number_of_threads(forest):
    def splits(model):
        return [list(zip(tree.tree_.feature, tree.tree_.threshold, strict=True)) for tree in model.estimators_]

    parallel = clone(forest).set_params(n_jobs=2).fit(CANCER.data, CANCER.target)
    other = clone(forest).set_params(random_state=1).fit(CANCER.data, CANCER.target)
    assert splits(parallel) == splits(forest) != splits(other)
    copy = pickle.loads(pickle.dumps(forest))
    np.testing.assert_array_equal(copy.predict_proba(CANCER.data), forest.predict_proba(CANCER.data))


def test_drawing_features_depends_on_the_seed_alone():
    def grown(seed, n_jobs=1):
        options = {"n_estimators": 1, "bootstrap": False, "max_features": 2, "random_state": seed, "n_jobs": n_jobs}
        return BudgetForestClassifier(**options).fit(CANCER.data, CANCER.target).estimators_[0].tree_

    assert grown(0).feature.tolist() == grown(0, n_jobs=2).feature.tolist()
    assert len({tuple(grown(seed).feature) for seed in range(4)}) == 4


def test_predictions_are_the_mean_of_the_leaves_class_fractions(forest):
    X = CANCER.data.to_numpy(np.float32)
    mean = np.mean([tree.tree_.predict(X)[:, :2].reshape(-1, 2) for tree in forest.estimators_], axis=0)
    np.testing.assert_allclose(forest.predict_proba(CANCER.data), mean)
    adapter = adapt(forest)
    assert adapter.library == "sklearn"


def test_string_labels_are_supported_and_sorted():
    names = np.array(["setosa", "versicolor", "virginica"])[::-1][IRIS.target]
    model = BudgetForestClassifier(n_estimators=5, random_state=0).fit(IRIS.data, names)
    numbers = BudgetForestClassifier(n_estimators=5, random_state=0).fit(IRIS.data, 2 - IRIS.target)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(model.predict_proba(IRIS.data), numbers.predict_proba(IRIS.data))
    assert model.score(IRIS.data, names) > 0.95


def test_integer_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = IRIS.data.to_numpy(), IRIS.target.to_numpy()
    weight = rng.integers(0, 4, len(y))
    weight[y == 2] = 0
    model = BudgetForestClassifier(n_estimators=1, bootstrap=False, alpha=0.5, random_state=0)
    weighted = clone(model).fit(X, y, weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.estimators_[0].tree_.threshold.tolist() == repeated.estimators_[0].tree_.threshold.tolist()
    np.testing.assert_allclose(weighted.predict_proba(X)[:, :2], repeated.predict_proba(X))
    assert weighted.classes_.tolist() == [0, 1, 2]


def test_missing_values_can_separate_the_classes():
    X = np.array([[np.nan], [np.nan], [1.0], [2.0]])
    model = BudgetForestClassifier(n_estimators=1, bootstrap=False).fit(X, [0, 0, 1, 1])
    assert model.predict(X).tolist() == [0, 0, 1, 1]
    assert model.estimators_[0].tree_.threshold[0] == np.inf
    inside = np.array([[1.0], [np.nan], [1.0], [2.0]])
    assert BudgetForestClassifier(n_estimators=1, bootstrap=False).fit(inside, [0, 0, 0, 1]).score(
        inside, [0, 0, 0, 1]
    ) == 1  # fmt: skip


def test_prices_are_taken_in_every_form(tmp_path):
    prices = dict(zip(IRIS.data.columns, [3.0, 1.0, 2.0, 9.0], strict=True))
    file = tmp_path / "prices.csv"
    pd.DataFrame({"feature": list(prices), "cost": list(prices.values())}).to_csv(file, index=False)
    forms = [list(prices.values()), dict(reversed(prices.items())), FeatureCost(prices), str(file), file]
    grown = [BudgetForestClassifier(f, n_estimators=3, random_state=0).fit(IRIS.data, IRIS.target) for f in forms]
    for model in grown:
        np.testing.assert_array_equal(model.predict_proba(IRIS.data), grown[0].predict_proba(IRIS.data))
        assert model.cost.mean_price(model, IRIS.data) == pytest.approx(
            FeatureCost(prices).mean_price(grown[0], IRIS.data)
        )


def used(model):
    return {int(k) for tree in model.estimators_ for k in tree.tree_.feature if k >= 0}


def test_expensive_features_and_groups_are_avoided():
    # Three equal columns: which one is taken is decided by price alone.
    X = np.repeat(IRIS.data.to_numpy()[:, [2]], 3, axis=1)
    options = {"n_estimators": 3, "random_state": 0}
    assert used(BudgetForestClassifier([2, 1, 3], **options).fit(X, IRIS.target)) == {1}
    group = FeatureCost([1, 1, 1.5], groups={"kit": (1.0, [0, 1])})
    assert used(BudgetForestClassifier(group, **options).fit(X, IRIS.target)) == {2}
    assert used(BudgetForestClassifier([5, 5, 0], **options).fit(X, IRIS.target)) == {2}
    assert used(BudgetForestClassifier([0, 0, 0], **options).fit(X, IRIS.target)) == {0}


@pytest.mark.parametrize("on_validation_rows", [False, True])
@pytest.mark.parametrize("n_trees", [1, 2, 3, 6, 11, 20])
def test_trees_are_added_as_long_as_the_budget_is_kept(n_trees, on_validation_rows):
    X_val = CANCER.data[:40] if on_validation_rows else None
    options = {"feature_costs": list(range(1, 31)), "random_state": 0}
    prices = []
    for n in range(1, 21):
        model = BudgetForestClassifier(n_estimators=n, **options).fit(CANCER.data, CANCER.target)
        prices.append(model.cost.mean_price(model, CANCER.data if X_val is None else X_val))
    budget = prices[n_trees - 1]
    kept = BudgetForestClassifier(n_estimators=20, budget=budget, **options)
    kept.fit(CANCER.data, CANCER.target, X_val=X_val)
    assert len(kept.estimators_) == sum(price <= budget for price in prices) >= n_trees
    expected = BudgetForestClassifier(n_estimators=len(kept.estimators_), **options).fit(CANCER.data, CANCER.target)
    np.testing.assert_array_equal(kept.predict_proba(CANCER.data), expected.predict_proba(CANCER.data))
    assert len(kept.estimators_samples_) == len(sc.as_forest(kept).tree_start) - 1 == len(kept.estimators_)


def test_a_low_reuse_price_lowers_the_cost():
    X, y = CANCER.data.to_numpy(), CANCER.target
    options = {"n_estimators": 5, "random_state": 0}
    prices = [
        FeatureCost().mean_price(BudgetForestClassifier(reuse_price=fraction, **options).fit(X, y), X)
        for fraction in (0.0, 0.8, 1.0)
    ]
    assert prices[0] < prices[1] < prices[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_costs": [1.0, 2.0]}, "has shape .2,., but the model has 4 features"),
        ({"feature_costs": [1, 1, 1, -1]}, "a price must be finite and at least 0"),
        ({"feature_costs": FeatureCost(row_prices=np.ones((150, 4)))}, "prices by row.*Pass prices="),
        ({"bootstrap": False, "max_samples": 151}, "only 150 rows .* Reduce max_samples"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"reuse_price": 1.5}, "'reuse_price' parameter"),
        ({"budget": -1.0}, "'budget' parameter"),
        ({"budget": 0.5}, "budget=0.5, but the first tree alone costs .* Increase budget"),
    ],
)
def test_invalid_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        BudgetForestClassifier(**options).fit(IRIS.data, IRIS.target)


@pytest.mark.parametrize(
    ("weight", "message"), [(0.0, "zero for every row|at least one non-zero"), (-1.0, "negative value -1, .* Pass")]
)
def test_negative_weights_and_weights_that_are_all_zero_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        BudgetForestClassifier().fit(IRIS.data, IRIS.target, np.full(150, weight))


def test_trees_are_scikit_learns(forest):
    assert all(type(tree) is DecisionTreeClassifier for tree in forest.estimators_)
    assert "feature_" in export_text(forest.estimators_[0])
    assert forest.feature_importances_.sum() == pytest.approx(1)
    indicator, _ = forest.decision_path(CANCER.data)
    assert indicator.shape[1] == sum(tree.tree_.node_count for tree in forest.estimators_)


def test_shap_values_add_up_to_the_prediction(forest):
    shap = pytest.importorskip("shap")
    X = CANCER.data.to_numpy()[:20]
    explainer = shap.TreeExplainer(forest)
    total = explainer.shap_values(X, check_additivity=False).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, forest.predict_proba(CANCER.data[:20]), atol=1e-6)


@pytest.mark.parametrize("solver", ["weakest_link", "reduced_error", "fewer_trees", "min_cut"])
def test_pruning_returns_the_same_type(forest, solver):
    train, rest, y_train, y_rest = train_test_split(CANCER.data, CANCER.target, random_state=0)
    model = clone(forest).fit(train, y_train)
    path = sc.prune_path(model, rest, y_rest, solver=solver, cost=model.cost if solver == "min_cut" else None)
    small = path.select(max_nodes=sc.as_forest(model).n_nodes // 2).to_model()
    assert type(small) is BudgetForestClassifier
    assert small.get_params().keys() == model.get_params().keys()
    assert sc.as_forest(small).n_nodes <= sc.as_forest(model).n_nodes // 2
    assert small.score(rest, y_rest) > 0.6
    assert len(small.estimators_samples_) == len(small.estimators_) == small.n_estimators


def test_pruning_with_its_own_prices_meets_a_budget(forest):
    train, rest, y_train, y_rest = train_test_split(CANCER.data, CANCER.target, random_state=0)
    model = clone(forest).set_params(feature_costs=list(range(1, 31))).fit(train, y_train)
    path = sc.prune_path(model, rest, y_rest, solver="min_cut", cost=model.cost)
    costs = path.table["cost"]
    assert costs[0] == pytest.approx(model.cost.mean_price(model, rest))
    budget = costs[(costs > 0) & (costs < costs[0])].min()
    small = path.select(max_cost=budget).to_model()
    assert type(small) is BudgetForestClassifier
    assert model.cost.mean_price(small, rest) == pytest.approx(budget)


def test_a_search_over_alpha_finds_one():
    search = GridSearchCV(BudgetForestClassifier(n_estimators=3, random_state=0), {"alpha": [0.0, 40.0]}, cv=3)
    assert search.fit(IRIS.data, IRIS.target).best_params_ == {"alpha": 0.0}


def test_features_cost_less_than_a_random_forests_at_similar_accuracy():
    scores, prices = np.zeros((3, 2)), np.zeros((3, 2))
    for seed in range(3):
        train, test, y_train, y_test = train_test_split(CANCER.data, CANCER.target, test_size=0.4, random_state=seed)
        pair = BudgetForestClassifier(random_state=seed), RandomForestClassifier(40, random_state=seed)
        for k, model in enumerate(pair):
            scores[seed, k] = model.fit(train, y_train).score(test, y_test)
            prices[seed, k] = FeatureCost().mean_price(model, test)
    assert scores[:, 0].mean() > scores[:, 1].mean() - 0.02
    assert prices[:, 0].mean() < 0.8 * prices[:, 1].mean()
