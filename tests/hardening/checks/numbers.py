"""Huge, tiny or constant numbers and huge models give a correct result or an error with the reason, never NaN,
unlimited recursion or a silent overflow.
"""

import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier
from tests.feature_problems import all_prunings_of_all, random_problem, value_of
from tests.hardening import recomputed
from tests.hardening.checks import Figures
from tests.hardening.solving import all_solvers, found_path, is_clear, same_prunings
from tests.strategies import chain, stumps

import secateur as sc
from secateur.costs import FeatureCost
from secateur.data.rows import read_sample
from secateur.path import Path
from secateur.solvers import Solver

LONG = 30
"""Number of tiny closures compared with all prunings, in tens; above 1 every solver also prunes huge models."""
IN_UNITS = {"pessimistic_error", "minimum_error"}
"""Solvers that add half an error or a few rows, so their results depend on the unit of errors and weights."""
BRIEF: dict[str, Solver] = {
    "max_heap": sc.solvers.MaxHeap(penalties=2, max_iterations=20),
    "rule_lasso": sc.solvers.RuleLasso(penalties=2, max_sweeps=3),
    "block_descent": sc.solvers.BlockDescent(penalties=2, max_sweeps=2),
    "linear_program": sc.solvers.LinearProgram(penalties=2),
}
"""Settings for huge models of solvers with many penalties."""
QUICK = {"reduced_error", "weakest_link", "min_cut"}
"""Solvers that prune huge models at scale 1."""


@dataclass(frozen=True)
class Extreme:
    """A problem with an extreme number in it.

    Attributes
    ----------
    name : str
    like : tuple, optional
        An equivalent problem, (model, X, y, weight, cost), with the same prunings; the last two may be omitted.
    refused : bool
        Whether every solver must refuse the problem.
    huge : bool
        Whether recomputing would take too long; solvers then use few penalties.
    """

    name: str
    model: Any
    X: Any
    y: Any
    weight: Any = None
    cost: Any = None
    like: tuple[Any, ...] | None = None
    refused: bool = False
    huge: bool = False


def run(scale: int) -> Figures:
    """Solve every extreme problem with every solver, and compare `scale` · 10 tiny closures with brute force."""
    figures = Figures([])
    for extreme in (*_targets(), *_weights(), *_prices(), *_few(), *_huge(scale)):
        count, slowest = Counter(), (0.0, "")
        for solver in _solvers_for(extreme, scale):
            began = time.perf_counter()
            figures.bad += [f"{extreme.name}, {solver!r}: {text}" for text in _check(extreme, solver, count)]
            slowest = max(slowest, (time.perf_counter() - began, repr(solver)))
        row = {"extreme": extreme.name, "paths": count["paths"], "refused": count["refused"]}
        figures.rows.append({**row, "as in the usual unit": count["alike"], "seconds of the slowest": slowest[0]})
    n_tried, wrong = _closures(10 * scale)
    figures.rows.append({"extreme": "prices and weights whose products overflow 64 bits", "paths": n_tried})
    figures.bad += wrong
    figures.notes += _NOTES
    return figures


_NOTES = [
    "Targets, values, weights and prices from 1e-60 to 1e60 give the prunings of the same problem in the usual unit; "
    "beyond, fourth powers overflow or underflow, and the problem is refused. PessimisticError and MinimumError add "
    "half an error or a few rows by definition, so their results depend on the unit.",
    "Huge models are pruned by every solver; solvers with many penalties use two of them. A method that compares all "
    "pairs of trees refuses more than 20,000 trees.",
    "MinCut uses 64-bit integers. Prices and weights that need more are rounded down, and the path records that it is "
    "not exact. Its bound stays below the optimum, which was found by trying all prunings. If prices and weights span "
    "at most three powers of ten, its result is within a thousandth of the optimum; with prices from 1 to 1e50 it may "
    "be far above.",
]


