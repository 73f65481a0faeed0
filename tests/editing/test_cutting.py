"""Cutting where the user says cuts there and nowhere else."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from tests.cases import RECIPES, case
from tests.strategies import forests, generators

from secateur.editing import node_views, prune_nodes
from secateur.errors import NothingPrunedWarning
from secateur.forest.subforest import Decision, subforest
from secateur.libraries import adapt

cases = pytest.mark.parametrize("name", list(RECIPES))
may_do_nothing = pytest.mark.filterwarnings("ignore::secateur.errors.NothingPrunedWarning")


def same_forest(a, b):
    """Whether two forests are equal node by node; what a split would say as a leaf is not compared."""
    leaf = ~a.is_split
    return (
        np.array_equal(a.tree_start, b.tree_start)
        and np.array_equal(a.right, b.right)
        and np.array_equal(a.feature, b.feature)
        and np.array_equal(a.threshold[a.is_split], b.threshold[b.is_split])
        and np.array_equal(a.value[leaf], b.value[leaf])
        and np.array_equal(a.base, b.base)
    )


def cut_mask(forest, nodes):
    keep = np.ones(forest.n_nodes, bool)
    for v in nodes:
        keep[v + 1 : forest.end[v]] = False
    return keep


@cases
@may_do_nothing
def test_cutting_by_ids_is_cutting_by_mask(name):
    adapter = adapt(case(name).model)
    forest = adapter.forest
    chosen = np.flatnonzero(np.random.default_rng(0).random(forest.n_nodes) < 0.1)
    tree = np.searchsorted(forest.tree_start, chosen, side="right") - 1
    ids = adapter.native_ids()
    expected = adapt(adapter.write(Decision(cut_mask(forest, chosen)))).forest
    as_dict = {int(t): ids[chosen[tree == t]] for t in np.unique(tree)}
    as_lists = [ids[chosen[tree == t]].tolist() for t in range(forest.n_trees)]
    for nodes in (as_dict, as_lists):
        small = prune_nodes(case(name).model, nodes)
        assert type(small) is type(case(name).model)
        assert same_forest(adapt(small).forest, expected)


@cases
@may_do_nothing
def test_after_asking_no_split_is_left_that_should_be_cut(name):
    model = case(name).model
    before = pickle.dumps(model)
    small = prune_nodes(model, lambda node: node.weight < 30)
    assert not [view for view in node_views(small) if not view.is_leaf and view.weight < 30]
    large = {(v.tree, v.path) for v in node_views(model) if not v.is_leaf and v.weight >= 30}
    assert large == {(v.tree, v.path) for v in node_views(small) if not v.is_leaf}
    assert pickle.dumps(model) == before


@given(forests(), generators)
@may_do_nothing
def test_asking_is_naming_and_only_splits_still_there_are_asked_about(forest, rng):
    yes = rng.random(forest.n_nodes) < 0.3
    asked = []

    def question(view):
        asked.append(forest.tree_start[view.tree] + view.node)
        return yes[asked[-1]]

    small = prune_nodes(forest, question)
    keep = cut_mask(forest, np.flatnonzero(yes))
    assert same_forest(small, subforest(forest, Decision(keep)))
    assert asked == np.flatnonzero(keep & forest.is_split).tolist()


def test_scikit_learn_agrees_on_a_tree_grown_best_first():
    c = case("tree classifier, best first")
    tree = c.model.tree_
    node = next(v for v in range(1, tree.node_count) if tree.children_left[v] != -1)
    small = prune_nodes(c.model, [node])
    below = np.asarray(c.model.decision_path(c.X)[:, node].todense()).ravel() == 1
    assert np.array_equal(small.predict_proba(c.X)[below], np.tile(tree.value[node, 0], (below.sum(), 1)))
    assert np.array_equal(small.predict_proba(c.X)[~below], c.model.predict_proba(c.X)[~below])


def test_cutting_below_the_root_leaves_one_node():
    tree = case("tree classifier").model
    assert prune_nodes(tree, [0]).tree_.node_count == 1
    assert prune_nodes(tree, np.array([0])).tree_.node_count == 1
    assert prune_nodes(tree, {0}).tree_.node_count == 1
    assert prune_nodes(tree, [[0]]).tree_.node_count == 1
    assert prune_nodes(tree, [{0}]).tree_.node_count == 1


def test_naming_a_leaf_or_nothing_warns_and_changes_nothing():
    tree = case("tree classifier").model
    leaf = int(tree.apply(case("tree classifier").X)[0])
    for nodes in ([leaf], [], {}, {0: []}, lambda node: False):
        with pytest.warns(NothingPrunedWarning, match="Nothing was pruned"):
            small = prune_nodes(tree, nodes)
        assert small is not tree
        assert same_forest(adapt(small).forest, adapt(tree).forest)


def test_naming_a_leaf_among_splits_is_fine():
    tree = case("tree classifier").model
    leaf = int(tree.apply(case("tree classifier").X)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prune_nodes(tree, [leaf, 0]).tree_.node_count == 1


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({0: [10_000]}, r"Tree 0 has no node 10000; its nodes are numbered 0 to \d+\. Pass"),
        ({1: [-1]}, "Tree 1 has no node -1;"),
        ({7: [0]}, "There is no tree 7; the model has trees 0 to 2"),
        ({-1: [0]}, "There is no tree -1;"),
        ({"first": [0]}, "There is no tree 'first';"),
        ([[0], [0]], r"Got \[\[0\], \[0\]\] for a model of 3 trees; .* Pass a dict"),
        ([0, 1, 2], "for a model of 3 trees"),
        ([[0], 1, 2], "Got node ids of type int"),
        (3, "Got 3 for a model of 3 trees"),
        ({0: [0.5]}, "Got node ids of type float64"),
        ({0: [True, False]}, "From a mask of nodes, pass np.flatnonzero"),
        ({0: [[0], [1]]}, r"shape \(2, 1\)"),
        ({0: 3}, "Got node ids of type int"),
    ],
)
def test_what_is_wrong_with_the_nodes_is_said(nodes, message):
    X = np.random.default_rng(0).normal(size=(30, 2))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=message):
        prune_nodes(forest, nodes)


def test_a_mask_is_no_list_of_ids():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="flatnonzero"):
        prune_nodes(tree, np.array([True, False, False]))
