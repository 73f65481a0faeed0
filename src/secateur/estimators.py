"""Train and prune in one `fit`: scikit-learn estimators built on `evaluated_path` and `Path.select`.

Three quarters of the rows train the estimator and compute the path; the held-out quarter evaluates it. In experiments
with single trees, bagged and boosted ensembles on five data sets, paths computed on the training rows gave smaller and
more accurate models on test rows than paths computed on the held-out rows. The latter are few, and they would evaluate
prunings fitted to themselves. For a prefit estimator, whose training rows are unavailable, one set of rows serves both
purposes; splitting it was worse.
"""

from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from secateur._util.user_functions import user_function
from secateur.costs import Cost
from secateur.data.row_provider import Rows
from secateur.errors import InvalidInputError
from secateur.losses import Loss
from secateur.path import Path, Pruned
from secateur.path.limits import LIMITS, QUALITY_LIMITS, checked_limits
from secateur.selection.arguments import check_arguments
from secateur.selection.evaluated_path import evaluated_path
from secateur.solvers import Solver

__all__ = ["PrunedClassifier", "PrunedRegressor"]

_CHECKED = ("prefit", "keep_path", "solver", "cost", "loss", "scoring", "confidence", "n_jobs")
_PATH_OPTIONS = ("solver", "cost", "loss", "scoring", "tolerance", "confidence", "n_jobs")


