"""Compare methods within feature budgets: each method yields candidate models, validation rows choose among them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from time import process_time
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np

import secateur as sc
from benchmarks.feature_contest import PriceList, buy
from benchmarks.feature_curves import Floats, divide, error_of, grow
from benchmarks.load import Data
from secateur.losses import ZeroOne
from secateur.path.combine import JoinedPath
from secateur.solvers import CostDescent, MinCut
from secateur.training import BudgetForestClassifier

SHARES = tuple(np.arange(1, 21) / 20)
"""Budgets, as fractions of the cost of the unpruned forest."""
_POINTS = 200
_TRADEOFFS = tuple(np.geomspace(1e-3, 100.0, 11))
_ALPHAS = (0.0, 2.0, 8.0)
_SIZES = (1, 2, 5, 10, 20)


class Offer(NamedTuple):
    """A candidate model: its mean price per training row, its validation error (`chosen_by`) and its test error."""

    price: float
    chosen_by: float
    error: float


@dataclass(frozen=True, eq=False)
class BudgetContest:
    """A forest, its training rows, validation rows, test rows, and prices."""

    train: Data
    validation: Data
    test: Data
    prices: PriceList
    n_trees: int
    seed: int

    @classmethod
    def draw(cls, data: Data, prices: PriceList | None, n_trees: int, n_rows: int, seed: int) -> "BudgetContest":
        """Return a random split of at most `n_rows` rows: 40 % train, 20 % validation, 40 % test; 60/20/20 if few."""
        data = data.sample(n_rows, seed)
        few = len(data.y) < 1_000
        train, rest = divide(data, 0.4 if few else 0.6, seed)
        test, validation = divide(rest, 0.5 if few else 1 / 3, seed)
        if prices is None:
            columns = np.arange(data.X.shape[1])
            prices = PriceList(columns, np.ones(len(columns)), {})
        some = (replace(part, X=part.X[:, prices.columns]) for part in (train, validation, test))
        return cls(*some, prices, n_trees, seed)

    @cached_property
    def model(self) -> Any:
        """The forest that is pruned."""
        return grow(self.train, self.n_trees, self.seed)

    @cached_property
    def whole(self) -> float:
        """The mean price of the unpruned forest per training row."""
        return self.prices.cost.mean_price(self.model, self.train.X)

    def offers(self, seconds: dict[str, float]) -> Iterator[tuple[str, list[Offer]]]:
        """Yield every method with its candidates; write the processor time of each to `seconds`."""
        for methods in (self._cuts, self._descents, self._retrained, self._boosted, self._grown_cheap):
            start = process_time()
            found = methods()
            for name, offers in found.items():
                seconds[name] = process_time() - start
                yield name, [*offers, self._constant]

    @cached_property
    def _constant(self) -> Offer:
        common = np.bincount(self.train.y).argmax()
        return Offer(0.0, float(np.mean(self.validation.y != common)), float(np.mean(self.test.y != common)))

    def offer(self, model: Any) -> Offer:
        """Return the candidate for a model that is not on a path."""
        price = self.prices.cost.mean_price(model, self.train.X)
        return Offer(price, error_of(model, self.validation), error_of(model, self.test))

    def points(self, path: sc.Path) -> list[Offer]:
        """Return the candidates of a path, one per point."""
        chosen_by, error = (
            path.evaluate(rows.X, rows.y, loss=ZeroOne()).table["loss"] for rows in (self.validation, self.test)
        )
        return list(map(Offer, path.table["cost"].tolist(), chosen_by.tolist(), error.tolist()))

    def _path(self, solver: Any, model: Any = None, **options: Any) -> sc.Path:
        given = self.model if model is None else model
        return sc.prune_path(given, self.train.X, self.train.y, solver=solver, cost=self.prices.cost, **options)

    def _cuts(self) -> dict[str, list[Offer]]:
        """Return the candidates of MinCut."""
        scopes: tuple[Any, ...] = ("ensemble", "individual")
        return {f"cut_{scope}": self.points(self._path(MinCut(scope=scope)).thin(_POINTS)) for scope in scopes}

    def _descents(self) -> dict[str, list[Offer]]:
        """Return the candidates of CostDescent, without and with regrown clones."""
        budgets = tuple(self.whole * share for share in SHARES)
        path = self._path(CostDescent(max_cost=budgets), regrow=True)
        assert isinstance(path, JoinedPath)
        return {"cost_descent": self.points(path.parts[0]), "regrow": self.points(path)}

    def _retrained(self) -> dict[str, list[Offer]]:
        """Return the candidates of forests retrained on subsets of the features."""
        found = {}
        for name, per_price in (("top_k", False), ("per_price", True)):
            baskets = [buy(self.model.feature_importances_, self.prices, self.whole * s, per_price) for s in SHARES]
            offers = [self.offer(self.model)]
            for feature_set in dict.fromkeys(feature_set for feature_set in baskets if feature_set):
                blank = np.zeros_like(self.train.X)
                blank[:, feature_set] = self.train.X[:, feature_set]
                offers.append(self.offer(grow(replace(self.train, X=blank), self.n_trees, self.seed)))
            found[name] = offers
        return found

    def _boosted(self) -> dict[str, list[Offer]]:
        """Return the candidates of LightGBM with its penalties on splits, on features, and on features by row."""
        prices = self.prices.prices + self._shared
        kinds: list[dict[str, Any]] = [
            {"cegb_penalty_split": 1.0},
            {"cegb_penalty_feature_coupled": prices.tolist()},
            {"cegb_penalty_feature_lazy": prices.tolist()},
        ]
        offers = []
        for tradeoff in _TRADEOFFS:
            for kind in kinds:
                lazy = "cegb_penalty_feature_lazy" in kind
                scale = tradeoff / (len(self.train.y) if lazy else 1.0)
                booster = lgb.LGBMClassifier(
                    n_estimators=self.n_trees, random_state=self.seed, n_jobs=1, verbose=-1, cegb_tradeoff=scale, **kind
                )
                offers.append(self.offer(booster.fit(self.train.X, self.train.y)))
        return {"lightgbm_cegb": offers}

    @property
    def _shared(self) -> Floats:
        """The price of each group divided evenly among its features, since LightGBM has no groups."""
        extra = np.zeros(len(self.prices.prices))
        for price, members in self.prices.groups.values():
            extra[members] += price / len(members)
        return extra

    def _grown_cheap(self) -> dict[str, list[Offer]]:
        """Return the candidates of BudgetRF for several sizes, and those of the largest pruned by MinCut."""
        plain, pruned = [], []
        for alpha in _ALPHAS:
            for n_trees in (*_SIZES, self.n_trees):
                model = BudgetForestClassifier(
                    self.prices.cost, alpha=alpha, n_estimators=n_trees, random_state=self.seed
                ).fit(self.train.X, self.train.y)
                plain.append(self.offer(model))
            pruned += self.points(self._path(MinCut(), model).thin(_POINTS))
        return {"budget_rf": plain, "budget_rf_cut": plain + pruned}


def best_within(offers: list[Offer], budget: float) -> Offer:
    """Return the candidate within the budget with the lowest validation error; ties go to the cheapest."""
    return min((offer for offer in offers if offer.price <= budget * (1 + 1e-9)), key=lambda o: (o.chosen_by, o.price))


def unreached(offers: list[Offer], budgets: list[float]) -> float:
    """Return the largest unused part of a budget, over all budgets, by the most expensive candidate within it."""
    return max(
        budget - max(offer.price for offer in offers if offer.price <= budget * (1 + 1e-9)) for budget in budgets
    )
