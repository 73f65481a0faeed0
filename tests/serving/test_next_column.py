"""The kernel that chooses the next column agrees with a plain search that adds prices exactly."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from secateur.costs import FeatureCost
from secateur.kernels.serving.lazy_routing import NOTHING, REQUESTED, UNAFFORDABLE, WAITING, next_column
from secateur.serving import LazyPredictor


class State:
    """A random row during lazy routing; prices, purchases and the limit are whole numbers of tenths."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n_columns, n_trees = rng.integers(1, 6), rng.integers(1, 8)
        self.resources = np.column_stack(
            [np.arange(n_columns), np.where(rng.random(n_columns) < 0.5, n_columns, -1)]
        ).astype(np.int32)
        self.tenths = rng.integers(0, 5, n_columns + 1)
        self.owned = rng.random(n_columns + 1) < 0.3
        self.limit = int(rng.integers(0, 12))
        self.needs = rng.integers(-1, n_columns, n_trees).astype(np.int32)
        self.requested = rng.random(n_columns) < 0.2
        self.gain = rng.integers(0, 4, n_columns).astype(np.float64)

    def chosen(self):
        """Return the column the kernel chooses."""
        paid, chosen = 0.0, np.empty(1, np.int64)
        for tenths in self.tenths[self.owned]:
            paid += tenths / 10
        next_column(
            np.zeros(1, np.intp), np.where(self.requested, REQUESTED, 0).astype(np.uint8)[None], self.needs[None],
            self.gain[None], self.resources, self.tenths[None] / 10, self.owned[None], np.array([paid]),
            self.limit / 10, chosen,
        )  # fmt: skip
        return chosen[0]

    def searched(self):
        """Return the affordable column with the largest gain per price, found by trying all columns."""
        needed = {int(column) for column in self.needs if column != -1}
        if not needed:
            return NOTHING
        paid = sum(self.tenths[self.owned].tolist())
        ranked = []
        for column in needed - set(np.flatnonzero(self.requested)):
            unpaid = [r for r in self.resources[column] if r != -1 and not self.owned[r]]
            if paid + sum(self.tenths[unpaid].tolist()) > self.limit:
                continue
            price = sum(self.tenths[r] / 10 for r in unpaid)
            ranked.append((price == 0, self.gain[column] / (price or 1.0), -column))
        if ranked:
            return -max(ranked)[2]
        return WAITING if any(self.requested[list(needed)]) else UNAFFORDABLE


def test_the_next_column_is_the_one_a_full_search_finds():
    found = []
    for seed in range(2000):
        state = State(seed)
        found.append(state.chosen())
        assert found[-1] == state.searched(), seed
    assert {NOTHING, UNAFFORDABLE, WAITING, 0, 4} <= set(found)


@pytest.mark.parametrize(
    ("prices", "max_cost"), [([0.1, 0.2], 0.3), ([0.2, 0.1], 0.3), ([0.1, 0.7], 0.8), ([1e-9, 2e-9], 3e-9), ([0, 0], 0)]
)
def test_prices_that_sum_to_the_limit_up_to_rounding_are_all_bought(prices, max_cost):
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    model = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 3.0])
    predictor = LazyPredictor(model, FeatureCost(prices))
    answers = predictor.predict(X, max_cost=max_cost)
    assert answers.bought.all()
    assert answers.certain.all()
    assert predictor.predict_one(X[0].__getitem__, max_cost=max_cost).certain
    if max_cost:
        assert set(predictor.predict(X, max_cost=max_cost * (1 - 1e-9)).stopped) == {"capped"}


def test_a_thousand_prices_that_sum_to_the_limit_up_to_rounding_are_all_bought():
    n, price = 1000, 0.3
    X = np.vstack([np.zeros(n), np.eye(n)])
    # A chain of splits: the row of zeros is separated from every other row by its own column.
    model = DecisionTreeRegressor().fit(X, np.arange(n + 1.0))
    last = int(model.decision_path(X).sum(axis=1).argmax())
    needed = model.tree_.max_depth
    answers = LazyPredictor(model, FeatureCost([price] * n)).predict(X[[last]], max_cost=needed * price)
    assert answers.bought.sum() == needed
    assert answers.certain.all()
