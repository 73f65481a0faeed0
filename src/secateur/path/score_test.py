"""Certify drops of scores that are no means over rows, such as balanced accuracy, F1 or the area under a ROC curve.

A score is computed again without each of up to 50 random blocks of rows (delete-a-group jackknife). The pseudo-values
of a point, drop − (G − 1) · (drop without a block − mean of these), have the mean and the spread of the drop, so that
the step-down test of `secateur.path.confidence` holds for them, with Student's distribution. On average the jackknife
overestimates variances (Efron and Stein 1981), and it repeats no row, which would mix up rankings.

Two things are added for few rows. The degrees of freedom are at most the number of rows of the rarest class less one.
Scores that count labels, and functions, get three rows that the pruning predicts wrongly, where this costs most, for
what no validation row shows.

References
----------
J. Shao and D. Tu. The jackknife and bootstrap. Springer, 1995, section 2.3.
B. Efron and C. Stein (1981). The jackknife estimate of variance. Annals of Statistics 9.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.errors import UnsupportedProblemError
from secateur.path.confidence import UNSEEN, certify_blocks
from secateur.path.evaluation import PointOnRows
from secateur.path.point_estimator import PointEstimator
from secateur.path.score_columns import PointScores

if TYPE_CHECKING:
    from secateur.path.path import Path

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = NDArray[np.intp]

_BLOCKS = 50
_FEWEST_IN_BLOCK = 5
"""More than the added rows: parts then have fewer rows than there are, and arrays that a function closes over fail."""
_MOST_ROWS = 10_000
"""Rows that the spread is computed from; for more rows it follows from the rate 1 / √n."""
_FEW = 10
"""Rows of a class below which the text for an uncertified limit names the class."""
_SEED = 0
_EXTREMES = ("max_error", "neg_max_error")
"""Scores that depend on a single row, for which resampling of rows fails."""


def certify_drops(path: "Path", sample: LocalRows, allowed: float, confidence: float, unit: str) -> tuple[Bools, str]:
    """Return which points have a score that is at most `allowed` below that of the unpruned model, (n_points − 1,).

    `unit` is what is counted, in words. The text says what was found, what is needed and what to do if there is none.

    Raises
    ------
    UnsupportedProblemError
        If the score is an extreme, or cannot be computed for parts of the rows.
    """
    assert path.scorer is not None
    if path.scorer.name in _EXTREMES:
        raise UnsupportedProblemError(
            f"confidence cannot be computed for {path.scorer.name}, which depends on a single row. Use another score, "
            "or leave out confidence."
        )
    parts = ScoredParts(PointScores(path.scorer, path.on_rows(0, sample), len(path)))
    excess, error = path.table["score"][0] - path.table["score"] - allowed, path.table["score_se"]
    # Points clearly above the limit are left out of the test anyway.
    clear = (error > 0) & (excess > np.sqrt(np.log(max(len(sample), 2))) * error)
    values = np.full((len(path) - 1, parts.n_blocks), np.inf)
    for point in np.flatnonzero(~clear[1:]):
        values[point] = parts.pseudo_values(path.on_rows(int(point) + 1, sample)) - allowed
    rarest, n_rarest = _rarest_class(parts.scores.unpruned)
    degrees = min(parts.n_blocks, n_rarest) - 1.0
    test = certify_blocks(values, sample.n_units, degrees, confidence, np.random.default_rng(_SEED))
    shortfall = test.shortfall(f"max_score_drop={allowed:g}", unit)
    few = f"Of {sample.n_units:,} {unit}, only {n_rarest:.3g} have the class {rarest!r}."
    if degrees <= 0:
        return test.certified, f"max_score_drop={allowed:g} cannot be certified. {few} Pass more rows of this class."
    return test.certified, f"{shortfall} {few}" if n_rarest < _FEW else shortfall


@dataclass(frozen=True, eq=False)
class ScoredParts:
    """Score points on all rows, and on the rows without one block of them, for each block in turn."""

    scores: PointScores
    _known: dict[bytes, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def n_blocks(self) -> int:
        """The number of blocks."""
        sample = self.scores.unpruned.sample
        return max(2, min(_BLOCKS, len(sample) // _FEWEST_IN_BLOCK, sample.n_units))

    def pseudo_values(self, at: PointOnRows) -> Floats:
        """Return the pseudo-values of the drop from the unpruned score, (n_blocks,); NaN if a score is undefined."""
        if np.isnan(at.raw).any():
            return np.full(self.n_blocks, np.nan)
        estimator = self.scores.estimator(at)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The predictions of all rows are computed once, and points with equal ones are scored once.
            self.scores.score(estimator)
            key = self.scores.key(estimator)
            if key is None or key not in self._known:
                found = self._pseudo_values(estimator)
                return found if key is None else self._known.setdefault(key, found)
        return self._known[key]

    def _pseudo_values(self, estimator: PointEstimator) -> Floats:
        drops = self._unpruned - self._scored(estimator, self._rows[1])
        whole, without = drops[0], drops[1:]
        rate = np.sqrt(len(self._drawn) / len(self._rows[0]))
        return np.asarray(whole - rate * (self.n_blocks - 1) * (without - without.mean()))

    def _scored(self, estimator: PointEstimator, predicted: Index) -> Floats:
        """Return the score of all rows and of those without each block, (1 + n_blocks,)."""
        rows = self._rows[0]
        return np.array([self.scores.score_rows(estimator, rows[part], predicted[part]) for part in self._parts()])

    def _parts(self) -> Iterator[Index]:
        yield np.arange(len(self._rows[0]))
        for block in range(self.n_blocks):
            yield self._drawn[self._block_of != block]

    @cached_property
    def _drawn(self) -> Index:
        """The places, among the rows and the added ones, from which the spread is computed."""
        places, n_rows = self._places, len(self.scores.unpruned.sample)
        drawn = np.flatnonzero(places * n_rows < _MOST_ROWS * (places.max() + 1))
        return np.append(np.arange(n_rows, len(self._rows[0])), drawn)

    @cached_property
    def _block_of(self) -> Index:
        """The block of each of the places drawn; groups of rows are whole."""
        n_rows = len(self.scores.unpruned.sample)
        n_added = len(self._rows[0]) - n_rows
        return np.append(np.arange(n_added), self._places[self._drawn[n_added:]]) % self.n_blocks

    @cached_property
    def _places(self) -> Index:
        """The place of each row, or of its group, in a random order, (n_rows,)."""
        sample = self.scores.unpruned.sample
        return np.random.default_rng(_SEED).permutation(sample.n_units)[sample.units]

    @cached_property
    def _unpruned(self) -> Floats:
        """The unpruned score of all rows and of those without each block."""
        found = self._scored(self.scores.unpruned_estimator, self._rows[0])
        if np.isnan(found).any():
            raise UnsupportedProblemError(
                f"confidence needs the score of parts of the validation rows, but scoring={self.scores.scoring.name!r} "
                "fails or is undefined for some of them. Pass more rows, or a function that uses no other rows than "
                "the X and y it gets, or leave out confidence."
            )
        return found

    @cached_property
    def _rows(self) -> tuple[Index, Index]:
        """The rows to score, with the added ones, and the rows whose predictions a pruning has for them."""
        every = np.arange(len(self.scores.unpruned.sample))
        if not self.scores.counts_labels:
            return every, every
        pairs = list(_wrong_pairs(self.scores.unpruned))
        if not pairs:
            return every, every
        unpruned = self.scores.unpruned_estimator

        def added(row: int) -> Index:
            return np.append(every, np.full(UNSEEN, row))

        found = [self.scores.score_rows(unpruned, added(row), added(other)) for row, other in pairs]
        row, other = pairs[int(np.argmin(np.nan_to_num(found, nan=np.inf)))]
        return added(row), added(other)


def _wrong_pairs(unpruned: PointOnRows) -> Iterator[tuple[int, int]]:
    """Yield rows, and other rows whose predictions are wrong for them: one pair for each class.

    Both are typical: of the rows of a class that are predicted as such, and of those neither of the class nor
    predicted as such, the ones with the median probability. For numbers, the rows are the quartiles of the predictions.
    """
    forest, y = unpruned.source.forest, unpruned.sample.y
    labels = forest.response.label(unpruned.raw, forest.n_classes)
    if not forest.n_classes:
        order = np.argsort(labels[:, 0], kind="stable")
        low, high = (int(order[int(share * (len(order) - 1))]) for share in (0.25, 0.75))
        yield from ((low, high), (high, low))
        return
    for target, probability in enumerate(forest.response.mean(unpruned.raw, forest.n_classes)[: y.shape[1]]):
        for code in range(probability.shape[1]):
            of_class = y[:, target] == code
            predicted = labels[:, target] == code
            inside, outside = np.flatnonzero(of_class & predicted), np.flatnonzero(~of_class & ~predicted)
            if len(inside) and len(outside):
                yield _median_of(inside, probability[:, code]), _median_of(outside, probability[:, code])


def _median_of(rows: Index, probability: NDArray[np.floating]) -> int:
    """Return the row with the median probability."""
    return int(rows[np.argsort(probability[rows], kind="stable")[len(rows) // 2]])


def _rarest_class(unpruned: PointOnRows) -> tuple[Any, float]:
    """Return the class of the model with the fewest rows, and their effective number, (Σw)² / Σw², of groups if given.

    For numbers it is None, with the number of all rows.
    """
    source, y, units = unpruned.source, unpruned.sample.y, unpruned.sample.units
    weight = unpruned.sample.weight
    if not source.forest.n_classes:
        return None, _effective(weight, units)
    sizes = [
        (_effective(weight * (y[:, target] == code), units), label)
        for target in range(len(source.forest.n_classes))
        for code, label in enumerate(source.labels(target).tolist())
    ]
    size, label = min(sizes, key=lambda one: one[0])
    return label, size


def _effective(weight: Floats, units: Index) -> float:
    weight = np.asarray(np.bincount(units, weight), np.float64)
    return float(weight.sum() ** 2 / (weight @ weight)) if weight.any() else 0.0
