"""On which rows a point of a path is chosen: other rows, a share, out-of-bag rows, or cross-validation.

A model's loss on the rows it was grown on is no reference: a random forest is nearly perfect there. So these ways keep
apart what grew the model from what judges its prunings, as far as the rows given allow.
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
"""What makes a path of a model by some rows."""
Validation = float | NDArray[np.bool_] | tuple[Any, ...] | Literal["auto", "oob", "refit", "cv"] | None

_SHARE = 0.25
_FOLDS_OF = {"cv": (5, 5), "refit": (4, 1)}
"""Into how many folds the rows are split, and how many of them are left out in turn."""
_JUDGED_BY = {
    "cv": "5-fold cross-validation with refitted clones",
    "refit": "a random share of 0.25 of the rows, by a clone refitted on the others",
}
_MANY_ROWS = 5000
_NOT_A_WAY = "is none of: a share (0 to 1), a mask, (X, y), 'oob', 'refit', 'cv', 'auto', None. Use one of these."


class RowProvider(ABC):
    """The user's rows as they came, wherever they are."""

    @abstractmethod
    def sample(self, adapter: Adapter) -> RowSource:
        """Return them routed."""

    @abstractmethod
    def others(self, given: tuple[Any, ...]) -> "RowProvider":
        """Return other rows of the same kind."""


@dataclass(frozen=True, eq=False)
class Rows(RowProvider):
    """Rows in memory, or in files that are read a part at a time."""

    X: Any
    y: Any = None
    weight: Any = None
    place: NDArray[np.intp] | None = None

    def take(self, index: NDArray[np.intp]) -> "Rows":
        """Return some of them, in the type they came in."""
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
        """Return them routed."""
        return replace(read_sample(adapter, self.X, self.y, self.weight), place=self.place)

    def others(self, given: tuple[Any, ...]) -> "Rows":
        """Return X, y and perhaps weights that came together."""
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
    """Return the path `make` makes and `shorten` shortens, evaluated as `validation` says.

    `trees_interact` says that trees were fitted to each other, so that one cannot speak without the others, as
    out-of-bag trees would. Some of the rows are then held out for choosing only: the path returned is made on all rows.
    `match_by_size` says that a number of nodes is aimed at, so that points of as many nodes stand for each other. Where
    rows are held out, or clones made, `remake` may see paths of all but these first, and say how to make those that
    count.

    Raises
    ------
    ValueError
        If the rows cannot be used that way; it says which other way there is.
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
        if fold.path.facts.get("interrupted"):  # a choice from what there is, rather than starting on all rows
            return shorten(fold.path).evaluate_sample(judging, rows=which, progress=progress, partial=True)
        which += ", by a pruning of the others"
        whole = make(adapter, sample)
        return judge(whole, shorten, [fold], 1, match_by_size=match_by_size, rows=which, progress=progress)
    return shorten(make(adapter, making)).evaluate_sample(judging, rows=which, progress=progress, partial=True)


def _rows_to_use(
    adapter: Adapter, rows: RowProvider, sample: RowSource, way: Validation, rng: np.random.Generator
) -> tuple[RowSource, RowSource, str]:
    """Return the rows to make the path on, the rows to choose by, and what to call the latter."""
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
    """Return out-of-bag rows if these are the training rows of bagged trees, else a share; so of rows elsewhere.

    Where trees are fitted to each other, training rows are judged by clones refitted without them: held-out leaf
    values alone would not do, as the splits have seen the rows. One clone does if a quarter of the rows is many.
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
    """Return rows to make a path on, and those of the mask to choose by."""
    if mask.shape != (len(sample),) or mask.dtype != bool or mask.all() or not mask.any():
        raise ValueError(
            f"validation is an array of {mask.dtype} with shape {mask.shape}, true in {np.count_nonzero(mask)} places; "
            f"a bool for each of {len(sample)} rows is needed, some true and some false. Mark the rows to choose by."
        )
    return sample.take(np.flatnonzero(~mask)), sample.take(np.flatnonzero(mask))


def _out_of_bag(adapter: Adapter, sample: LocalRows) -> LocalRows:
    """Return the rows that some tree has not seen, each with the trees that may speak for it."""
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
    """A model, rows to prune it by, and others to judge the path by."""

    adapter: Adapter
    making: RowSource
    judging: RowSource

    def fold(self, make: Make) -> Fold:
        """Return the path, with the rows to judge it by."""
        return Fold(make(self.adapter, self.making), self.judging)

    def whole_fold(self, make: Make) -> Fold:
        """Return the same, and do not go on after Ctrl-C: half a path says little of what was not tried."""
        fold = self.fold(make)
        if fold.path.facts.get("interrupted"):
            raise KeyboardInterrupt
        return fold


def _clones(adapter: Adapter, rows: Rows, n_rows: int, way: str, rng: np.random.Generator) -> Iterable[_FoldRows]:
    """Yield clones refitted on all folds but one, with these and that one: of five folds all, or of four the first."""
    n_folds, used = _FOLDS_OF[way]
    if n_rows < n_folds:
        raise ValueError(f"{n_rows} rows cannot be split into {n_folds} folds. Pass more rows.")
    fold_of = rng.permutation(n_rows) % n_folds
    for fold in range(used):
        inside, outside = (rows.take(np.flatnonzero(chosen)) for chosen in (fold_of != fold, fold_of == fold))
        clone = adapt(adapter.refit(inside.X, inside.y, inside.weight))
        yield _FoldRows(clone, inside.sample(clone), outside.sample(clone))


def holdout_size(epsilon: float, delta: float, n_prunings: int) -> int:
    """Return how many held-out rows make a choice among prunings safe.

    With log(n_prunings / delta) / epsilon² rows, with probability 1 − delta, the error rate of every pruning is
    measured within epsilon, so the pruning with the fewest errors there is at most 2·epsilon worse than the best.

    Parameters
    ----------
    epsilon : float
        The deviation allowed, in (0, 1).
    delta : float
        The probability of failing, in (0, 1).
    n_prunings : int
        How many prunings are compared: `len(path)`.

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
