"""Smooth the leaf values of single trees and forests, without changing a split."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from secateur._util.user_functions import user_function
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.forest import Forest
from secateur.forest.promises import constrained_splits
from secateur.forest.shrinkage import hierarchical_shrinkage, m_estimate
from secateur.forest.subforest import Decision
from secateur.libraries import adapt
from secateur.losses import Loss
from secateur.path import Path
from secateur.path.build import Point, trace_points
from secateur.path.evaluation import match_by_parameter
from secateur.problem import Problem
from secateur.selection.evaluated_path import evaluated_path
from secateur.selection.validation import Validation
from secateur.solvers.base import Solver
from secateur.solvers.keep_promises import in_order

Method = Literal["hierarchical", "m_estimate", "laplace"]
_WEIGHTS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
"""Values of m to choose from."""


@user_function
def smooth(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    method: Method = "hierarchical",
    m: float | None = None,
    loss: Loss | str | None = None,
    scoring: Any = None,
    validation: Validation = "auto",
    sample_weight: Any = None,
    random_state: int | np.random.Generator = 0,
    n_jobs: int | None = None,
) -> Any:
    """Return a copy of a trained tree or forest, of the same type, whose leaves with few rows are less extreme.

    A leaf with two rows of one class predicts a probability of 1, and ties with every other pure leaf. Smoothing
    improves probabilities and rankings, and costs no nodes. Every leaf is fitted as if m more rows had a prior value:

    * "hierarchical": each node is shrunk towards its parent, from the root down (hierarchical shrinkage);
    * "m_estimate": the prior is the value of the tree's root;
    * "laplace": the prior is uniform over the classes. m = number of classes is Laplace's rule.

    The rows at a node are those the model was trained on, as the model stores them.

    Parameters
    ----------
    model : fitted model or Forest
        A single tree, or a forest whose prediction is the mean of its trees'.
    X, y, sample_weight : rows, targets and weights to choose m on, as in `prune`; not needed if `m` is given
    method : "hierarchical", "m_estimate" or "laplace"
    m : float, optional
        Number of rows the prior counts as. By default, the value from 0.5 to 500 with the lowest loss; the model is
        returned as it is if none is better.
    loss, scoring, validation, random_state, n_jobs
        As in `prune`. Training rows are recognised: then clones of the model are trained and evaluated.

    Raises
    ------
    UnsupportedModelError
        If single trees do not predict the target, as in boosting, or leaf values cannot be changed.

    References
    ----------
    B. Cestnik and I. Bratko (1991). On estimating probabilities in tree pruning. EWSL-91.

    A. Agarwal, Y. S. Tan, O. Ronen, C. Singh and B. Yu (2022). Hierarchical shrinkage. ICML 2022.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X[:300], y[:300])
    >>> smoothed = sc.smooth(tree, X[:300], y[:300])
    >>> [round(roc_auc_score(y[300:], model.predict_proba(X[300:])[:, 1]), 3) for model in (tree, smoothed)]
    [0.918, 0.971]
    """
    adapter = adapt(model)
    forest = adapter.forest
    _check(adapter.why_immutable("value"), forest, method, m)
    if m is not None:
        return adapter.write(Decision(np.ones(forest.n_nodes, bool), value=smoothed_values(forest, method, m)))
    if X is None:
        raise InvalidInputError("m is to be chosen, but no rows were passed. Pass X and y, or m, such as m=10.")
    solver: Any = _Smoothing(method)
    path = evaluated_path(
        model,
        X,
        y,
        solver=solver,
        loss=loss,
        scoring=scoring,
        validation=validation,
        sample_weight=sample_weight,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    return path.select(rule="lowest").to_model()


def smoothed_values(forest: Forest, method: Method, m: float) -> NDArray[np.float64]:
    """Return the smoothed values of all nodes, in the order of monotonic constraints, (n_nodes, n_outputs)."""
    mean = forest.value / forest.unit
    if method == "hierarchical":
        value = hierarchical_shrinkage(forest, forest.weight, mean, m)
    elif method == "m_estimate":
        root = np.repeat(forest.root, np.diff(forest.tree_start))
        value = m_estimate(forest.weight, mean, mean[root], m)
    else:
        value = m_estimate(forest.weight, mean, np.repeat(1 / np.array(forest.n_classes), forest.n_classes), m)
    value *= forest.unit
    if not len(constrained_splits(forest)):
        return value
    return in_order(forest, np.ones(forest.n_nodes, bool), value, forest.weight)


def _check(immutable: str | None, forest: Forest, method: str, m: float | None) -> None:
    """Raise an error if the model cannot be smoothed, or an argument is not valid."""
    if method not in get_args(Method):
        raise InvalidInputError(f"method={method!r} is unknown. Use one of: {', '.join(get_args(Method))}.")
    if m is not None and not 0 <= m < np.inf:
        raise InvalidInputError(f"m={m!r} is no number of rows. Pass a number from 0 on, or None to choose it.")
    if immutable or not forest.trees_predict_target or not forest.weight[forest.root].all():
        reason = immutable or (
            "the training rows at its nodes are not known."
            if forest.trees_predict_target
            else "a tree of this model predicts only a contribution to the target."
        )
        raise UnsupportedModelError(f"This model cannot be smoothed: {reason} Pass a single tree or a forest.")
    if method == "laplace" and not forest.n_classes:
        raise UnsupportedModelError(
            "method='laplace' has a prior over classes, but this model is a regressor. Use method='m_estimate'."
        )


@final
@dataclass(frozen=True, repr=False)
class _Smoothing(Solver):
    """All nodes, with leaf values smoothed by each weight of the prior; the penalty is that weight."""

    method: Method

    name = "smoothing"
    needs_rows = False
    changes = ("value",)
    uses_ensemble_loss = True

    def unsupported(self, problem: Problem) -> str | None:
        return None

    def path(self, problem: Problem) -> Path:
        return trace_points(problem, self._points(problem.forest), repr(self), ensemble=True)

    def match(self, path: Path, other: Path, *, same_size: bool = False) -> NDArray[np.intp]:
        return match_by_parameter(path, other)

    def _points(self, forest: Forest) -> Iterator[Point]:
        everything = np.ones(forest.n_nodes, bool)
        for m in _WEIGHTS:
            yield Point(m, everything, smoothed_values(forest, self.method, m))
