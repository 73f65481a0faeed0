"""Split the rows into rows to fit a path on and validation rows, according to `validation`.

A model's loss on its training rows is no reference: a random forest is nearly perfect there. These strategies separate
the rows that trained the model from the rows that evaluate its prunings, as far as the given rows allow.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from secateur._util.threads import has_threads, in_threads
from secateur._util.user_functions import warn
from secateur.data.row_provider import RowProvider, Rows
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError, TrainingRowsWarning, UnsupportedProblemError
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter

Validation = float | NDArray[np.bool_] | tuple[Any, ...] | Literal["auto", "oob", "refit", "cv"] | None

_SHARE = 0.25
_FOLDS_OF = {"cv": (5, 5), "refit": (4, 1)}
"""Number of folds, and how many of them serve as validation fold in turn."""
_EVALUATED_ON = {
    "cv": "5-fold cross-validation with refitted clones",
    "refit": "a random 25 % of the rows, held out from a refitted clone",
}
_MANY_ROWS = 5000


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Hold a model, the rows to fit its path on, and the rows to evaluate the path on."""

    adapter: Adapter
    fit_rows: RowSource
    validation_rows: RowSource


@dataclass(frozen=True, eq=False)
class Split:
    """Hold the folds of the rows.

    Attributes
    ----------
    folds : iterable of FoldRows
        Clones are trained as the folds are iterated over.
    n_folds : int
    description : str
        The validation rows in words.
    refit : bool
        Whether the path is fitted again on all rows, and each of its points evaluated by the matching points of the
        folds' paths. Otherwise the path of the only fold is evaluated directly.
    clones : int, optional
        The number of clones, if each fold has its own model.
    """

    folds: Iterable[FoldRows]
    n_folds: int
    description: str
    refit: bool
    clones: int | None = None


