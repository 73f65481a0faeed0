"""Score the points of a path by the user's metric, with the standard error of the drop from the unpruned model.

A metric that is a mean over rows has a standard error in closed form: that of the mean of the rows' differences. The
area under the ROC curve has that of DeLong. For other metrics rows are drawn with replacement, the same draws for all
points, and both models are scored on each draw; predictions are not computed again. Groups of rows are drawn whole. The
cost is bounded: a path of up to 80 points has 50 draws, a longer one about 4000 / points, but at least 16. A draw has
at most 2000 rows, and the error for all rows follows from the rate 1 / √n. Points with equal predictions share their
error.

References
----------
B. Efron and R. J. Tibshirani. An introduction to the bootstrap. Chapman & Hall, 1993, section 6.2.
P. J. Bickel, F. Götze and W. R. van Zwet. Resampling fewer than n observations. Statistica Sinica 7, 1997.
E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson. Comparing the areas under two or more correlated receiver operating
characteristic curves. Biometrics 44, 1988, equations 4 to 6.
"""

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError
from secateur.forest.masks import NestedMasks
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss, RankingError, loss_named
from secateur.path.evaluation import Decisions, PointOnRows, error_of_mean, point_on_rows
from secateur.path.point_estimator import PointEstimator, UnreadRows
from secateur.path.scoring import Scoring, scale_of

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

MOST_DRAWS = 50
_FEWEST_DRAWS = 16
_CALLS = 4000
"""Number of calls of the metric for the draws of a path, unless that leaves fewer than 16 draws."""
_MAX_DRAWN = 2000
_SEED = 0
_CLOSE = 1e-6
"""Relative difference up to which a score is taken to be the mean of the rows' losses."""


