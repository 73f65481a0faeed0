"""Compare methods on one ensemble and one fold: each yields models of many sizes, and a limit selects one of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import secateur as sc
from benchmarks.folds import Floats, Fold
from benchmarks.grown_small import grow_small
from benchmarks.results import Row
from secateur.path.info import PathInfo
from secateur.path.rules import choose
from secateur.selection.evaluated_path import evaluated_path

BUDGETS = (50, 100, 1_000, 5_000, None)
"""Node budgets; None for no limit."""
INCREASES = (0.01, 0.025, 0.05)
PARTS = ("node_refit", "node_keep")
"""The solvers that auto combines. Like auto, they are refitted on training and validation rows after selection."""
GUARD = 0.5
"""As in prune(): the number of standard errors that are added to a measured loss increase."""
_BLOCKS = sc.solvers.BlockDescent


@dataclass(frozen=True, eq=False)
class Offer:
    """The candidates of a method: table and info like those of a path, and the test predictions of each of its models.

    With `uses_up`, the largest model within a budget is selected, as in prune().
    """

    table: Mapping[str, NDArray[Any]]
    info: PathInfo
    predict: Callable[[int], Floats]
    uses_up: bool = False

    def take(
        self, fold: Fold, max_nodes: int | None = None, max_loss_increase: float | None = None, aimed: bool = False
    ) -> Row:
        """Return nodes and test error of the model selected by a limit; of a constant if no model satisfies it."""
        limits = {"max_nodes": max_nodes, "max_loss_increase": max_loss_increase}
        rule = "fullest" if self.uses_up and aimed and max_nodes is not None else "lowest"
        try:
            point = choose(self.table, self.info, limits, rule, guard=GUARD)
        except ValueError:
            return {"nodes": 1, "error": fold.error(np.zeros(len(fold.test.y)))}
        return {"nodes": int(self.table["n_nodes"][point]), "error": fold.error(self.predict(point))}


@dataclass(frozen=True, eq=False)
class Contest:
    """An ensemble, the fold whose training rows it was trained on, and whether the run is quick."""

    model: Any
    fold: Fold
    quick: bool

    @property
    def solvers(self) -> dict[str, sc.solvers.Solver | str]:
        """The solvers by method name."""
        return {
            "auto": "auto",
            "node_refit": _BLOCKS(ridge=25.0),
            "node_keep": _BLOCKS(values="keep"),
            "ForestPrune": _BLOCKS(granularity="layer", values="keep"),
            "FP_polished": _BLOCKS(granularity="layer", values="keep", polish="ridge"),
            "TreeLasso": sc.solvers.TreeLasso(),
            "BestSubset": sc.solvers.BestSubset(time_limit=0.1 if self.quick else 1.0),
            "FewerTrees": sc.solvers.FewerTrees(),
            "WeakestLink": sc.solvers.WeakestLink(),
        }

    def offers(self, budgets: tuple[int | None, ...], seconds: dict[str, float]) -> Iterator[tuple[Any, str, Offer]]:
        """Yield budget, method and candidates; add the processor time of each method to `seconds`.

        Solvers that accept a node budget run once per budget, others once for all budgets.
        """
        for name, solver in self.solvers.items():
            aims = isinstance(solver, str) or solver.with_budget(max_nodes=1) != solver
            made: dict[int | None, Offer] = {}
            for budget in budgets:
                aim = budget if aims else None
                if aim not in made:
                    start = process_time()
                    made[aim] = self._path(name, solver, aim)
                    seconds[name] = seconds.get(name, 0.0) + process_time() - start
                yield budget, name, made[aim]
        start = process_time()
        small = self._small()
        seconds["grown_small"] = process_time() - start
        yield from ((budget, "grown_small", small) for budget in budgets)

    def _path(self, name: str, solver: Any, budget: int | None) -> Offer:
        """Return the candidates of a solver.

        auto and its parts are refitted on training and validation rows after selection, as prune() does by default.
        """
        train, validation, test = self.fold.train, self.fold.validation, self.fold.test
        once_more = name == "auto" or name in PARTS
        if once_more:
            X, y = np.concatenate([train.X, validation.X]), np.concatenate([train.y, validation.y])
            chosen_by = np.arange(len(y)) >= len(train.y)
            options = {"validation": chosen_by, "max_nodes": budget, "search": True}
            path = evaluated_path(self.model, X, y, solver=solver, **options)
        else:
            other = (validation.X, validation.y)
            path = evaluated_path(self.model, train.X, train.y, solver=solver, validation=other, max_nodes=budget)
        return Offer(path.table, path.info, _predictor(path, test.X), once_more)

    def _small(self) -> Offer:
        """Return the ensemble itself and small models trained directly as candidates."""
        validation, test = self.fold.validation, self.fold.test
        grown = grow_small(self.fold, self.quick)
        predictions = np.array([self.model.predict(validation.X), *(one.on_validation for one in grown)])
        squares = (predictions - validation.y) ** 2
        nodes = np.array([sc.as_forest(self.model).n_nodes, *(one.n_nodes for one in grown)])
        table = {
            "n_nodes": nodes,
            "cost": nodes,
            "loss": squares.mean(axis=1),
            "increase_se": (squares - squares[0]).std(axis=1) / len(validation.y) ** 0.5,
        }
        info = PathInfo(loss="squared_error", cost="nodes", made_on_rows=len(self.fold.train.y))
        predictors = [self.model.predict, *(one.predict for one in grown)]
        return Offer(table, info, lambda point: predictors[point](test.X))


def _predictor(path: sc.Path, X: Floats) -> Callable[[int], Floats]:
    return lambda point: path[point].predict(X).ravel().astype(np.float64)


def contest_boosting(fold: Fold, quick: bool) -> list[Row]:
    """Return the test error of every method within every node budget: section 4.2 of the paper."""
    n_trees, budgets = (20, BUDGETS[:1]) if quick else (250, BUDGETS)
    model = GradientBoostingRegressor(
        n_estimators=n_trees, max_depth=5, learning_rate=0.1, subsample=0.25, random_state=0
    ).fit(fold.train.X, fold.train.y)
    seconds: dict[str, float] = {}
    rows = []
    for budget, name, offer in Contest(model, fold, quick).offers(budgets, seconds):
        limit = "best" if budget is None else f"{budget} nodes"
        rows.append({"measure": "error", "limit": limit, "method": name, **offer.take(fold, budget, aimed=True)})
    return _complete("boosting", model, fold, rows, seconds)


def contest_bagging(fold: Fold, quick: bool) -> list[Row]:
    """Return the smallest models within every limit of the loss increase: section 4.1 of the paper."""
    n_trees, increases = (10, INCREASES[-1:]) if quick else (500, INCREASES)
    model = RandomForestRegressor(n_trees, max_depth=20, max_features="sqrt", random_state=0)
    model.fit(fold.train.X, fold.train.y)
    seconds: dict[str, float] = {}
    offers = {name: offer for _, name, offer in Contest(model, fold, quick).offers((None,), seconds)}
    rows = []
    for increase in increases:
        taken = {name: offer.take(fold, max_loss_increase=increase) for name, offer in offers.items()}
        same = {name: offer.take(fold, max_nodes=taken["auto"]["nodes"]) for name, offer in offers.items()}
        for measure, found in {"within": taken, "same size": {**same, "auto": taken["auto"]}}.items():
            limit = f"{100 * increase:g} %"
            rows += [{"measure": measure, "limit": limit, "method": name, **one} for name, one in found.items()]
    return _complete("bagging", model, fold, rows, seconds)


def _complete(experiment: str, model: Any, fold: Fold, rows: list[Row], seconds: dict[str, float]) -> list[Row]:
    """Return the rows with the columns they have in common."""
    common = {
        "experiment": experiment,
        "data": fold.test.name,
        "full_nodes": sc.as_forest(model).n_nodes,
        "full_error": fold.error(model.predict(fold.test.X)),
    }
    return [{**common, **row, "seconds": seconds[row["method"]]} for row in rows]
