"""Evaluate a path on validation rows: separate rows, a random share, out-of-bag rows, or refitted clones.

A model's loss on its training rows is no reference: a random forest is nearly perfect there. These strategies separate
the rows that trained the model from the rows that evaluate its prunings, as far as the given rows allow.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secateur.data.batches import Batches
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import TrainingRowsWarning
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter
from secateur.path import Path, Progress
from secateur.selection.cross_validation import Fold, judge

Make = Callable[[Adapter, RowSource], Path]
"""Function that returns the path of a model, computed on some rows."""
Validation = float | NDArray[np.bool_] | tuple[Any, ...] | Literal["auto", "oob", "refit", "cv"] | None

_SHARE = 0.25
_FOLDS_OF = {"cv": (5, 5), "refit": (4, 1)}
"""Number of folds, and how many of them serve as validation fold in turn."""
_JUDGED_BY = {
    "cv": "5-fold cross-validation with refitted clones",
    "refit": "a random share of 0.25 of the rows, by a clone refitted on the others",
}
_MANY_ROWS = 5000
_NOT_A_WAY = "is none of: a share (0 to 1), a mask, (X, y), 'oob', 'refit', 'cv', 'auto', None. Use one of these."


class RowProvider(ABC):
    """Hold the user's rows as given, local or remote."""

    @abstractmethod
    def sample(self, adapter: Adapter) -> RowSource:
        """Return the rows routed through the model."""

    @abstractmethod
    def others(self, given: tuple[Any, ...]) -> "RowProvider":
        """Return a provider of the same kind for other rows, such as validation rows."""


@dataclass(frozen=True, eq=False)
class Rows(RowProvider):
    """Hold rows in memory, or in files that are read in batches."""

    X: Any
    y: Any = None
    weight: Any = None
    place: NDArray[np.intp] | None = None

    def take(self, index: NDArray[np.intp]) -> "Rows":
        """Return a subset of the rows, in the container types of the input."""
        if isinstance(self.X, Batches):
            raise ValueError(
                "validation='cv' and 'refit' train clones on some of the rows, but these are read a part at a time. "
                "Use a share of them, such as 0.25, or (X_val, y_val)."
            )
        from sklearn.utils import _safe_indexing

        def pick(values: Any) -> Any:
            return None if values is None else _safe_indexing(values, index)

        return Rows(pick(self.X), pick(self.y), pick(self.weight), index)

    def sample(self, adapter: Adapter) -> LocalRows:
        """Return the rows routed through the model."""
        return replace(read_sample(adapter, self.X, self.y, self.weight), row_index=self.place)

    def others(self, given: tuple[Any, ...]) -> "Rows":
        """Return the rows of a tuple (X, y) or (X, y, sample_weight)."""
        return Rows(*given)


