"""Compare methods under feature cost: pruned forests, and forests retrained on fewer features."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import secateur as sc
from benchmarks.feature_curves import Floats, Rows, error_of, grow
from benchmarks.load import Data
from benchmarks.results import Row
from secateur.costs import FeatureCost
from secateur.costs.price_file import read_prices
from secateur.solvers import MinCut

POINTS = 256
"""Number of points of a path that are evaluated, as in prune()."""
_CUTS = {"ensemble": MinCut(), "individual": MinCut(scope="individual")}
_STEPS = 20
"""Number of budgets for retrained forests, evenly spaced up to the unpruned cost."""


@dataclass(frozen=True, eq=False)
class PriceList:
    """Prices of the columns of X that have one, and prices of feature groups.

    Attributes
    ----------
    columns : (n_priced,)
        The columns of X that are used.
    prices : (n_priced,)
    groups : dict of name: (price, numbers of features)
    """

    columns: Rows
    prices: Floats
    groups: Mapping[str, tuple[float, list[int]]]

    @classmethod
    def read(cls, file: Path) -> "PriceList":
        """Read a file whose lines are in the order of the columns; features without a price are left out."""
        priced = pd.read_csv(file).dropna(subset=["cost"])
        with TemporaryDirectory() as folder:
            priced.to_csv(Path(folder) / "prices.csv", index=False)
            prices, groups = read_prices(Path(folder) / "prices.csv")
        names = list(prices)
        numbered = {name: (price, [names.index(one) for one in of]) for name, (price, of) in groups.items()}
        return cls(priced.index.to_numpy(), np.array(list(prices.values())), numbered)

    @property
    def cost(self) -> FeatureCost:
        """The prices as a `FeatureCost`."""
        return FeatureCost(self.prices, dict(self.groups))

    def total(self, features: tuple[int, ...]) -> float:
        """Return the price of all of these features for one row."""
        shared = sum(price for price, members in self.groups.values() if set(members) & set(features))
        return float(self.prices[list(features)].sum() + shared)


@dataclass(frozen=True, eq=False)
class Contest:
    """A forest, its training rows, validation rows, test rows, and prices."""

    model: Any
    train: Data
    validation: Data
    test: Data
    prices: PriceList
    seed: int

    def outcomes(self, shares: tuple[float, ...]) -> Iterator[Row]:
        """Yield method, budget, test error and test cost; budget and cost are fractions of the unpruned cost."""
        on_train, on_test = (self.prices.cost.mean_price(self.model, some.X) for some in (self.train, self.test))
        for share in shares:
            yield {"method": "unpruned", "budget": share, "error": error_of(self.model, self.test), "cost": 1.0}
        rows = {"validation": (self.validation.X, self.validation.y), "cost": self.prices.cost}
        for share in shares:
            small = sc.prune(self.model, self.train.X, self.train.y, max_cost=share * on_train, **rows)
            cost = self.prices.cost.mean_price(small, self.test.X) / on_test
            yield {"method": "prune", "budget": share, "error": error_of(small, self.test), "cost": cost}
        for name, solver in _CUTS.items():
            path = sc.prune_path(self.model, self.train.X, self.train.y, solver=solver, cost=self.prices.cost)
            for share in shares:
                small = self._chosen(path, share * on_train)
                cost = self.prices.cost.mean_price(small, self.test.X) / on_test
                yield {"method": name, "budget": share, "error": error_of(small, self.test), "cost": cost}
        for name in ("top_k", "per_price"):
            offers = list(self._retrained(on_train, per_price=name == "per_price"))
            for share in shares:
                paid = [offer for offer in offers if offer[1] <= share * on_train]
                _, price, error = min(paid, key=lambda offer: offer[:2])
                yield {"method": name, "budget": share, "error": error, "cost": price / on_train}

    def _chosen(self, path: sc.Path, budget: float) -> Any:
        """Return the point of the path with the lowest validation error within the budget."""
        within = path.thin(POINTS, max_cost=budget).evaluate(self.validation.X, self.validation.y)
        return within.select(max_cost=budget).to_model()

    def _retrained(self, unpruned_cost: float, *, per_price: bool) -> Iterator[tuple[float, float, float]]:
        """Yield validation error, price and test error of a constant, of retrained forests, and of the forest.

        Every row pays for all features of a retrained forest.
        """
        common = np.bincount(self.train.y).argmax()
        yield float(np.mean(self.validation.y != common)), 0.0, float(np.mean(self.test.y != common))
        budgets = unpruned_cost * np.arange(1, _STEPS + 1) / _STEPS
        baskets = [buy(self.model.feature_importances_, self.prices, budget, per_price) for budget in budgets]
        for feature_set in dict.fromkeys(feature_set for feature_set in baskets if feature_set):
            some = [replace(data, X=data.X[:, feature_set]) for data in (self.train, self.validation, self.test)]
            model = grow(some[0], len(self.model.estimators_), self.seed)
            yield error_of(model, some[1]), self.prices.total(feature_set), error_of(model, some[2])
        yield error_of(self.model, self.validation), unpruned_cost, error_of(self.model, self.test)


def buy(importance: Floats, prices: PriceList, budget: float, per_price: bool) -> tuple[int, ...]:
    """Return features within a budget, chosen greedily by importance among those still affordable.

    With `per_price`, importance is divided by the additional price, including prices of groups.
    """
    feature_set: tuple[int, ...] = ()
    while True:
        spent = prices.total(feature_set)
        extra = {k: prices.total((*feature_set, k)) - spent for k in range(len(importance)) if k not in feature_set}
        fits = {k: price for k, price in extra.items() if spent + price <= budget}
        if not fits:
            return tuple(sorted(feature_set))
        worth = {k: importance[k] / (max(price, 1e-9) if per_price else 1.0) for k, price in fits.items()}
        feature_set += (max(worth, key=lambda k: worth[k]),)