def _solvers_for(extreme: Extreme, scale: int) -> list[Solver]:
    """Return the solvers to run."""
    if not extreme.huge:
        return all_solvers(1)
    return [BRIEF.get(solver.name, solver) for solver in all_solvers(1) if scale > 1 or solver.name in QUICK]


def _check(extreme: Extreme, solver: Solver, count: Counter[str]) -> Iterator[str]:
    """Yield what is wrong with a solver's path."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            options = {"sample_weight": extreme.weight, "cost": extreme.cost}
            path = found_path(solver, extreme.model, extreme.X, extreme.y, **options)
        except Exception as error:  # any other exception is not a refusal
            yield f"{type(error).__name__}: {error}"
            return
    if isinstance(path, str):
        count["refused"] += 1
        if not is_clear(path):
            yield f"an unclear refusal: {path}"
        return
    count["paths"] += 1
    if extreme.refused:
        yield "a path although the problem must be refused"
    yield from _sound(path)
    if not extreme.huge and extreme.cost is None:
        yield from _right(extreme, path)
    if extreme.like is not None and solver.name not in IN_UNITS:
        yield from _alike(extreme, solver, path, count)


def _sound(path: Path) -> Iterator[str]:
    """Yield numbers that are not finite; a method's own columns are NaN for the unpruned model."""
    for name, column in path.table.items():
        numbers = column[1:] if column.dtype.kind == "f" else np.zeros(0)
        without = name in ("penalty", "bound", "objective", "gap") and np.isnan(numbers).all()
        if not without and not np.isfinite(numbers).all():
            yield f"{name} has numbers that are not finite"
    if not np.isfinite([path.table[name][0] for name in ("cost", "risk")]).all():
        yield "cost or risk of the unpruned model is not finite"
    if (np.diff(path.table["cost"]) > 1e-9 * path.table["cost"][0]).any():
        yield "the cost rises along the path"


def _right(extreme: Extreme, path: Path) -> Iterator[str]:
    """Yield numbers of the first and last point that are not those computed row by row."""
    rows = path.source.rows(extreme.X)
    sample = read_sample(path.source, extreme.X, extreme.y, extreme.weight)
    for point in (0, len(path) - 1):
        forest = path[point].forest
        risk = recomputed.risk(path, point, rows, sample.y, sample.weight)
        expected = {**recomputed.sizes(forest), "risk": risk}
        expected["cost"] = recomputed.cost(path.info.cost, forest, rows, sample.weight)
        largest = float(np.abs(sample.y).max(initial=1e-300)) ** 2
        for name, number in expected.items():
            if number is not None and not np.isclose(path.table[name][point], number, rtol=1e-9, atol=1e-12 * largest):
                yield f"{name} is {number!r}, and not {path.table[name][point]!r}"


def _alike(extreme: Extreme, solver: Solver, path: Path, count: Counter[str]) -> Iterator[str]:
    """Yield a message if the equivalent problem has other prunings."""
    model, X, y, *options = extreme.like
    plain = found_path(solver, model, X, y, **dict(zip(("sample_weight", "cost"), options, strict=False)))
    count["alike"] += 1
    if isinstance(plain, str) or not same_prunings(plain, path):
        yield "other prunings than for the same problem in the usual unit"


