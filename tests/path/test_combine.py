"""Joining and thinning paths."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

import secateur as sc
from secateur.path.combine import join_paths
from secateur.path.rules import evenly_spaced


def paths_of_trees(*depths):
    X, y = load_wine(return_X_y=True)
    models = [sc.as_forest(DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)) for depth in depths]
    return [sc.prune_path(model, X, y, solver="weakest_link") for model in models]


def test_the_unpruned_forest_of_two_paths_of_one_model_is_one_point():
    (path,) = paths_of_trees(None)
    joined = join_paths([path, path.take(np.arange(3))], ["a", "b"])
    assert len(joined) == len(path) + 2
    assert joined.table["origin"].tolist().count("b") == 2
    assert (np.diff(joined.table["cost"]) <= 0).all()


def test_the_unpruned_forests_of_two_models_are_two_points():
    deep, shallow = paths_of_trees(None, 2)
    joined = join_paths([deep, shallow], ["", "shallow"])
    assert len(joined) == len(deep) + len(shallow)
    assert [joined[k].forest.n_nodes for k in range(len(joined))] == joined.table["n_nodes"].tolist()


def test_a_column_that_one_path_lacks_is_missing_there_and_not_in_the_table():
    deep, shallow = paths_of_trees(None, 2)
    deep.table["bound"] = np.arange(len(deep), dtype=float)
    joined = join_paths([deep, shallow], ["", "shallow"])
    assert "bound" not in joined.table
    assert np.array_equal(np.isnan(joined.column("bound")), joined.place[:, 0] == 1)


def test_evenly_spaced_points_are_those_next_below_a_grid():
    size = np.array([100.0, 99.0, 60.0, 50.0, 10.0, 0.0])
    expected = [min(k for k in range(6) if size[k] <= wanted) for wanted in (100, 75, 50, 25, 0)]
    assert evenly_spaced(size, 5).tolist() == sorted(set(expected))
    assert evenly_spaced(np.array([7.0]), 5).tolist() == [0]
