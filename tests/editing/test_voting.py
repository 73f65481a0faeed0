"""Majority voting counts the labels that the trees predict."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, Y = load_digits(return_X_y=True)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_the_label_is_that_of_most_trees(kind):
    forest = kind(9, max_depth=4, random_state=0).fit(X[::2], Y[::2])
    voting = sc.majority_vote(forest)
    votes = np.array([tree.predict(X).astype(int) for tree in forest.estimators_])
    fractions = np.array([(votes == label).mean(axis=0) for label in range(10)]).T
    assert type(voting) is kind
    np.testing.assert_allclose(voting.predict_proba(X), fractions)
    assert np.array_equal(voting.predict(X), fractions.argmax(axis=1))
    assert not np.array_equal(forest.predict(X), voting.predict(X))


def test_each_target_is_voted_on_separately():
    two = np.column_stack([Y % 2, Y % 3])
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, two)
    votes = np.array([tree.predict(X) for tree in forest.estimators_])
    expected = (votes[:, :, 0] == 1).mean(axis=0)
    np.testing.assert_allclose(sc.majority_vote(forest).predict_proba(X)[0][:, 1], expected)


def test_a_single_tree_votes_for_its_label():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
    assert np.array_equal(sc.majority_vote(tree).predict(X), tree.predict(X))


@pytest.mark.parametrize("model", [GradientBoostingClassifier(n_estimators=2), RandomForestRegressor(2)])
def test_trees_without_labels_cannot_vote(model):
    rows = (X[:100], Y[:100]) if isinstance(model, GradientBoostingClassifier) else load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="cannot predict by majority vote: its trees contribute to a sum"):
        sc.majority_vote(model.fit(*rows))