class _PrunedEstimator(MetaEstimatorMixin, BaseEstimator):
    """Implement training, pruning and selection for classifiers and regressors."""

    _default: ClassVar[type]
    path_: Path

    @user_function
    def __init__(
        self,
        estimator: Any = None,
        *,
        prefit: bool = False,
        solver: Solver | str = "auto",
        cost: Cost | str | None = None,
        loss: Loss | str | None = None,
        scoring: Any = None,
        tolerance: float = 0.0,
        confidence: float | None = None,
        validation: float = 0.25,
        max_nodes: int | None = None,
        max_leaves: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        max_cost: float | None = None,
        max_bytes: int | str | None = None,
        max_loss_increase: float | None = None,
        max_score_drop: float | None = None,
        max_changed: float | None = None,
        rule: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        keep_path: bool = False,
    ) -> None:
        self.estimator = estimator
        self.prefit = prefit
        self.solver = solver
        self.cost = cost
        self.loss = loss
        self.scoring = scoring
        self.tolerance = tolerance
        self.confidence = confidence
        self.validation = validation
        self.max_nodes = max_nodes
        self.max_leaves = max_leaves
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.max_features = max_features
        self.max_cost = max_cost
        self.max_bytes = max_bytes
        self.max_loss_increase = max_loss_increase
        self.max_score_drop = max_score_drop
        self.max_changed = max_changed
        self.rule = rule
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.keep_path = keep_path

    @user_function
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train the estimator on a part of the rows, unless it is already fitted, and prune it.

        Parameters
        ----------
        X, y : rows and targets, in any form the estimator accepts
        sample_weight : (n_rows,), optional
            Used for training, for the path and for selection. Rows of weight 0 are dropped.
        groups : (n_rows,), optional
            As in `prune`: rows of a group are held out together, without strata of classes.
        """
        checked_limits({name: getattr(self, name) for name in (*LIMITS, *QUALITY_LIMITS)}, PrunedClassifier)
        check_arguments(**{name: getattr(self, name) for name in _CHECKED})
        X, y = validate_data(self, X, y, skip_check_array=True)
        model = self._check_estimator()
        rows = _read_rows(X, y, sample_weight, groups)
        if self.prefit or isinstance(model, FrozenEstimator):
            model = model.estimator if isinstance(model, FrozenEstimator) else model
            self.path_ = self._path(model, rows, None)
        else:
            rng = check_random_state(self.random_state)
            training, held_out = _split(rows, self.validation, isinstance(self, ClassifierMixin), rng)
            self.path_ = self._path(_train(model, training, rng), training, held_out)
        self.estimator_ = self._select().to_model()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions of the pruned estimator."""
        check_is_fitted(self)
        prediction: NDArray[Any] = self.estimator_.predict(X)
        return prediction

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: once fitted, without the path and the unpruned model, unless `keep_path`."""
        state: dict[str, Any] = super().__getstate__()
        if self.keep_path or "estimator_" not in state:
            return state
        estimator = self.estimator
        if isinstance(estimator, FrozenEstimator):
            estimator = FrozenEstimator(clone(estimator.estimator))
        elif self.prefit:
            estimator = clone(estimator)
        return {name: value for name, value in state.items() if name != "path_"} | {"estimator": estimator}

    def __copy__(self) -> Self:
        """Return a copy with the path, which a pickle may not have."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(vars(self))
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a deep copy with the path, which a pickle may not have."""
        copied = copy(self)
        copied.__dict__.update({name: deepcopy(value, memo) for name, value in vars(self).items()})
        return copied

    def __getattr__(self, name: str) -> Any:
        advice = ""
        if name == "path_" and "estimator_" in vars(self):
            advice = "; it is pickled only with keep_path=True"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    def __sklearn_tags__(self) -> Any:
        tags, inner_tags = super().__sklearn_tags__(), get_tags(self._estimator())
        for name in ("input_tags", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner_tags, name))
        return tags

    def _estimator(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    def _check_estimator(self) -> Any:
        """Return the estimator; raise ValueError if it is not a classifier or regressor as this class requires."""
        model = self._estimator()
        if get_tags(model).estimator_type != get_tags(self).estimator_type:
            raise InvalidInputError(
                f"{type(self).__name__} got a {type(model).__name__}, which is not of the same kind. Use "
                "PrunedClassifier for classifiers and PrunedRegressor for regressors."
            )
        return model

    def _path(self, model: Any, rows: Rows, others: Rows | None) -> Path:
        """Return the path computed on `rows` and evaluated on `others`, or on the same rows if `others` is None."""
        # The model's own validation rejects invalid rows, for example infinite values, which routing would accept.
        model.predict((others or rows).X)
        return evaluated_path(
            model,
            rows.X,
            rows.y,
            sample_weight=rows.weight,
            groups=rows.groups,
            validation=None if others is None else (others.X, others.y, others.weight, others.groups),
            # Estimators of scikit-learn accept few rows.
            fewest_rows=1,
            **{name: getattr(self, name) for name in (*_PATH_OPTIONS, *LIMITS, "max_score_drop")},
        )

    def _select(self) -> Pruned:
        limits = {name: getattr(self, name) for name in (*LIMITS, *QUALITY_LIMITS, "rule", "confidence")}
        return self.path_.select(**limits)


class PrunedClassifier(ClassifierMixin, _PrunedEstimator):
    """Train and prune a tree classifier in `fit`.

    Parameters
    ----------
    estimator : classifier, default DecisionTreeClassifier()
        Any supported tree model. It is cloned; a missing seed is drawn from `random_state`.
    prefit : bool
        Whether the estimator is already fitted. Then nothing is trained, and all rows given to `fit`, which should not
        be its training rows, compute and evaluate the path. `clone` would discard the fit, so in GridSearchCV and
        similar tools pass `FrozenEstimator(estimator)`, which counts as fitted with or without `prefit`.
    solver, cost, loss
        As in `prune_path`. A solver that needs rows the model was not trained on, such as reduced_error, requires
        `prefit`.
    scoring : str or callable, optional
        As in `prune`: choose by your own metric. It is measured on the held-out rows.
    tolerance : float
        As in `prune`; for regressors.
    confidence : float, optional
        As in `prune`: the limits hold in truth with this confidence. It needs an estimator that `fit` trains.
    validation : float
        Fraction of the rows held out of training to select the pruning, stratified by class.
    max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes, rule
    max_loss_increase, max_score_drop, max_changed
        As in `Path.select`.
    random_state : int, RandomState or None
        Seed of the held-out split and of the estimator.
    n_jobs : int, optional
        Number of threads that prune; see `prune_path`.
    keep_path : bool
        Whether the fitted estimator is pickled with `path_` and the unpruned model. By default it is pickled with the
        pruned model alone, and a prefit estimator as an unfitted clone.

    Attributes
    ----------
    estimator_ : the pruned model, of the estimator's type
        Pass this object to libraries that look at trees, as in `shap.TreeExplainer(model.estimator_)`.
    path_ : Path
        The points within the limits, evaluated on the held-out rows. Selecting another point needs no new `fit`. It
        holds the unpruned model, and is not pickled by default (see `keep_path`).
    classes_ : (n_classes,) array
    n_features_in_ : int
    feature_names_in_ : (n_features,) array, if X had column names

    Examples
    --------
    >>> from secateur.estimators import PrunedClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PrunedClassifier(max_leaves=4, random_state=0).fit(X, y)
    >>> model.estimator_.tree_.node_count
    5
    """

    _default = DecisionTreeClassifier

    @property
    def classes_(self) -> Any:
        """Class labels, in the order of the columns of `predict_proba`."""
        return self.estimator_.classes_

    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities of the pruned estimator, (n_rows, n_classes)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)


class PrunedRegressor(RegressorMixin, _PrunedEstimator):
    """Train and prune a tree regressor in `fit`.

    Parameters and attributes (`estimator_`, `path_`, `n_features_in_`, `feature_names_in_`) are those of
    PrunedClassifier; the default estimator is DecisionTreeRegressor(), and there are no classes.

    Examples
    --------
    >>> from secateur.estimators import PrunedRegressor
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> PrunedRegressor(max_depth=3, random_state=0).fit(X, y).estimator_.get_depth() <= 3
    True
    """

    _default = DecisionTreeRegressor


def _read_rows(X: Any, y: Any, sample_weight: Any, groups: Any) -> Rows:
    """Return the rows of nonzero weight, in a form that can be indexed."""
    rows = Rows(*indexable(X, y, sample_weight, groups))
    if sample_weight is None:
        return rows
    counts = column_or_1d(sample_weight) != 0
    if not counts.any():
        raise InvalidInputError("sample_weight is zero for every row, but training needs rows. Pass positive weights.")
    return rows.take(np.flatnonzero(counts))


def _split(rows: Rows, share: float, stratify: bool, rng: np.random.RandomState) -> tuple[Rows, Rows]:
    """Split the rows into disjoint training and validation rows."""
    if not isinstance(share, float) or not 0 < share < 1:
        raise InvalidInputError(
            f"validation={share!r:.60} is not a fraction of the rows. Pass a float between 0 and 1."
        )
    if rows.groups is not None:
        return _split_groups(rows, share, rng)
    y = np.asarray(rows.y)
    codes = np.zeros(len(y), np.intp)
    if stratify:
        check_classification_targets(y)
        # Only a single target is stratified.
        if y.size == len(y):
            codes = np.unique(y, return_inverse=True)[1].ravel()
    held_out = _hold_out(codes, share, rng)
    return rows.take(np.flatnonzero(~held_out)), rows.take(np.flatnonzero(held_out))


def _split_groups(rows: Rows, share: float, rng: np.random.RandomState) -> tuple[Rows, Rows]:
    """Split the groups of rows at random."""
    groups = column_or_1d(rows.groups)
    if len(np.unique(groups)) < 2:
        raise InvalidInputError("All rows are of one group, so none can be held out. Pass rows of several groups.")
    splitter = GroupShuffleSplit(1, test_size=share, random_state=rng)
    training, held_out = next(splitter.split(groups, groups=groups))
    return rows.take(training), rows.take(held_out)


def _hold_out(codes: NDArray[np.intp], share: float, rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Return the mask of held-out rows, (n_rows,), stratified by class as far as possible.

    At least one row of every class stays in the training set, because the estimator cannot predict a class it has not
    seen.
    """
    # `free` is a random permutation without the first row of each class.
    order = rng.permutation(len(codes))
    free = np.delete(order, np.unique(codes[order], return_index=True)[1])
    if not len(free):
        raise InvalidInputError(
            f"n_samples={len(codes)}: training needs one row of each class, so no row is left for validation. Pass "
            "more rows, or train the estimator first and pass prefit=True."
        )
    # Systematic sampling: sort by class and take rows at even distances.
    free = free[np.argsort(codes[free], kind="stable")]
    n_held_out = min(max(round(share * len(codes)), 1), len(free))
    held_out = np.zeros(len(codes), bool)
    held_out[free[((np.arange(n_held_out) + 0.5) * len(free) / n_held_out).astype(np.intp)]] = True
    return held_out


def _train(estimator: Any, rows: Rows, rng: np.random.RandomState) -> Any:
    """Return a fitted clone of the estimator; seeds that are None are drawn from `rng`."""
    model = clone(estimator)
    parameters = sorted(model.get_params().items(), key=lambda item: item[0])
    unseeded = [name for name, value in parameters if name.split("__")[-1] == "random_state" and value is None]
    model.set_params(**{name: rng.randint(np.iinfo(np.int32).max) for name in unseeded})
    weight = {} if rows.weight is None else {"sample_weight": rows.weight}
    return model.fit(rows.X, rows.y, **weight)