def _data() -> tuple[Any, Any, Any, Any]:
    """Return training rows and other rows, with targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = 3 * X[:, 0] + X[:, 1] + rng.normal(size=120)
    return X[:60], y[:60], X[60:], y[60:]


def _fitted() -> dict[str, Any]:
    """Return a classification forest, a regression forest and a boosted regressor, trained on the rows of `_data`."""
    X, y, _, _ = _data()
    return {
        "classes": RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, np.digitize(y, [-1, 1])),
        "numbers": RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y),
        "boosted": GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0).fit(X, y),
    }


def _targets() -> Iterator[Extreme]:
    """Yield targets that are huge, tiny or constant."""
    _, _, X, y = _data()
    for kind in ("numbers", "boosted"):
        model = _fitted()[kind]
        forest = sc.as_forest(model)
        for power in (190, -190, 996, -996):  # about 1e57 and 1e300; a power of two changes no digit
            unit, beyond = 2.0**power, abs(power) > 200
            scaled = replace(forest, value=forest.value * unit, base=forest.base * unit)
            name = f"y and values of 1e{round(power * np.log10(2)):d}, {kind}"
            like = None if beyond else (forest, X, y)
            yield Extreme(name, scaled, X, y * unit, like=like, refused=beyond)
        yield Extreme(f"one y of 1e300, {kind}", model, X, np.append(y[1:], 1e300), refused=True)
        for constant in (0.0, 5.0, -1e50):
            yield Extreme(f"y is always {constant:g}, {kind}", model, X, np.full(len(X), constant))
    X_train, _, _, _ = _data()
    same = RandomForestRegressor(2, random_state=0).fit(X_train, np.full(60, 7.0))
    yield Extreme("trained on a constant y", same, X, np.full(60, 7.0))
    yield Extreme("all rows of one class", _fitted()["classes"], X, np.ones(60, int))
    alone = RandomForestClassifier(2, random_state=0).fit(X_train, np.zeros(60, int))
    yield Extreme("a model of one class", alone, X, np.zeros(60, int))


def _weights() -> Iterator[Extreme]:
    """Yield weights of 0, of 1e12, and of both."""
    _, _, X, y = _data()
    rng = np.random.default_rng(2)
    some = rng.integers(0, 3, 60)
    for kind, model in _fitted().items():
        target = np.digitize(y, [-1, 1]) if kind == "classes" else y
        kept = some > 0
        yield Extreme(f"weights of 0 and 1, {kind}", model, X, target, kept * 1.0, like=(model, X[kept], target[kept]))
        yield Extreme(f"weights of 2⁴⁰, {kind}", model, X, target, np.full(60, 2.0**40), like=(model, X, target))
        yield Extreme(f"weights of 0, 1 and 1e12, {kind}", model, X, target, np.array([0, 1, 1e12])[some])
        one = np.zeros(60)
        one[7] = 1e12
        yield Extreme(f"one row of weight 1e12, others 0, {kind}", model, X, target, one)
        for weight in (1e300, 1e-300):
            yield Extreme(f"weights of {weight:g}, {kind}", model, X, target, np.full(60, weight), refused=True)


def _prices() -> Iterator[Extreme]:
    """Yield tiny prices of features, and prices whose sums overflow."""
    _, _, X, y = _data()
    model, label = _fitted()["classes"], np.digitize(y, [-1, 1])
    plain = np.arange(1.0, 5.0)
    for power in (190, -190, 996, -996):
        beyond = abs(power) > 200
        like = None if beyond else (model, X, label, None, FeatureCost(plain))
        name = f"prices of 1e{round(power * np.log10(2)):d}"
        yield Extreme(name, model, X, label, cost=FeatureCost(plain * 2.0**power), like=like, refused=beyond)


def _few() -> Iterator[Extreme]:
    """Yield problems with one row or one feature."""
    X_train, y_train, X, y = _data()
    for kind, model in _fitted().items():
        label = np.digitize(y, [-1, 1])
        target = label if kind == "classes" else y
        yield Extreme(f"one row, {kind}", model, X[:1], target[:1])
    narrow = RandomForestRegressor(3, random_state=0).fit(X_train[:, :1], y_train)
    yield Extreme("one feature, numbers", narrow, X[:, :1], y)
    narrow = RandomForestClassifier(3, random_state=0).fit(X_train[:, :1], y_train > 0)
    yield Extreme("one feature, classes", narrow, X[:, :1], y > 0)
    single = RandomForestRegressor(3, random_state=0).fit(X_train[:1], y_train[:1])
    yield Extreme("trained on one row", single, X[:5], y[:5])


def _huge(scale: int) -> Iterator[Extreme]:
    """Yield many classes, many features, deep trees and many trees."""
    rng = np.random.default_rng(3)
    many = 10_000
    X = np.column_stack([np.arange(many), rng.normal(size=many)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, np.arange(many))
    yield Extreme("10,000 classes", tree, X[::100], np.arange(many)[::100], huge=True)
    X = rng.normal(size=(160, many)).astype(np.float32)
    y = X[:, 0] + X[:, -1] + rng.normal(size=160)
    wide = RandomForestClassifier(4, random_state=0).fit(X[:80], y[:80] > 0)
    yield Extreme("10,000 features", wide, X[80:], y[80:] > 0, huge=True)
    deep = np.arange(5000.0)[:, None]
    label = (np.arange(5000) // 3) % 2
    for side in ("left", "right"):
        yield Extreme(f"a tree of depth 5,000, to the {side}", chain(5000, side), deep[::10], label[::10], huge=True)
    yield Extreme("100,000 stumps, classes", stumps(100_000), rng.normal(size=(20, 5)), np.arange(20) % 2, huge=True)
    if scale > 1:
        # Alternating labels: the best split takes off a row at the end, so that the tree is as deep as it has rows.
        grown = DecisionTreeClassifier(random_state=0).fit(np.arange(5002.0)[:, None], np.arange(5002) % 2)
        yield Extreme(f"a tree of scikit-learn of depth {grown.get_depth()}", grown, deep[::10], label[::10], huge=True)
        X, y = rng.normal(size=(20, 5)), rng.normal(size=20)
        yield Extreme("100,000 stumps, numbers", stumps(100_000, n_classes=0), X, y, huge=True)
        yield Extreme("100,000 boosted stumps of LightGBM", _boosted(X, y), X, y, huge=True)


def _boosted(X: Any, y: Any) -> Any:
    """Return as many stumps as LightGBM grows on a few rows."""
    import lightgbm

    settings = {"num_leaves": 2, "min_data_in_leaf": 1, "learning_rate": 1e-4, "num_threads": 1, "verbose": -1}
    return lightgbm.train({**settings, "min_data_in_bin": 1}, lightgbm.Dataset(X, y), 100_000)


def _closures(n_problems: int) -> tuple[int, list[str]]:
    """Return the number of bounds of MinCut compared with brute force, and those above the optimum.

    Prices and weights have so many digits that their products must be rounded to fit into 64-bit integers.
    """
    tried, wrong = 0, []
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        problem, X = random_problem(rng)
        span = (3, 12, 50)[seed % 3]
        prices = 10.0 ** rng.uniform(0, span, problem.forest.n_features)
        weight = 10.0 ** rng.uniform(0, min(span, 12), len(X))
        problem = replace(problem, cost=FeatureCost(prices), row_source=replace(problem.sample, weight=weight))
        labels = problem.forest.value.argmax(axis=1)
        values = [value_of(problem, X, kept, labels) for kept in all_prunings_of_all(problem.forest)]
        path = sc.solvers.MinCut().path(problem)
        for penalty, bound, objective in zip(*(path.table[k] for k in ("penalty", "bound", "objective")), strict=True):
            truth, tried = min(risk + penalty * cost for risk, cost in values), tried + 1
            text = f"closure {seed}: bound {bound:.17g}, objective {objective:.17g}, truth {truth:.17g}"
            if bound > truth * (1 + 1e-9) + 1e-12 or objective < truth * (1 - 1e-9) - 1e-12:
                wrong.append(text)
            if penalty > 0 and objective > truth * (1 + 1e-9) + 1e-12 and path.info.exact:
                wrong.append(f"{text}, and it is called exact")
            if penalty > 0 and objective > truth * (1 + 1e-3) and span <= 3:
                wrong.append(f"{text}, though prices and weights are within three powers of ten")
    return tried, wrong
