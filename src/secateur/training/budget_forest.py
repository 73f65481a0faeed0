"""Train random forests under feature cost by BudgetRF (Nan, Wang, Saligrama 2015)."""

import copy
from bisect import bisect_right
from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from secateur.costs import FeatureCost
from secateur.costs.base import PriceTable
from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.training.budget_tree import Draws, TrainingRows, grow_tree, sort_rows

_MAX_SEED = np.iinfo(np.int32).max


class BudgetForestClassifier(RandomForestClassifier):
    """A random forest of greedy minimax trees: each split minimises the feature price per unit of progress.

    With F the impurity of a node's class counts n, a split of S by feature k minimises

        max over both sides of  price of k / (F(S) − F(side)),     F(n) = Σ_{i≠j} [[n_i − α]₊ [n_j − α]₊ − α²]₊

    Splits that cost nothing are compared by progress, the denominator. A node becomes a leaf when F is 0 or no split
    makes progress on both sides. The forest predicts the mean of the leaves' class fractions. Training is a
    **heuristic** (greedy). It takes O(n_features · n_rows · depth · n_classes) per tree, and 8 bytes of memory per
    row and feature for each tree in progress; columns are sorted once for all trees.

    The estimator is a RandomForestClassifier with scikit-learn trees, so every tool that reads, explains or prunes
    random forests accepts it.

    Parameters
    ----------
    feature_costs : (n_features,), dict by name, file or FeatureCost; optional
        As in `secateur.costs.FeatureCost`, including groups; prices by row are not supported. Default: 1 each.
    alpha : float
        The threshold α of the impurity, in units of `sample_weight`. Classes with at most `alpha` rows in a node do not
        count there; two classes of n rows each are separated if n > 2 · alpha. Larger values give smaller, cheaper and
        coarser trees; choose it on a validation set. Default: trees grow until their leaves are pure.
    reuse_price : float between 0 and 1
        The fraction of its price at which a feature, or a group, competes again below the split that bought it; its
        true cost there is 0. With 0, a bought feature wins as long as it makes any progress, so a path tests hardly
        more than one feature with many values. Even a useless feature of this kind makes three quarters of the
        possible progress, so 0.75 differs little from 0. Default: bought features are not preferred.
    n_estimators : int
        The number of trees; with `budget`, the largest number. Each tree buys features, so more trees cost more.
    max_features : None, "sqrt", "log2", int or float
        The number of features to draw at a node, as in scikit-learn. Default: all, as in the paper.
    max_depth : int, optional
        The maximum depth of a tree.
    min_samples_leaf : int
        The minimum number of distinct rows on each side of a split.
    bootstrap : bool
        Whether the rows of a tree are drawn with replacement.
    max_samples : int or float, optional
        The number, or the fraction, of rows to draw for a tree. Default: as many as there are.
    n_jobs : int, optional
        The number of threads; each grows a tree. The result does not depend on it.
    random_state : int, RandomState or None
    budget : float, optional
        The largest mean price of a prediction on the validation rows. Trees are added as long as it is kept (Algorithm
        1 of the paper). Default: all trees, whatever they cost.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
        Their `tree_.impurity` is the Gini impurity, so importances are on a random forest's scale.
    estimators_samples_ : list of arrays
        The rows drawn for each tree.
    classes_ : (n_classes,) array
    n_classes_, n_features_in_, n_outputs_ : int
    feature_names_in_ : (n_features,) array, if X had column names

    References
    ----------
    Nan, Wang, Saligrama (2015): Feature-Budgeted Random Forest. ICML, pp. 1983-1991.

    Examples
    --------
    >>> from secateur.training import BudgetForestClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BudgetForestClassifier([1, 1, 9, 9], n_estimators=5, random_state=0).fit(X, y)
    >>> round(model.cost.mean_price(model, X), 2)
    4.22
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "feature_costs": ["array-like", Mapping, str, PathLike, FeatureCost, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "reuse_price": [Interval(Real, 0, 1, closed="both")],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0.0, 1.0, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_samples": [
            None,
            Interval(Real, 0.0, 1.0, closed="right"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "budget": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        feature_costs: Any = None,
        *,
        alpha: float = 0.0,
        reuse_price: float = 1.0,
        n_estimators: int = 40,
        max_features: int | float | str | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        budget: float | None = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_features=max_features,
            max_depth=max_depth,
            min_samples_leaf=min_samples_leaf,
            bootstrap=bootstrap,
            max_samples=max_samples,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.feature_costs = feature_costs
        self.alpha = alpha
        self.reuse_price = reuse_price
        self.budget = budget

    @property
    def cost(self) -> FeatureCost:
        """The feature cost, for pruning and for measuring: `model.cost.mean_price(model, X)`."""
        return self.feature_costs if isinstance(self.feature_costs, FeatureCost) else FeatureCost(self.feature_costs)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : (n_rows, n_features)
            Converted to float32. At each split, missing values go to the side that gives the better split.
        y : (n_rows,)
            Labels of any type.
        sample_weight : (n_rows,), optional
            The weight of each row in F and in the leaves. Rows of weight 0 are ignored.
        X_val : (n_val, n_features), optional
            The rows on which `budget` is kept. Default: X.
        """
        self._validate_params()
        priced = X if X_val is None else X_val
        X, y = validate_data(self, X, y, dtype=np.float32, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.n_classes_, self.n_outputs_, self._n_samples = len(self.classes_), 1, len(X)
        drawable = _rows_with_weight(weight)
        self._drawable = None if len(drawable) == len(X) else drawable
        self.estimator_ = DecisionTreeClassifier(
            max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, max_features=self.max_features
        )
        seeds = check_random_state(self.random_state).randint(_MAX_SEED, size=self.n_estimators)
        rows, draws = sort_rows(X, codes, weight, self.n_classes_, self._price_table()), self._draws()
        if self.budget is None:
            self.estimators_ = self._grow(rows, draws, seeds)
        else:
            self._grow_within_budget(self.budget, rows, draws, seeds, priced)
        return self

    def _grow(self, rows: TrainingRows, draws: Draws, seeds: NDArray[Any]) -> list[DecisionTreeClassifier]:
        """Return one tree for each seed; the seed determines the rows drawn for it."""
        trees = [clone(self.estimator_).set_params(random_state=int(seed)) for seed in seeds]
        options = {
            "alpha": self.alpha,
            "reuse": self.reuse_price,
            "n_candidates": _n_candidates(self.max_features, len(rows.columns)),
        }
        grown: list[DecisionTreeClassifier] = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(grow_tree)(tree, rows, draws.rows(tree.random_state), **options) for tree in trees
        )
        return grown

    def _grow_within_budget(
        self, budget: float, rows: TrainingRows, draws: Draws, seeds: NDArray[Any], X_val: Any
    ) -> None:
        """Set `estimators_` to as many trees as the budget allows.

        A tree never lowers the price. So trees are grown in batches that double until the price is too high, and the
        number of trees is found by bisection.
        """
        allowed, n_grown = 0, 0
        self.estimators_ = []
        while allowed == n_grown < len(seeds):
            n_grown = min(max(1, 2 * n_grown), len(seeds))
            self.estimators_ += self._grow(rows, draws, seeds[allowed:n_grown])
            prefixes = range(allowed + 1, n_grown + 1)
            allowed += bisect_right(prefixes, budget, key=lambda n: self._price_of(n, X_val))
        if not allowed:
            raise InvalidInputError(
                f"budget={budget:g}, but the first tree alone costs {self._price_of(1, X_val):.4g} per "
                "prediction. Increase budget, or grow smaller trees, for example with a larger alpha or a max_depth."
            )
        del self.estimators_[allowed:]

    def _price_of(self, n_trees: int, X: Any) -> float:
        """Return the mean price of the first trees."""
        first = copy.copy(self)
        first.estimators_ = self.estimators_[:n_trees]
        return self.cost.mean_price(first, X)

    @property
    def estimators_samples_(self) -> list[NDArray[np.intp]]:
        """The rows drawn for each tree, drawn again from the trees' seeds."""
        check_is_fitted(self)
        draws = self._draws()
        return [draws.rows(tree.random_state) for tree in self.estimators_]

    def _draws(self) -> Draws:
        """Return how rows are drawn; raise InvalidInputError if there are not enough."""
        drawable = np.arange(self._n_samples) if self._drawable is None else self._drawable
        n, size = len(drawable), 1.0 if self.max_samples is None else self.max_samples
        n_drawn = int(size) if isinstance(size, int | np.integer) else max(1, round(n * float(size)))
        if n_drawn > n and not self.bootstrap:
            raise InvalidInputError(
                f"max_samples={size}, but only {n} rows have a positive weight, and bootstrap=False draws each row at "
                "most once. Reduce max_samples, or use bootstrap=True."
            )
        return Draws(drawable, n_drawn, bool(self.bootstrap))

    def _price_table(self) -> PriceTable:
        """Return the price table of the features."""
        if self.cost.row_prices is not None:
            raise InvalidInputError(
                "feature_costs has prices by row, but training requires one price per feature. Pass prices= instead of "
                "row_prices=, for example the means over rows."
            )
        names = getattr(self, "feature_names_in_", None)
        no_rows = LocalRows(np.zeros((1, 0), np.uint8), np.zeros((0, 1)), np.zeros(0))
        return self.cost.price_table(_stump(self.n_features_in_, None if names is None else tuple(names)), no_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.classifier_tags.multi_label = False
        tags.target_tags.multi_output = False
        return tags


def _rows_with_weight(weight: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the rows of positive weight; raise InvalidInputError if a weight is negative or all are 0."""
    if (weight < 0).any():
        raise InvalidInputError(
            f"sample_weight contains the negative value {weight.min():g}, but weights must be at least 0. "
            "Pass weights >= 0."
        )
    rows = np.flatnonzero(weight > 0)
    if not len(rows):
        raise InvalidInputError(
            "sample_weight is zero for every row, but training requires rows of positive weight. Pass positive weights."
        )
    return rows


def _n_candidates(max_features: int | float | str | None, n_features: int) -> int:
    """Return the number of features to draw at a node."""
    if max_features is None:
        return n_features
    if isinstance(max_features, str):
        return max(1, int(np.sqrt(n_features) if max_features == "sqrt" else np.log2(n_features)))
    if isinstance(max_features, int | np.integer):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))


def _stump(n_features: int, names: tuple[str, ...] | None) -> Forest:
    """Return a forest of one leaf, which suffices for a cost to look up prices."""
    return Forest(
        tree_start=np.array([0, 1]),
        right=np.full(1, -1, np.int32),
        feature=np.full(1, -1, np.int32),
        threshold=np.zeros(1),
        default_left=np.zeros(1, bool),
        value=np.zeros((1, 1)),
        weight=np.ones(1),
        tree_weight=np.ones(1),
        tree_output=np.full(1, -1, np.int32),
        base=np.zeros(1),
        link="identity",
        n_features=n_features,
        feature_names=names,
    )
