"""Certify which points of a path keep its limits in truth, with a confidence over the draw of the validation rows.

Means over rows are tested by `secateur.path.confidence`, other scores by `secateur.path.score_test`, and numbers of
changed predictions by `secateur.path.changed_rows`. Several limits share the probability of error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import warn
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import (
    InvalidInputError,
    NoPruningWithinLimitsError,
    NothingPrunedWarning,
    UnsupportedProblemError,
)
from secateur.forest import Forest
from secateur.losses import Loss, loss_named
from secateur.path.changed_rows import certify_changed
from secateur.path.confidence import certify_sums, check_confidence, weighted_sums
from secateur.path.evaluation import Decisions
from secateur.path.info import PathInfo
from secateur.path.limits import Limits
from secateur.path.local_evaluation import rows_to_score
from secateur.path.score_test import certify_drops
from secateur.path.scoring import mean_loss_of, scale_of

if TYPE_CHECKING:
    from secateur.path.path import Path
    from secateur.path.pruned import Pruned

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_ROWS = 8192
"""Number of rows whose losses at all points are in memory at once."""
_SEED = 0


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Say which points keep the limits in truth.

    Attributes
    ----------
    certified : (n_points,) bools
        The unpruned model is always certified.
    confidence : float
        The probability with which all certified points keep all limits.
    n_rows : int
    limits : dict
    n_groups : int, optional
        The number of groups that the rows form.
    shortfalls : tuple of str
        For each limit that no pruning is certified for: what was found, what is needed and what to do.
    """

    certified: Bools
    confidence: float
    n_rows: int
    limits: dict[str, float]
    shortfalls: tuple[str, ...] = ()
    n_groups: int | None = None

    def summary(self, info: PathInfo) -> dict[str, Any]:
        """Return the guarantee as plain values, with a sentence."""
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        claims = " and ".join(_claim(name, limit, info) for name, limit in self.limits.items())
        return {
            "confidence": self.confidence,
            "limits": self.limits,
            "rows": self.n_rows,
            **({} if self.n_groups is None else {"groups": self.n_groups}),
            "text": f"With {100 * self.confidence:g} % confidence, {claims}, by {self.n_rows:,} rows{groups}.",
        }

    def __and__(self, other: "Guarantee") -> "Guarantee":
        return replace(
            self,
            certified=self.certified & other.certified,
            limits={**self.limits, **other.limits},
            shortfalls=(*self.shortfalls, *other.shortfalls),
        )