def split_rows(
    adapter: Adapter,
    rows: RowProvider,
    sample: RowSource,
    validation: Validation,
    *,
    trees_interact: bool,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> Split:
    """Split the rows as specified by `validation`.

    Parameters
    ----------
    adapter : Adapter
    rows : RowProvider
    sample : RowSource
        The same rows, routed through the model.
    validation : float, (n_rows,) bools, tuple, "auto", "oob", "refit", "cv" or None
        As in `secateur.prune`.
    trees_interact : bool
        Whether leaf values are fitted jointly, so that a single tree's out-of-bag prediction is meaningless.
    rng : numpy Generator
    n_jobs : int, optional
        Number of threads that train clones. With one, clones are trained as the folds are iterated over.

    Raises
    ------
    InvalidInputError
        If the rows do not allow this kind of validation; the message names alternatives.
    """
    kind = validation
    if isinstance(kind, str) and kind == "auto":
        kind = _automatic(adapter, rows, sample, trees_interact)
    if isinstance(kind, str) and kind in _FOLDS_OF:
        if not isinstance(rows, Rows):
            raise InvalidInputError(
                f"validation={kind!r} trains clones of the model on this machine, but the rows are remote. Pass a "
                "fraction of the rows, such as 0.25, or separate validation rows."
            )
        n_clones = _FOLDS_OF[kind][1]
        # Rows that can be trained on are in memory.
        units = sample.units if isinstance(sample, LocalRows) else np.arange(len(sample))
        clones = _refit_clones(adapter, rows, units, kind, rng, n_jobs)
        return Split(clones, n_clones, _EVALUATED_ON[kind], True, n_clones)
    if isinstance(kind, str) and kind == "oob" and trees_interact:
        raise UnsupportedProblemError(
            "validation='oob' needs predictions of single trees, but this solver fits trees jointly. Pass "
            "validation='refit', 'cv' or (X_val, y_val)."
        )
    fit_rows, validation_rows, description = _held_out(adapter, rows, sample, kind, rng)
    refit = trees_interact and isinstance(kind, float | np.ndarray)
    return Split((FoldRows(adapter, fit_rows, validation_rows),), 1, description, refit)


def independent(split: Split, adapter: Adapter, sample: RowSource) -> Split:
    """Return the split, after checking that its validation rows trained neither the model nor the pruning.

    Raises
    ------
    InvalidInputError
        If they did.
    """
    found = None
    if split.clones:
        found = "clones of the model are evaluated, not the model"
    elif split.description.startswith("out-of-bag") or split.description == "the rows passed":
        found = f"{split.description} are rows that the model or the pruning was fitted on"
    elif split.description != "the validation rows" and isinstance(sample, LocalRows):
        found = "the rows look like those the model was trained on" if adapter.grown_on(sample.leaves) else None
    if found is None:
        return split
    raise InvalidInputError(
        f"confidence holds for rows that neither the model nor the pruning was fitted on, but {found}. Pass "
        "validation=(X_val, y_val) with other rows, or leave out confidence."
    )


def _held_out(
    adapter: Adapter, rows: RowProvider, sample: RowSource, kind: Validation, rng: np.random.Generator
) -> tuple[RowSource, RowSource, str]:
    """Return the rows to fit the path on, the validation rows, and a description of the latter."""
    if isinstance(kind, tuple):
        return sample, rows.others(kind).sample(adapter), "the validation rows"
    if isinstance(kind, np.ndarray) or kind == "oob":
        if not isinstance(sample, LocalRows):
            raise InvalidInputError(
                f"validation={'a mask' if isinstance(kind, np.ndarray) else repr(kind)} needs rows in a known order, "
                "but the rows are remote. Pass a fraction of the rows, such as 0.25, or separate validation rows."
            )
        if isinstance(kind, np.ndarray):
            return *_split_by(sample, kind), "the rows selected by the mask"
        return sample, _out_of_bag(adapter, sample), "out-of-bag rows, each predicted by the trees it did not train"
    if kind is not None and not (isinstance(kind, float) and 0.0 < kind < 1.0):
        raise InvalidInputError(
            f"validation={kind!r} is not valid. Pass a fraction between 0 and 1, a mask, (X, y), 'oob', 'refit', 'cv', "
            "'auto' or None."
        )
    _warn_of_training_rows(adapter, sample)
    if kind is None:
        return sample, sample, "the rows passed"
    return *sample.split(kind, rng), f"a random {100 * kind:g} % of the rows"


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
        can_refit = adapter.supervised and adapter.can_refit and rows.can_train
        if not (can_refit and adapter.grown_on(sample.leaves)):
            return _SHARE
        return "refit" if len(sample) >= _MANY_ROWS else "cv"
    # Trees are trained on other rows of the groups of their out-of-bag rows.
    drawn = adapter.in_bag(len(sample)) if adapter.supervised and sample.groups is None else None
    bagged = drawn is not None and (drawn == 0).any(axis=0).mean() > 0.5
    return "oob" if bagged and adapter.grown_on(sample.leaves) else _SHARE


def _warn_of_training_rows(adapter: Adapter, sample: RowSource) -> None:
    if adapter.supervised and isinstance(sample, LocalRows) and adapter.grown_on(sample.leaves):
        warn(
            "X looks like the rows the model was trained on. The loss on training rows is a poor estimate of the loss "
            "on new rows, so the selected model may be too large or too small. Pass rows the model was not trained on, "
            "or validation='cv' to refit clones.",
            TrainingRowsWarning,
        )


def _split_by(sample: LocalRows, mask: NDArray[np.bool_]) -> tuple[LocalRows, LocalRows]:
    """Return the rows outside the mask, to fit the path on, and the validation rows inside it."""
    if mask.shape != (len(sample),) or mask.dtype != bool or mask.all() or not mask.any():
        raise InvalidInputError(
            f"validation is an array of dtype {mask.dtype} and shape {mask.shape} with {np.count_nonzero(mask)} true "
            f"entries; a mask needs a bool for each of {len(sample)} rows, some true and some false. Mark the "
            "validation rows as true."
        )
    parted = np.intersect1d(sample.units[mask], sample.units[~mask])
    if len(parted):
        raise InvalidInputError(
            f"validation marks some but not all rows of {len(parted)} groups, but the rows of a group stay together. "
            "Mark all rows of a group, or pass a fraction of the rows."
        )
    return sample.take(np.flatnonzero(~mask)), sample.take(np.flatnonzero(mask))


def _out_of_bag(adapter: Adapter, sample: LocalRows) -> LocalRows:
    """Return the rows that are out-of-bag for at least one tree, with the out-of-bag trees of each row."""
    if sample.groups is not None:
        raise InvalidInputError(
            "validation='oob' was given with groups, but trees are trained on other rows of the same groups. Pass "
            "validation='cv' or (X_val, y_val, None, groups_val), or leave out groups."
        )
    drawn = adapter.in_bag(len(sample))
    if drawn is None or not adapter.grown_on(sample.leaves):
        raise InvalidInputError(
            "validation='oob' needs all training rows in their original order, and a model that knows on which rows "
            "each tree was trained. Pass those rows, or validation=(X_val, y_val) or 'cv'."
        )
    voters = drawn == 0
    some = np.flatnonzero(voters.any(axis=0))
    if not len(some):
        raise InvalidInputError(
            "validation='oob' needs out-of-bag rows, but every tree was trained on every row (bootstrap=False). Pass "
            "validation=(X_val, y_val) or 'cv'."
        )
    return replace(sample, voters=voters).take(some)


def _refit_clones(
    adapter: Adapter, rows: Rows, units: NDArray[np.intp], kind: str, rng: np.random.Generator, n_jobs: int | None
) -> Iterator[FoldRows]:
    """Yield clones refitted without one fold, with their training rows and the rows of that fold.

    "cv" uses each of five folds in turn, "refit" only the first of four. Rows of the same unit stay together.
    """
    n_folds, used = _FOLDS_OF[kind]
    n_units = int(units.max(initial=-1)) + 1
    if n_units < n_folds:
        raise InvalidInputError(
            f"{n_units} rows, or groups of rows, cannot be split into {n_folds} folds. Pass more of them."
        )
    fold_of = (rng.permutation(n_units) % n_folds)[units]

    def refit(fold: int) -> FoldRows:
        inside, outside = (rows.take(np.flatnonzero(chosen)) for chosen in (fold_of != fold, fold_of == fold))
        clone = adapt(adapter.refit(inside.X, inside.y, inside.weight))
        return FoldRows(clone, inside.sample(clone), outside.sample(clone))

    if has_threads(n_jobs):
        yield from in_threads(refit, range(used), n_jobs)
    else:
        # One clone at a time is in memory.
        yield from map(refit, range(used))


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
        raise InvalidInputError(
            f"Got epsilon={epsilon}, delta={delta}, n_prunings={n_prunings}; epsilon and delta must lie between 0 and "
            "1, and n_prunings must be at least 1. Pass such values."
        )
    return math.ceil(math.log(n_prunings / delta) / epsilon**2)