@dataclass(frozen=True, eq=False)
class PointScores:
    """Score points of a path one after another on the same rows.

    Attributes
    ----------
    scoring : Scoring
    unpruned : PointOnRows
        The unpruned model on these rows.
    n_points : int
        The number of points to score.
    """

    scoring: Scoring
    unpruned: PointOnRows
    n_points: int
    _errors: dict[bytes, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.scoring.reads_rows and self._rows[1] is None:
            raise InvalidInputError(
                f"scoring={self.scoring.name!r} compares predictions with y, but y is missing. Pass y, or a function "
                "of (estimator, X, y) that does without."
            )
        if self._weight is not None and not self.scoring.takes_weight:
            raise InvalidInputError(
                f"The rows have weights, but scoring={self.scoring.name!r} has no parameter sample_weight. Pass a "
                "metric that takes weights, leave them out, or pass a function (estimator, X, y, sample_weight) that "
                "ignores them."
            )
        if self.scoring.needs_groups and self.unpruned.sample.groups is None:
            raise InvalidInputError(
                f"scoring={self.scoring.name!r} compares the rows of a query, but the queries are not known. Pass "
                "groups=, the query of each validation row."
            )

    def of(self, at: PointOnRows) -> tuple[float, float]:
        """Return the score of a point and the standard error of its drop from the score of the unpruned model.

        A point without a prediction for some row, for which all of its trees were cut, has the score −∞.
        """
        if at is self.unpruned:
            return self.unpruned_score, 0.0
        if np.isnan(at.raw).any():
            return -np.inf, 0.0
        estimator = self.estimator(at)
        with warnings.catch_warnings():
            # Warnings of the metric are shown for the unpruned model. A pruning may well predict a single class.
            warnings.simplefilter("ignore")
            score = self.score(estimator)
            return score, self._error(at, estimator, score)

    def score(self, estimator: PointEstimator) -> float:
        """Return the score of all rows."""
        return self.scoring(estimator, *self._rows, self._weight, self.unpruned.sample.groups)

    @cached_property
    def unpruned_score(self) -> float:
        """The score of the unpruned model."""
        return self.score(self.unpruned_estimator)

    def _error(self, at: PointOnRows, estimator: PointEstimator, score: float) -> float:
        """Return the standard error of the drop; a metric of equal predictions is not drawn again."""
        error = self._error_of_mean(at, self.unpruned_score - score)
        if error is not None:
            return error
        key = self.key(estimator)
        if key is None or key not in self._errors:
            found = self._error_of_draws(estimator)
            return found if key is None else self._errors.setdefault(key, found)
        return self._errors[key]

    def key(self, estimator: PointEstimator) -> bytes | None:
        """Return the predictions that the metric asked for, as bytes: points with equal ones need no second look.

        It is None for a function, which may ask for predictions of other rows as well.
        """
        if self.scoring.reads_rows:
            return None
        return b"".join(_bytes_of(found) for _, found in sorted(estimator.predictions.items()))

    def _error_of_mean(self, at: PointOnRows, drop: float) -> float | None:
        """Return the standard error of the drop of a mean over rows or of an AUC, None for other scores."""
        if self._row_loss is None:
            return None
        sample = self.unpruned.sample
        weight = sample.weight / sample.total_weight
        increase = self._scale * (at.losses(self._row_loss) - self._unpruned_losses)
        mean = float(weight @ increase)
        if not abs(mean - drop) <= _CLOSE * max(abs(mean), abs(drop), abs(self.unpruned_score)):
            return None
        return error_of_mean(weight, self._influence(increase, mean), sample.groups)

    def _influence(self, increase: Floats, mean: float) -> Floats:
        """Return the contribution of each row to the error of the mean increase, (n_rows,)."""
        if not isinstance(self._row_loss, RankingError):
            return increase - mean
        # Each class contributes the mean of its placement values, half of each loss (DeLong et al., equation 4).
        y = self.unpruned.sample.y[:, 0]
        centre = np.array([increase[y == code].mean() for code in (0, 1)])
        return 2 * (increase - centre[y])

    def _error_of_draws(self, estimator: PointEstimator) -> float:
        """Return the standard deviation of the drop over draws of rows, NaN if most draws have no score."""
        drops = self._unpruned_draws - self.draws(estimator)
        drops = drops[np.isfinite(drops)]
        if len(drops) < len(self._drawn) / 2:
            return np.nan
        return float(drops.std(ddof=1) * np.sqrt(self._share_drawn))

    def draws(self, estimator: PointEstimator) -> Floats:
        """Return the score of a point on each draw of rows, (n_draws,); NaN where the metric is undefined."""
        return np.array([self.score_rows(estimator, rows, rows, groups) for rows, groups in self._drawn])

    def score_rows(
        self, estimator: PointEstimator, rows: Index, predicted: Index, groups: Index | None = None
    ) -> float:
        """Return the score of some rows with the predictions for the rows `predicted`; NaN if it is undefined.

        `groups` replace those of the rows.
        """
        X, y = rows_for_scorer(self.scoring, self.unpruned, rows)
        weight = None if self._weight is None else self._weight[rows]
        known = self.unpruned.sample.groups
        groups = known[rows] if groups is None and known is not None else groups
        try:
            return self.scoring(estimator.take(predicted, X), X, y, weight, groups)
        except InvalidInputError:
            return np.nan

    @cached_property
    def _drawn(self) -> list[tuple[Index, Index | None]]:
        """Rows drawn with replacement, or the rows of drawn groups, each time a group of its own.

        They are fewer than all rows, so that a function of arrays that it does not get fails instead of mixing up rows.
        """
        rng, sample = np.random.default_rng(_SEED), self.unpruned.sample
        n_draws = min(MOST_DRAWS, max(_FEWEST_DRAWS, _CALLS // self.n_points))
        n_units = sample.n_units
        drawn = [rng.integers(n_units, size=max(round(n_units * self._share_drawn), 1)) for _ in range(n_draws)]
        if sample.groups is None:
            return [(units, None) for units in drawn]
        rows_of = np.split(np.argsort(sample.units, kind="stable"), np.cumsum(np.bincount(sample.units))[:-1])
        return [
            (
                np.concatenate([rows_of[unit] for unit in units]),
                np.repeat(np.arange(len(units)), [len(rows_of[unit]) for unit in units]),
            )
            for units in drawn
        ]

    @property
    def _share_drawn(self) -> float:
        """The number of rows, or groups, that are drawn, over that of all."""
        n_rows, n_units = len(self.unpruned.sample), self.unpruned.sample.n_units
        return max(min(n_units - 1, int(_MAX_DRAWN * n_units / n_rows)), 1) / n_units

    @cached_property
    def _unpruned_draws(self) -> Floats:
        return self.draws(self.unpruned_estimator)

    @cached_property
    def unpruned_estimator(self) -> PointEstimator:
        """The unpruned model."""
        return self.estimator(self.unpruned)

    @property
    def counts_labels(self) -> bool:
        """Whether the score may depend on few rows, because it counts labels, or is not known.

        Known scorers of numbers and of probabilities change a little with the prediction of every row.
        """
        return not self.scoring.known or self.scoring.name == "top_k_accuracy" or self._only_labels

    @property
    def _only_labels(self) -> bool:
        _ = self.unpruned_score
        return bool(self.unpruned.source.forest.n_classes) and set(self.unpruned_estimator.predictions) == {"predict"}

    def estimator(self, at: PointOnRows) -> PointEstimator:
        """Return a point as an estimator that predicts the rows."""
        return PointEstimator(at.source, at.decision, at.output, self._rows[0])

    @cached_property
    def _rows(self) -> tuple[Any, Any]:
        """The rows and targets that the scorer gets."""
        return rows_for_scorer(self.scoring, self.unpruned)

    @cached_property
    def _weight(self) -> Floats | None:
        """The weights of the rows, None if all are equal."""
        weight = self.unpruned.sample.weight
        return None if (weight == weight[0]).all() else weight

    @cached_property
    def _row_loss(self) -> Loss | None:
        """The loss whose mean over rows is the score, but for its scale; None if there is none."""
        loss = None if self.scoring.mean_of is None else loss_named(self.scoring.mean_of)
        return loss if loss is not None and loss.unsupported(self.unpruned.source.forest) is None else None

    @property
    def _scale(self) -> float:
        return 1.0 if self._row_loss is None else scale_of(self._row_loss, self.unpruned.source.forest)

    @cached_property
    def _unpruned_losses(self) -> Floats:
        return np.zeros(0) if self._row_loss is None else self.unpruned.losses(self._row_loss)


def try_scoring(source: Adapter, sample: LocalRows, scoring: Scoring) -> None:
    """Raise InvalidInputError if a scorer cannot score the unpruned model on the given rows."""
    masks = NestedMasks(np.ones(source.forest.n_nodes, np.int32), 1)
    unpruned = point_on_rows(source, Decisions(masks), 0, sample)
    _ = PointScores(scoring, unpruned, 1).unpruned_score


def rows_for_scorer(scoring: Scoring, at: PointOnRows, index: NDArray[np.intp] | None = None) -> tuple[Any, Any]:
    """Return rows and targets as the user passed them, all or those with an index.

    X is replaced by `UnreadRows` if the scorer does not read it, or if it is not at hand.
    """
    given, n_rows = at.sample.given, len(at.sample) if index is None else len(index)
    if given is None:
        y = target_of(at.source, at.sample, index)
        return UnreadRows(n_rows), y
    given = given if index is None else given.take(index)
    X = given.features() if scoring.reads_rows and given.has_features else UnreadRows(n_rows)
    return X, given.targets()


def target_of(source: Adapter, sample: LocalRows, index: NDArray[np.intp] | None) -> NDArray[np.generic]:
    """Return targets in the labels of the model, for rows that only the leaves are known of."""
    return source.decode(sample.y if index is None else sample.y[index])


def _bytes_of(predictions: Any) -> bytes:
    """Return the content of predictions, of one target or of several."""
    arrays = predictions if isinstance(predictions, list) else [predictions]
    return b"".join(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes() for array in arrays)