@dataclass(frozen=True, eq=False)
class Differences:
    """Compute the sums from which the limit on a mean loss is tested, over any part of the rows.

    The difference of a row is factor · (loss − unpruned loss) − share · unpruned loss − allowed.
    """

    decisions: Decisions
    n_points: int
    loss: Loss
    factor: float = 1.0
    share: float = 0.0
    allowed: float = 0.0

    def __call__(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return `weighted_sums` of the differences of the given rows at all points but the unpruned model."""
        if sample.groups is not None:
            return self._grouped(forest, sample)
        sums = np.zeros((self.n_points, self.n_points + 1))
        for rows in _in_blocks(sample):
            sums += weighted_sums(self.rows(forest, rows), rows.weight)
        return sums

    def _grouped(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return `weighted_sums` over groups, each with the sum of its weighted differences."""
        total, n_groups = np.zeros((sample.n_units, self.n_points - 1)), sample.n_units
        for start, rows in zip(range(0, len(sample), _ROWS), _in_blocks(sample), strict=True):
            np.add.at(total, sample.units[start : start + _ROWS], (self.rows(forest, rows) * rows.weight).T)
        # In the unit of one row, so that limits and largest differences are as before.
        return weighted_sums(total.T * (n_groups / sample.total_weight), np.ones(n_groups))

    def rows(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return the difference of each row at each point but the unpruned model, (n_points − 1, n_rows)."""
        before = self._losses(forest, sample, 0)
        found = np.array([self._losses(forest, sample, point) for point in range(1, self.n_points)])
        return self.factor * (found.reshape(-1, len(sample)) - before) - self.share * before - self.allowed

    def _losses(self, forest: Forest, sample: LocalRows, point: int) -> Floats:
        return self.loss.rows(forest, self.decisions.scores(forest, sample, point), sample.y)


@dataclass(frozen=True, eq=False)
class ChangedDifferences(Differences):
    """Compute the same sums for changed predictions: 1 for a row whose prediction changes, 0 for others."""

    tolerance: float = 0.0

    def rows(self, forest: Forest, sample: LocalRows) -> Floats:
        """Return changed − allowed for each row at each point but the unpruned model, (n_points − 1, n_rows)."""
        before = self._predicted(forest, sample, 0)
        found = [self._changed(before, self._predicted(forest, sample, point)) for point in range(1, self.n_points)]
        return np.array(found, np.float64).reshape(-1, len(sample)) - self.allowed

    def _predicted(self, forest: Forest, sample: LocalRows, point: int) -> NDArray[Any]:
        return forest.response.label(self.decisions.scores(forest, sample, point), forest.n_classes)

    def _changed(self, before: NDArray[Any], after: NDArray[Any]) -> Bools:
        far = np.abs(after - before) > self.tolerance if self.tolerance else after != before
        return np.asarray(far.any(axis=1))


def certify(path: "Path", limits: Mapping[str, Any], confidence: float) -> Guarantee:
    """Return which points of an evaluated path keep the limits on loss, score and changed predictions in truth.

    Raises
    ------
    InvalidInputError
        If there is no such limit, or if the path was not evaluated on rows of its own.
    UnsupportedProblemError
        If the loss is no mean over rows, or the score cannot be certified.
    """
    check_confidence(confidence)
    given = {name: float(limit) for name, limit in limits.items() if name in _TESTS and limit is not None}
    if not given:
        raise InvalidInputError(
            f"confidence={confidence} was given without a limit that it could hold for. Pass one of "
            f"{', '.join(_TESTS)} as well, or leave out confidence."
        )
    rows = _rows_of(path)
    # By Bonferroni's inequality, the limits share the probability of error.
    each = 1 - (1 - confidence) / len(given)
    found = [_TESTS[name](path, rows, limit, each) for name, limit in given.items()]
    together = found[0]
    for one in found[1:]:
        together = together & one
    n_groups = rows.n_units if isinstance(rows, LocalRows) and rows.groups is not None else None
    return replace(together, confidence=confidence, n_groups=n_groups)


def select_certified(path: "Path", guarantee: Guarantee, limits: Limits) -> "Pruned":
    """Return the cheapest certified point within the other limits; warn if there is none but the unpruned model.

    Raises
    ------
    NoPruningWithinLimitsError
        If not even the unpruned model is within the other limits.
    """
    points = np.flatnonzero(guarantee.certified)
    try:
        chosen = path.take(points).choose(limits, guard=0.0)
    except NoPruningWithinLimitsError as error:
        raise NoPruningWithinLimitsError(" ".join([str(error), *guarantee.shortfalls])) from None
    if chosen.point == 0 and guarantee.shortfalls:
        warn(" ".join(guarantee.shortfalls), NothingPrunedWarning)
        return replace(chosen, path=path)
    return replace(chosen, point=int(points[chosen.point]), guarantee=guarantee.summary(path.info), path=path)


def _rows_of(path: "Path") -> RowSource:
    """Return the rows on which the path was evaluated."""
    if path.validation_rows is None and path.info.clones:
        raise InvalidInputError(
            f"confidence cannot be computed for a path evaluated by {path.info.evaluated_on}. "
            f"{path.info.why_not_guaranteed} Call path.evaluate(X_val, y_val) with rows that neither the model nor the "
            "pruning was fitted on."
        )
    if path.validation_rows is None:
        raise InvalidInputError(
            "confidence needs the validation rows of the path, but this path was evaluated on "
            f"{path.info.evaluated_on or 'no rows'}, or read from a file. Call path.evaluate(X_val, y_val) with rows "
            "that neither the model nor the pruning was fitted on."
        )
    return path.validation_rows


def _test_loss(path: "Path", rows: RowSource, increase: float, confidence: float) -> Guarantee:
    """Test loss ≤ (1 + increase) · unpruned loss."""
    loss, scale = loss_named(path.info.loss), path.info.loss_scale
    if not loss.additive:
        raise UnsupportedProblemError(
            f"confidence needs a loss that is a mean over rows, but {loss.name} compares rows with each other. Use "
            "another loss, or leave out confidence."
        )
    # Models that are compared with themselves have no loss; the increase is then a multiple of a scale.
    allowed = {"share": increase} if scale is None else {"allowed": increase * scale}
    query = Differences(path.decisions, len(path), loss, **allowed)
    largest = 1.0 if loss.counts_errors else None
    return _tested(path, rows, query, {"max_loss_increase": increase}, largest, confidence)


def _test_score(path: "Path", rows: RowSource, drop: float, confidence: float) -> Guarantee:
    """Test unpruned score − score ≤ drop: from all rows if the score is their mean, otherwise from blocks of rows."""
    name, score = path.info.scoring, path.table.get("score")
    if name is None or score is None:
        raise InvalidInputError(
            "max_score_drop limits the drop of a score, but the path has none. Pass scoring= to path.evaluate."
        )
    loss = mean_loss_of(name)
    if loss is not None and loss.unsupported(path.forest) is None:
        factor = scale_of(loss, path.forest)
        query = Differences(path.decisions, len(path), loss, factor, allowed=drop)
        sums = rows.total(path.forest, query)
        drops, finite = sums[:-1, 0] / sums[-1, 0] + drop, np.isfinite(score[1:])
        if np.allclose(drops[finite], score[0] - score[1:][finite], rtol=1e-6, atol=1e-6 * abs(score[0])):
            largest = factor - drop if loss.counts_errors else None
            return _result(sums, rows, {"max_score_drop": drop}, largest, confidence)
    limits = {"max_score_drop": drop}
    if len(path) == 1:
        return Guarantee(np.ones(1, bool), confidence, len(rows), limits)
    certified, shortfall = certify_drops(path, rows_to_score(rows), drop, confidence, _unit(rows))
    shortfalls = () if certified.any() else (shortfall,)
    return Guarantee(np.append(True, certified), confidence, len(rows), limits, shortfalls)


def _test_changed(path: "Path", rows: RowSource, share: float, confidence: float) -> Guarantee:
    """Test that at most a share of the predictions changes: exactly, unless rows have different weights or groups."""
    limits = {"max_changed": share}
    if not _counts_each_row(rows):
        tolerance = path.info.tolerance or 0.0
        query = ChangedDifferences(
            path.decisions, len(path), loss_named(path.info.loss), allowed=share, tolerance=tolerance
        )
        return _tested(path, rows, query, limits, 1 - share, confidence)
    n_rows = len(rows)
    runs = [tuple(path.table[name][point] for name in path.info.runs) for point in range(1, len(path))]
    codes = [runs.index(run) for run in runs]
    n_changed = np.rint(path.table["changed"][1:] * n_rows).astype(np.int64)
    if not len(codes):
        return Guarantee(np.ones(1, bool), confidence, n_rows, limits)
    test = certify_changed(n_changed, n_rows, codes, path.table["n_nodes"][1:], share, confidence)
    shortfalls = () if test.certified.any() else (test.shortfall(),)
    return Guarantee(np.append(True, test.certified), confidence, n_rows, limits, shortfalls)


def _tested(
    path: "Path",
    rows: RowSource,
    query: Differences,
    limits: dict[str, float],
    largest: float | None,
    confidence: float,
) -> Guarantee:
    """Return the result of the test of means of differences."""
    return _result(rows.total(path.forest, query), rows, limits, largest, confidence)


def _result(
    sums: Floats, rows: RowSource, limits: dict[str, float], largest: float | None, confidence: float
) -> Guarantee:
    """Return the result of the test from the sums over all rows."""
    if len(sums) == 1:
        return Guarantee(np.ones(1, bool), confidence, len(rows), limits)
    test = certify_sums(sums, confidence, np.random.default_rng(_SEED), largest)
    ((name, limit),) = limits.items()
    shortfalls = () if test.certified.any() else (test.shortfall(f"{name}={limit:g}", _unit(rows)),)
    return Guarantee(np.append(True, test.certified), confidence, len(rows), limits, shortfalls)


def _claim(name: str, limit: float, info: PathInfo) -> str:
    """Return what a limit says of the pruned model, in words."""
    if name == "max_loss_increase":
        return f"the loss {info.loss} increases by at most {100 * limit:g} %"
    if name == "max_score_drop":
        return f"the score {info.scoring} drops by at most {limit:g}"
    return f"at most {100 * limit:g} % of the predictions change"


def _in_blocks(sample: LocalRows) -> Iterator[LocalRows]:
    for start in range(0, len(sample), _ROWS):
        yield sample.take(np.arange(start, min(start + _ROWS, len(sample))))


def _counts_each_row(rows: RowSource) -> bool:
    """Return whether all rows in memory are independent and have the same weight; of remote rows it is not known."""
    return isinstance(rows, LocalRows) and rows.groups is None and bool((rows.weight == rows.weight[0]).all())


def _unit(rows: RowSource) -> str:
    """Return what a test counts, in words."""
    return "groups of validation rows" if isinstance(rows, LocalRows) and rows.groups is not None else "validation rows"


_TESTS = {"max_loss_increase": _test_loss, "max_score_drop": _test_score, "max_changed": _test_changed}
"""The test of each limit that a confidence can hold for."""