def make_and_evaluate(
    adapter: Adapter,
    rows: RowProvider,
    make: Make,
    shorten: Callable[[Path], Path],
    validation: Validation,
    *,
    remake: Callable[[list[Fold]], Make] | None = None,
    trees_interact: bool,
    match_by_size: bool,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Path:
    """Compute a path by `make`, shorten it by `shorten`, and evaluate it as specified by `validation`.

    Parameters
    ----------
    adapter : Adapter
    rows : RowProvider
    make : callable
        Returns the path of a model, computed on some rows.
    shorten : callable
        Reduces a path to the points to evaluate.
    validation : float, (n_rows,) bools, tuple, "auto", "oob", "refit", "cv" or None
        As in `secateur.prune`.
    remake : callable, optional
        Maps the folds' paths to another `make`, which then computes the final path and the paths that are evaluated.
        Used only if rows are held out or clones are refitted.
    trees_interact : bool
        Whether leaf values are fitted jointly, so that a single tree's out-of-bag prediction is meaningless. Held-out
        rows then serve for selection only, and the returned path is computed on all rows.
    match_by_size : bool
        Whether there is a node budget, so that points are matched across folds by their number of nodes.
    rng : numpy Generator
    progress : callable, optional

    Raises
    ------
    ValueError
        If the rows do not allow this kind of validation; the message names alternatives.
    """
    sample = rows.sample(adapter)
    way = validation
    if isinstance(way, str) and way == "auto":
        way = _automatic(adapter, rows, sample, trees_interact)
    if isinstance(way, str) and way in _FOLDS_OF:
        if not isinstance(rows, Rows):
            raise ValueError(
                f"validation={way!r} trains clones of the model here, but the rows are elsewhere. Use a share of them, "
                "such as 0.25, or other rows."
            )
        rounds = _clones(adapter, rows, len(sample), way, rng)
        if remake is not None:
            rounds = list(rounds)
            make = remake([one.whole_fold(make) for one in rounds])
        n_clones = _FOLDS_OF[way][1]
        whole, folds = make(adapter, sample), (one.fold(make) for one in rounds)
        judged = judge(
            whole, shorten, folds, n_clones, match_by_size=match_by_size, rows=_JUDGED_BY[way], progress=progress
        )
        return replace(judged, facts={**judged.facts, "clones": n_clones})
    if isinstance(way, str) and way == "oob" and trees_interact:
        raise ValueError(
            "validation='oob' lets single trees speak for a row, but this solver fits trees to each other. "
            "Use validation='refit', 'cv' or (X_val, y_val)."
        )
    making, judging, which = _rows_to_use(adapter, rows, sample, way, rng)
    if trees_interact and isinstance(way, float | np.ndarray):
        alone = _FoldRows(adapter, making, judging)
        fold = alone.fold(make)
        if remake is not None and not fold.path.facts.get("interrupted"):
            make = remake([fold])
            fold = alone.fold(make)
        # After Ctrl-C select from the incomplete path instead of starting another one on all rows.
        if fold.path.facts.get("interrupted"):
            return shorten(fold.path).evaluate_sample(judging, rows=which, progress=progress, partial=True)
        which += ", by a pruning of the others"
        whole = make(adapter, sample)
        return judge(whole, shorten, [fold], 1, match_by_size=match_by_size, rows=which, progress=progress)
    return shorten(make(adapter, making)).evaluate_sample(judging, rows=which, progress=progress, partial=True)


def _rows_to_use(
    adapter: Adapter, rows: RowProvider, sample: RowSource, way: Validation, rng: np.random.Generator
) -> tuple[RowSource, RowSource, str]:
    """Return the rows to compute the path on, the validation rows, and a description of the latter."""
    if isinstance(way, tuple):
        return sample, rows.others(way).sample(adapter), "the validation rows"
    if isinstance(way, np.ndarray) or way == "oob":
        if not isinstance(sample, LocalRows):
            raise ValueError(
                f"validation={'a mask' if isinstance(way, np.ndarray) else way!r} looks at rows one by one, but they "
                "are elsewhere. Use a share of them, such as 0.25, or other rows."
            )
        if isinstance(way, np.ndarray):
            return *_split_by(sample, way), "the rows of the mask"
        return sample, _out_of_bag(adapter, sample), "out-of-bag rows, each judged by the trees not grown on it"
    if way is not None and not (isinstance(way, float) and 0.0 < way < 1.0):
        raise ValueError(f"validation={way!r} {_NOT_A_WAY}")
    _warn_of_training_rows(adapter, sample)
    if way is None:
        return sample, sample, "the rows passed"
    return *sample.split(way, rng), f"a random share of {way:g} of the rows passed"


def _automatic(adapter: Adapter, rows: RowProvider, sample: RowSource, trees_interact: bool) -> Validation:
    """Return the strategy for `validation="auto"`.

    This is "oob" if the rows are the training rows of bagged trees, otherwise a random share, which also applies to
    remote rows. If trees are fitted jointly, training rows are evaluated by clones refitted without them; refitting
    leaf values alone is not enough, because the splits were chosen on these rows. With at least `_MANY_ROWS` rows a
    single clone is enough ("refit" instead of "cv").
    """
    if not isinstance(rows, Rows) or not isinstance(sample, LocalRows):
        return _SHARE
    if trees_interact:
        can_refit = adapter.supervised and adapter.can_refit and not isinstance(rows.X, Batches)
        if not (can_refit and adapter.grown_on(sample.leaves)):
            return _SHARE
        return "refit" if len(sample) >= _MANY_ROWS else "cv"
    drawn = adapter.in_bag(len(sample)) if adapter.supervised else None
    bagged = drawn is not None and (drawn == 0).any(axis=0).mean() > 0.5
    return "oob" if bagged and adapter.grown_on(sample.leaves) else _SHARE


def _warn_of_training_rows(adapter: Adapter, sample: RowSource) -> None:
    if adapter.supervised and isinstance(sample, LocalRows) and adapter.grown_on(sample.leaves):
        warnings.warn(
            "X looks like the rows the model was trained on; a model's loss there says little about other rows, so the "
            "choice may prune too little or too much. Pass rows it has not seen, or validation='cv' to refit clones.",
            TrainingRowsWarning,
            stacklevel=6,
        )


def _split_by(sample: LocalRows, mask: NDArray[np.bool_]) -> tuple[LocalRows, LocalRows]:
    """Return the rows outside the mask, to compute the path on, and the validation rows inside it."""
    if mask.shape != (len(sample),) or mask.dtype != bool or mask.all() or not mask.any():
        raise ValueError(
            f"validation is an array of {mask.dtype} with shape {mask.shape}, true in {np.count_nonzero(mask)} places; "
            f"a bool for each of {len(sample)} rows is needed, some true and some false. Mark the rows to choose by."
        )
    return sample.take(np.flatnonzero(~mask)), sample.take(np.flatnonzero(mask))


def _out_of_bag(adapter: Adapter, sample: LocalRows) -> LocalRows:
    """Return the rows that are out-of-bag for at least one tree, with the out-of-bag trees of each row."""
    drawn = adapter.in_bag(len(sample))
    if drawn is None or not adapter.grown_on(sample.leaves):
        raise ValueError(
            "validation='oob' needs the rows the model was trained on, all and in their order, and a model that knows "
            "which rows each tree was grown on. Pass those, or validation=(X_val, y_val) or 'cv'."
        )
    voters = drawn == 0
    some = np.flatnonzero(voters.any(axis=0))
    if not len(some):
        raise ValueError(
            "validation='oob' needs rows that some tree has not seen, but every tree was grown on every row "
            "(bootstrap=False). Use validation=(X_val, y_val) or 'cv'."
        )
    return replace(sample, voters=voters).take(some)


@dataclass(frozen=True, eq=False)
class _FoldRows:
    """Hold a model, the rows to compute its path on, and the rows to evaluate the path on."""

    adapter: Adapter
    making: RowSource
    judging: RowSource

    def fold(self, make: Make) -> Fold:
        """Return the path and the rows to evaluate it on."""
        return Fold(make(self.adapter, self.making), self.judging)

    def whole_fold(self, make: Make) -> Fold:
        """Return the same, but raise KeyboardInterrupt if the path is incomplete and thus not comparable."""
        fold = self.fold(make)
        if fold.path.facts.get("interrupted"):
            raise KeyboardInterrupt
        return fold


def _clones(adapter: Adapter, rows: Rows, n_rows: int, way: str, rng: np.random.Generator) -> Iterable[_FoldRows]:
    """Yield clones refitted without one fold, with their training rows and the rows of that fold.

    "cv" uses each of five folds in turn, "refit" only the first of four.
    """
    n_folds, used = _FOLDS_OF[way]
    if n_rows < n_folds:
        raise ValueError(f"{n_rows} rows cannot be split into {n_folds} folds. Pass more rows.")
    fold_of = rng.permutation(n_rows) % n_folds
    for fold in range(used):
        inside, outside = (rows.take(np.flatnonzero(chosen)) for chosen in (fold_of != fold, fold_of == fold))
        clone = adapt(adapter.refit(inside.X, inside.y, inside.weight))
        yield _FoldRows(clone, inside.sample(clone), outside.sample(clone))


def holdout_size(epsilon: float, delta: float, n_prunings: int) -> int:
    """Return the number of held-out rows that makes selection among prunings reliable (PAC bound).

    With log(n_prunings / delta) / epsilon² rows, the measured error rate of every pruning is within epsilon of its
    expectation, with probability 1 − delta. The pruning with the fewest errors is then at most 2·epsilon worse than the
    best one.

    Parameters
    ----------
    epsilon : float
        Allowed deviation, in (0, 1).
    delta : float
        Probability of failure, in (0, 1).
    n_prunings : int
        Number of prunings compared: `len(path)`.

    References
    ----------
    L. Wolf and Y. Mansour. Lecture 12: Decision tree pruning, section 12.1.4, "How large should S₂ be?".

    Examples
    --------
    >>> import secateur as sc
    >>> sc.holdout_size(epsilon=0.05, delta=0.05, n_prunings=100)
    3041
    """
    if not (0 < epsilon < 1 and 0 < delta < 1 and n_prunings >= 1):
        raise ValueError(
            f"Got epsilon={epsilon}, delta={delta}, n_prunings={n_prunings}; the first two must be between 0 and 1 and "
            "there must be at least one pruning. Correct them."
        )
    return math.ceil(math.log(n_prunings / delta) / epsilon**2)
