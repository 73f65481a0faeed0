"""Choose by the user's own metric: scorers of scikit-learn, by name or as objects, and functions.

A scorer takes (estimator, X, y) and returns a number of which larger is better.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.registry import advice_on
from secateur._util.text import shortened
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.losses import ALIASES, Loss, loss_named
from secateur.path.ranking_scores import ranking_scorer

_LONGEST_NAME = 80


@dataclass(frozen=True, eq=False)
class Scoring:
    """Hold a scorer and what is known about it.

    Attributes
    ----------
    name : str
    scorer : callable
    takes_weight : bool
        Whether it accepts `sample_weight`.
    reads_rows : bool
        Whether it may look at X itself; scorers of scikit-learn only pass it to the estimator.
    mean_of : str, optional
        The loss whose mean over rows is the score, but for sign and scale.
    known : bool
        Whether it was given by name.
    takes_groups, needs_groups : bool
        Whether it accepts `groups`, the group of each row as an integer, and whether it cannot do without.
    """

    name: str
    scorer: Callable[..., Any]
    takes_weight: bool
    reads_rows: bool
    mean_of: str | None = None
    known: bool = False
    takes_groups: bool = False
    needs_groups: bool = False

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        weight: NDArray[np.float64] | None,
        groups: NDArray[np.intp] | None = None,
    ) -> float:
        """Return the score of an estimator.

        Raises
        ------
        InvalidInputError
            If the scorer raises an error, or does not return a finite number.
        """
        more: dict[str, Any] = {} if weight is None else {"sample_weight": weight}
        if self.takes_groups:
            more["groups"] = groups
        try:
            score = self.scorer(estimator, X, y, **more)
        except Exception as error:
            raise InvalidInputError(
                f"scoring={self.name!r} raised {type(error).__name__} ({str(error).rstrip('.')}). It must score an "
                "estimator of this kind on the validation rows. Use a metric for this kind of model, or fix the "
                "function."
            ) from error
        number = _number(score)
        if number is None or not math.isfinite(number):
            found = "NaN or infinity" if number is not None else f"{type(score).__name__} {score!r:.60}"
            raise InvalidInputError(
                f"scoring={self.name!r} returned {found}, but one finite number is needed. Return a number of which "
                "larger is better, or pass validation rows for which the metric is defined."
            )
        return number


@dataclass(frozen=True, eq=False)
class Measures:
    """Say what `evaluate` measures besides the loss.

    Attributes
    ----------
    scoring : Scoring, optional
    tolerance : float
        By how much a predicted number must differ from that of the unpruned model to count as changed.
    """

    scoring: Scoring | None = None
    tolerance: float = 0.0


LOSS_ONLY = Measures()
"""Neither a scorer nor a tolerance."""


def measures_of(scoring: Any, tolerance: float, forest: Forest) -> Measures:
    """Return the measures given by the arguments `scoring` and `tolerance` of the API.

    Raises
    ------
    InvalidInputError
        If the scorer is unknown, or the tolerance is not a number that fits the model.
    """
    if not isinstance(tolerance, int | float | np.number) or not 0 <= tolerance < math.inf:
        raise InvalidInputError(f"tolerance={tolerance!r} is not a number from 0 on. Pass such a number.")
    if tolerance and forest.n_classes:
        raise InvalidInputError(
            f"tolerance={tolerance!r} says by how much a predicted number may move, but this model predicts labels, "
            "which are equal or not. Leave out tolerance."
        )
    return Measures(scoring_of(scoring), float(tolerance))


def check_measured(measures: Measures, limits: Mapping[str, Any]) -> None:
    """Raise InvalidInputError if the limits need a score and there is no scorer."""
    if limits.get("max_score_drop") is not None and measures.scoring is None:
        raise InvalidInputError(
            f"max_score_drop={limits['max_score_drop']!r} limits the drop of a score, but no scorer was given. Pass "
            "scoring= as well, or limit the loss with max_loss_increase."
        )


def scoring_of(scoring: Any) -> Scoring | None:
    """Return the scorer given by name, as an object of scikit-learn or as a function; None for None.

    Raises
    ------
    InvalidInputError
        If the name is unknown, or it is not callable.
    """
    if scoring is None or isinstance(scoring, Scoring):
        return scoring
    from sklearn.metrics import get_scorer, get_scorer_names

    if isinstance(scoring, str):
        ranking = ranking_scorer(scoring)
        if ranking is not None:
            return Scoring(scoring, ranking, False, False, known=True, takes_groups=True, needs_groups=True)
        if scoring not in get_scorer_names():
            raise InvalidInputError(
                f"scoring={scoring!r} is unknown. A name of sklearn.metrics.get_scorer_names(), 'ndcg' or 'ndcg@10', a "
                "scorer or a function of (estimator, X, y) is needed. "
                f"{advice_on(scoring, [*get_scorer_names(), 'ndcg'])}"
            )
        # R² is divided by the variance of the rows scored, so it is no mean over rows.
        mean_of = None if scoring == "r2" else ALIASES.get(scoring)
        return replace(_described(get_scorer(scoring), scoring), mean_of=mean_of, known=True)
    if not callable(scoring) or isinstance(scoring, type):
        raise InvalidInputError(
            f"scoring={scoring!r:.60} is not a scorer. A function of (estimator, X, y) that returns one number is "
            "needed. Pass one metric: the name of a scorer of scikit-learn, make_scorer(…), or a function."
        )
    if getattr(scoring, "__module__", "").startswith("sklearn.metrics") and not hasattr(scoring, "_score_func"):
        raise InvalidInputError(
            f"scoring={_name_of(scoring)} is a metric of (y_true, y_pred), but a scorer takes (estimator, X, y). "
            f"Pass scoring=make_scorer({_name_of(scoring)}), or the name of a scorer of scikit-learn."
        )
    return _described(scoring, shortened(_name_of(scoring), _LONGEST_NAME))


def _described(scorer: Callable[..., Any], name: str) -> Scoring:
    # Scorers made by make_scorer have their metric here.
    metric = getattr(scorer, "_score_func", None)
    takes_groups = metric is None and _takes("groups", scorer)
    takes_weight = _takes("sample_weight", metric or scorer)
    return Scoring(name, scorer, takes_weight, metric is None, takes_groups=takes_groups)


def _name_of(scorer: Callable[..., Any]) -> str:
    return repr(scorer) if hasattr(scorer, "_score_func") else getattr(scorer, "__name__", type(scorer).__name__)


def _takes(name: str, function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return False
    return name in parameters


def _number(score: Any) -> float | None:
    """Return a score as a float; None if it is not one number."""
    if isinstance(score, str | bytes) or np.ndim(score) > 0:
        return None
    try:
        return float(score)
    except (TypeError, ValueError):
        return None


def mean_loss_of(name: str) -> Loss | None:
    """Return the loss whose mean over rows is the score of this name, but for its scale; None if none is known."""
    from sklearn.metrics import get_scorer_names

    scoring = scoring_of(name) if name in get_scorer_names() else None
    loss = None if scoring is None or scoring.mean_of is None else loss_named(scoring.mean_of)
    return loss if loss is not None and loss.additive else None


def scale_of(loss: Loss, forest: Forest) -> float:
    """Return the factor from the mean of a loss to the negative score of scikit-learn."""
    # The Brier score of scikit-learn counts only one of two classes.
    return 0.5 if loss.name == "brier" and forest.n_classes == (2,) else 1.0
