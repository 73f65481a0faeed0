"""Feature cost: prices in every form, groups, prices by row, and invalid prices."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import secateur as sc
from secateur.costs import FeatureCost
from secateur.errors import InvalidInputError, TrainingRowsWarning
from secateur.selection.evaluated_path import evaluated_path

IRIS = load_iris(as_frame=True)
NAMES = list(IRIS.data.columns)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(10, random_state=0).fit(IRIS.data, IRIS.target)


def unpruned_cost(model, cost, X=IRIS.data):
    return sc.prune_path(model, X, IRIS.target, solver="min_cut", cost=cost).table["cost"][0]


def test_prices_are_the_same_in_every_form(forest, tmp_path):
    prices = [1.0, 2.5, 0.0, 4.0]
    by_name = dict(zip(NAMES, prices, strict=True))
    file = tmp_path / "prices.csv"
    pd.DataFrame({"feature": NAMES, "cost": prices}).to_csv(file, index=False)
    costs = [
        prices,
        np.array(prices),
        by_name,
        dict(enumerate(prices)),
        dict(reversed(by_name.items())),
        file,
        str(file),
    ]
    found = [unpruned_cost(forest, FeatureCost(form)) for form in costs]
    assert found == [found[0]] * len(found)
    assert found[0] == FeatureCost(prices).mean_price(forest, IRIS.data)


def test_a_group_is_paid_once_for_a_row(forest):
    X = IRIS.data
    plain = FeatureCost([1, 1, 1, 1])
    grouped = FeatureCost([1, 1, 1, 1], {"petal": (10.0, [NAMES[2], 3])})
    met = np.zeros((len(X), 4), bool)
    for tree in forest.estimators_:
        passed = tree.decision_path(X.to_numpy(np.float32)).toarray().astype(bool)
        for v in np.flatnonzero(tree.tree_.children_left != -1):
            met[passed[:, v], tree.tree_.feature[v]] = True
    assert plain.mean_price(forest, X) == pytest.approx(met.sum(axis=1).mean())
    assert grouped.mean_price(forest, X) == pytest.approx((met.sum(axis=1) + 10 * met[:, 2:].any(axis=1)).mean())


def test_discounts_in_a_file_are_prices_of_groups(forest, tmp_path):
    file = tmp_path / "prices.csv"
    frame = pd.DataFrame(
        {"feature": NAMES, "cost": [1, 1, 7, 5], "discount_cost": [1, 1, 5, 3], "group": ["", "", "lab", "lab"]}
    )
    frame.to_csv(file, index=False)
    by_hand = FeatureCost([1, 1, 5, 3], {"lab": (2.0, NAMES[2:])})
    assert unpruned_cost(forest, FeatureCost(file)) == pytest.approx(unpruned_cost(forest, by_hand))


def test_rows_may_have_prices_of_their_own():
    X, y = IRIS.data.to_numpy(), IRIS.target
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    row_prices = np.arange(600.0).reshape(150, 4)
    used = tree.tree_.feature[0]
    assert unpruned_cost(tree, FeatureCost(row_prices=row_prices), X) == pytest.approx(row_prices[:, used].mean())
    rng = np.random.default_rng(0)
    making = np.sort(rng.permutation(150)[38:])
    with pytest.warns(TrainingRowsWarning):
        path = evaluated_path(tree, X, y, cost=FeatureCost(row_prices=row_prices), solver="min_cut", validation=0.25)
    assert path.table["cost"][0] == pytest.approx(row_prices[making, used].mean())


def test_a_feature_that_is_free_for_one_row_has_its_price_for_the_others():
    X, y = IRIS.data.to_numpy(), IRIS.target
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    row_prices = np.full((150, 4), 3.0)
    row_prices[0] = 0.0
    assert unpruned_cost(tree, FeatureCost(row_prices=row_prices), X) == pytest.approx(3.0 * 149 / 150)


def test_prices_of_rows_follow_the_rows_into_clones():
    X, y = IRIS.data.to_numpy(), IRIS.target.to_numpy()
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    prices = np.random.default_rng(0).uniform(1, 2, (150, 4))
    path = evaluated_path(forest, X, y, cost=FeatureCost(row_prices=prices), solver="min_cut", validation="cv")
    assert path.info.clones == 5


def test_a_model_without_names_takes_prices_in_their_order():
    X, y = IRIS.data.to_numpy(), IRIS.target
    tree = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    prices = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert FeatureCost(prices).mean_price(tree, X) == list(prices.values())[tree.tree_.feature[0]]


@pytest.mark.parametrize(
    ("cost", "reason"),
    [
        ({"prices": [1, 1, 1]}, "4 features"),
        ({"prices": [1, 1, 1, -2]}, "-2"),
        ({"prices": [1, 1, 1, np.nan]}, "nan"),
        ({"prices": [1, 1, 1, np.inf]}, "inf"),
        ({"prices": dict.fromkeys(NAMES[:3], 1.0)}, "no entry for 'petal width"),
        ({"prices": {**dict.fromkeys(NAMES[:3], 1.0), "petal widht (cm)": 1.0}}, "Did you mean 'petal width"),
        ({"prices": {**dict.fromkeys(NAMES, 1.0), 9: 1.0}}, "indices from 0"),
        ({"groups": {"a": (1.0, [0, 1]), "b": (1.0, [1])}}, "already in a group"),
        ({"groups": {"a": (1.0, [0, 0])}}, "already in a group"),
        ({"groups": {"a": (-1.0, [0])}}, "-1"),
        ({"groups": {"a": (1.0, ["colour"])}}, "'colour'"),
        ({"row_prices": np.ones((150, 3))}, "150 rows and 4 features"),
        ({"row_prices": np.ones((149, 4))}, "149"),
        ({"row_prices": np.ones((160, 4))}, "160 rows"),
        ({"row_prices": -np.ones((150, 4))}, "-1"),
    ],
)
def test_invalid_prices_are_refused(forest, cost, reason):
    with pytest.raises(InvalidInputError, match=reason):
        unpruned_cost(forest, FeatureCost(**cost))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ({"name": NAMES, "cost": [1, 1, 1, 1]}, "needs `feature` and `cost`"),
        ({"feature": ["a", "a"], "cost": [1, 2]}, "several prices for 'a'"),
        ({"feature": NAMES, "cost": ["much", 1, 1, 1]}, "is much, but it must be a finite number"),
        ({"feature": NAMES, "cost": [1, np.nan, 1, 1]}, "'sepal width.*missing"),
        (
            {"feature": NAMES, "cost": [4, 5, 1, 1], "discount_cost": [1, 1, 1, 1], "group": ["g", "g", "", ""]},
            r"\[3.0, 4.0\]",
        ),
    ],
)
def test_invalid_price_lists_are_refused(forest, tmp_path, frame, reason):
    file = tmp_path / "prices.csv"
    pd.DataFrame(frame).to_csv(file, index=False)
    with pytest.raises(InvalidInputError, match=reason):
        unpruned_cost(forest, FeatureCost(file))


def test_feature_names_that_look_like_numbers_are_kept(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("feature,cost\n1234567,1\n1234568,2\n0012,3\n")
    assert FeatureCost(file).listed == ({"1234567": 1.0, "1234568": 2.0, "0012": 3.0}, {})


def test_a_price_with_underscores_is_refused(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("feature,cost\na,1_000\nb,2\n")
    with pytest.raises(ValueError, match="is 1_000, but it must be a finite number"):
        _ = FeatureCost(file).listed
