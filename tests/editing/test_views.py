"""A NodeView has the facts that the library stores for the node."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier
from tests.cases import RECIPES, case
from tests.strategies import forests, random_rows, step, walk

from secateur.editing import Condition, NodeView, node_views
from secateur.forest.routing import route
from secateur.libraries import adapt


def inner(model):
    """Return the tree model inside a pipeline or a search."""
    model = getattr(model, "best_estimator_", model)
    return model.steps[-1][1] if hasattr(model, "steps") else model


def native_trees(model):
    """Return the `Tree` objects of a model in the order in which it adds them."""
    model = inner(model)
    estimators = np.ravel(getattr(model, "estimators_", [model]))
    return [estimator.tree_ for estimator in estimators if hasattr(estimator, "tree_")]


@pytest.mark.parametrize("name", list(RECIPES))
def test_every_node_is_viewed_once_by_its_id_and_agrees_with_the_tree_it_is_from(name):
    adapter, model = adapt(case(name).model), inner(case(name).model)
    trees, views = native_trees(model), list(node_views(case(name).model))
    assert len({(view.tree, view.node) for view in views}) == len(views) == adapter.forest.n_nodes
    for view in views:
        if trees:
            check_view(view, trees[view.tree])
        else:  # HistGradientBoosting
            check_view_of_boosting(view, np.ravel(model._predictors)[view.tree].nodes[view.node])
    check_ids(adapter, trees, model, case(name).X_new)


def check_view(view, tree):
    """Assert that a view has the facts of its node in a `Tree`."""
    assert view.is_leaf == (tree.children_left[view.node] == -1)
    assert view.n_samples == tree.n_node_samples[view.node]
    assert view.weight == tree.weighted_n_node_samples[view.node]
    assert view.is_leaf or view.threshold == tree.threshold[view.node]
    assert view.impurity is None or view.impurity == tree.impurity[view.node]


def check_view_of_boosting(view, node):
    """Assert that a view has the facts of a node of HistGradientBoosting."""
    assert (view.n_samples, view.depth, view.is_leaf) == (node["count"], node["depth"], node["is_leaf"])
    assert view.is_leaf or not np.isfinite(view.threshold) or view.threshold == node["num_threshold"]


def check_ids(adapter, trees, model, X):
    """Assert that the ids of leaves are those `apply` gives."""
    rows = adapter.rows(X)
    reached = adapter.native_ids()[adapter.forest.root[:, None] + route(adapter.forest, rows)]
    columns = getattr(model, "estimators_features_", [slice(None)] * len(trees))
    for tree, ids, columns_of_tree in zip(trees, reached, columns, strict=False):
        assert np.array_equal(tree.apply(np.ascontiguousarray(rows[:, columns_of_tree])), ids)


def holds(condition, x, dtype):
    """Whether a row satisfies a condition, read off its fields."""
    value = dtype.type(x[condition.feature])
    if condition.categories is not None:
        return (np.trunc(value) in condition.categories) == condition.goes_left
    below = value < condition.threshold if condition.comparison == "<" else value <= condition.threshold
    return bool(below) == condition.goes_left


@given(forests(), st.integers(0, 2**32 - 1))
def test_a_row_of_known_values_satisfies_the_path_of_its_leaf_and_of_no_other(forest, seed):
    forest = dataclasses.replace(
        forest,
        categories=dataclasses.replace(forest.categories, other_left=np.zeros_like(forest.categories.other_left)),
    )
    views = list(node_views(forest))
    rows = random_rows(np.random.default_rng(seed), 5, forest.n_features)
    for x in np.where(np.isnan(rows), 0.0, rows):
        ends = {
            forest.tree_start[view.tree] + view.node
            for view in views
            if view.is_leaf and all(holds(condition, x, np.dtype(forest.input_dtype)) for condition in view.path)
        }
        assert ends == {walk(forest, tree, x) for tree in range(forest.n_trees)}


def test_conditions_read_like_comparisons():
    assert str(Condition(3, "petal width", 0.800000011920929, goes_left=True)) == "petal width <= 0.8"
    assert str(Condition(3, "petal width", 0.8, goes_left=False)) == "petal width > 0.8"
    assert str(Condition(3, None, 0.8, goes_left=True, comparison="<")) == "x[3] < 0.8"
    assert str(Condition(3, None, 0.8, goes_left=False, comparison="<")) == "x[3] >= 0.8"
    assert str(Condition(1, "colour", np.nan, goes_left=True, categories=(0, 2))) == "colour in {0, 2}"
    assert str(Condition(1, "colour", np.nan, goes_left=False, categories=(0, 2))) == "colour not in {0, 2}"


def test_categories_are_those_that_go_left():
    adapter = adapt(case("hist boosting classifier, categories").model)
    conditions = {c for view in node_views(adapter) for c in view.path if c.categories is not None}
    assert {c.feature_name for c in conditions} <= {"colour", "size"}
    assert conditions
    forest, rows = adapter.forest, adapter.rows(case("hist boosting classifier, categories").X)
    v = int(np.flatnonzero(forest.categories.row != -1)[0])
    below = next(view for v_, view in zip(range(forest.n_nodes), node_views(adapter), strict=False) if v_ == v + 1)
    known = rows[~np.isnan(rows[:, forest.feature[v]])]
    for x in known:
        assert (step(forest, v, x) == v + 1) == holds(below.path[-1], x, np.dtype(forest.input_dtype))


def test_a_view_is_read_only():
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    view = next(node_views(DecisionTreeClassifier().fit(X, y)))
    assert isinstance(view, NodeView)
    with pytest.raises(dataclasses.FrozenInstanceError):
        view.depth = 3
    with pytest.raises(ValueError, match="read-only"):
        view.value[0] = 3.0


def test_a_leaf_has_no_feature_and_no_threshold():
    (leaf,) = node_views(DecisionTreeClassifier().fit([[0.0], [1.0]], [1, 1]))
    assert leaf.is_leaf
    assert (leaf.feature, leaf.feature_name, leaf.path) == (-1, None, ())
    assert np.isnan(leaf.threshold)
