"""The trees a page draws are those of the path, at every point."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

import secateur as sc
from secateur.forest.subforest import raises
from secateur.reporting import describe
from secateur.reporting import tree_shapes as trees


def present(changes, point):
    return sum(change <= point for change in changes) % 2 == 0


def nodes_of(tree, path):
    """Return the forest's number of each node told, found by walking both from the root."""
    forest = path.forest
    number = {0: int(forest.tree_start[tree["tree"]])}
    for node in range(len(tree["left"])):
        if tree["left"][node] != -1:
            number[tree["left"][node]] = number[node] + 1
            number[tree["right"][node]] = int(forest.right[number[node]])
    return [number[node] for node in range(len(tree["left"]))]


@pytest.fixture(params=["nested", "packed", "folded", "raised"])
def trees_and_path(request, single, ensemble, monkeypatch):
    if request.param == "nested":
        path = single.path
    elif request.param == "raised":
        X, y = load_diabetes(return_X_y=True)
        model = DecisionTreeRegressor(random_state=0).fit(X[:150], y[:150])
        path = sc.prune_path(model, X[150:], y[150:], solver=sc.solvers.ReducedError(raising=True))
        assert any(raises(path.forest, path.masks.keep(point)) for point in range(len(path)))
    else:
        path = ensemble.path
    if request.param == "folded":
        monkeypatch.setattr(trees, "MOST_TREES", 5)
        monkeypatch.setattr(trees, "MOST_NODES", 5 * 11)
    return describe(path)["trees"], path


def test_nodes_come_and_go_as_the_path_says(trees_and_path):
    trees, path = trees_and_path
    for tree in trees:
        nodes = nodes_of(tree, path)
        for point in range(len(path)):
            keep = path.masks.keep(point)
            there = [present(changes, point) for changes in tree["changes"]]
            assert there == keep[nodes].tolist()
            opened = [present(changes, point) for changes in tree["opens"]]
            assert opened == [keep[v] and bool(keep[v + 1 : path.forest.end[v]].any()) for v in nodes]
            start, stop = path.forest.tree_start[tree["tree"] : tree["tree"] + 2]
            assert tree["sizes"][point] == keep[start:stop].sum()


def test_every_node_of_a_tree_is_described_or_counted(trees_and_path):
    trees, _ = trees_and_path
    for tree in trees:
        assert len(tree["left"]) + sum(tree["hidden"]) == tree["sizes"][0]


def test_conditions_are_those_of_the_splits(trees_and_path):
    trees, path = trees_and_path
    for tree in trees:
        for node, question in zip(nodes_of(tree, path), tree["question"], strict=True):
            assert (question == "") == (not path.forest.is_split[node])
            if question:
                assert question.endswith(f"≤ {path.forest.threshold[node]:.4g}")


def test_leaf_values_are_those_of_the_pruned_forest(ensemble):
    path = ensemble.path
    trees = describe(path)["trees"]
    assert len(trees) == 24 < path.forest.n_trees
    for tree in trees:
        nodes = np.array(nodes_of(tree, path))
        for point in range(1, len(path)):
            keep = path.masks.keep(point)
            ends = [v for v in nodes if keep[v] and not (path.forest.is_split[v] and keep[v + 1])]
            pruned = path.decision(point).value[ends]
            learned = tree["new"][str(point)]
            assert learned["class"] == pruned.argmax(axis=1).tolist()
            assert learned["value"] == pytest.approx(pruned.max(axis=1).tolist(), rel=1e-3, abs=1e-12)


def test_too_many_values_are_given_at_fewer_points(ensemble, monkeypatch):
    def count():
        return sum(len(entry["value"]) for tree in describe(ensemble.path)["trees"] for entry in tree["new"].values())

    all_of_them = count()
    monkeypatch.setattr(trees, "MOST_VALUES", all_of_them // 3)
    assert 0 < count() <= all_of_them // 2


def test_support_is_described(single):
    path = sc.prune_path(single.model, *single.prune, solver=sc.solvers.MaxHeap(subsamples=5))
    (tree,) = describe(path)["trees"]
    assert tree["support"] == pytest.approx(path.support[nodes_of(tree, path)].tolist(), rel=1e-3)


def test_a_tree_of_a_booster_names_the_class_it_feeds():
    from sklearn.datasets import load_iris
    from sklearn.ensemble import GradientBoostingClassifier

    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0).fit(X, y)
    trees = describe(sc.prune_path(model, X, y, solver="weakest_link"))["trees"]
    assert [tree["feeds"] for tree in trees] == ["0", "1", "2"] * 2
    assert "class" not in trees[0]
