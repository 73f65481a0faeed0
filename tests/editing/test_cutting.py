"""Pruning at given nodes removes their descendants and nothing else."""

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
    """Return whether two forests are equal node by node; the values of splits are not compared."""
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
def test_no_split_that_satisfies_the_predicate_remains(name):
    model = case(name).model
    before = pickle.dumps(model)
    small = prune_nodes(model, lambda node: node.weight < 30)
    assert not [view for view in node_views(small) if not view.is_leaf and view.weight < 30]
    large = {(v.tree, v.path) for v in node_views(model) if not v.is_leaf and v.weight >= 30}
    assert large == {(v.tree, v.path) for v in node_views(small) if not v.is_leaf}
    assert pickle.dumps(model) == before


@given(forests(), generators)
@may_do_nothing
def test_a_predicate_is_called_only_for_splits_that_are_still_there(forest, rng):
    pruned = rng.random(forest.n_nodes) < 0.3
    visited = []

    def predicate(view):
        visited.append(forest.tree_start[view.tree] + view.node)
        return pruned[visited[-1]]

    small = prune_nodes(forest, predicate)
    keep = cut_mask(forest, np.flatnonzero(pruned))
    assert same_forest(small, subforest(forest, Decision(keep)))
    assert visited == np.flatnonzero(keep & forest.is_split).tolist()


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


def test_a_leaf_or_no_node_warns_and_changes_nothing():
    tree = case("tree classifier").model
    leaf = int(tree.apply(case("tree classifier").X)[0])
    for nodes in ([leaf], [], {}, {0: []}, lambda node: False):
        with pytest.warns(
            NothingPrunedWarning, match="Nothing was pruned, because none of the given nodes has descendants"
        ):
            small = prune_nodes(tree, nodes)
        assert small is not tree
        assert same_forest(adapt(small).forest, adapt(tree).forest)


def test_a_leaf_among_splits_does_not_warn():
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
        ({7: [0]}, "The model has no tree 7; its trees are numbered 0 to 2"),
        ({-1: [0]}, "The model has no tree -1;"),
        ({"first": [0]}, "The model has no tree 'first';"),
        ([[0], [0]], r"Got \[\[0\], \[0\]\] for a model of 3 trees, but .* Pass a dict"),
        ([0, 1, 2], "for a model of 3 trees"),
        ([[0], 1, 2], "Got node ids of type int"),
        (3, "Got 3 for a model of 3 trees, but"),
        ({0: [0.5]}, "Got node ids of type float64"),
        ({0: [True, False]}, "To use a mask of nodes, pass np.flatnonzero"),
        ({0: [[0], [1]]}, r"shape \(2, 1\)"),
        ({0: 3}, "Got node ids of type int"),
    ],
)
def test_invalid_nodes_are_refused(nodes, message):
    X = np.random.default_rng(0).normal(size=(30, 2))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=message):
        prune_nodes(forest, nodes)


def test_a_mask_instead_of_ids_is_refused():
    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="flatnonzero"):
        prune_nodes(tree, np.array([True, False, False]))
