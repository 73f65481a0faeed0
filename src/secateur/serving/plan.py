"""Precompute what lazy prediction needs of a model: bounds below each node, column prices and the stopping rule."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from secateur.costs import PriceTable, SharedCost
from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.routing import category_lists, splits_of
from secateur.kernels import CategoryLists, SplitArrays
from secateur.kernels.serving.lazy_routing import Progress, Subtrees, leaves_below
from secateur.libraries.adapter import Adapter
from secateur.libraries.input_columns import InputColumns
from secateur.serving.bounds import LabelRule, label_rule, slack_of, why_not_linear

Same = Literal["leaves", "value", "label"]
Missing = Literal["model", "report", "raise"]


class Options(TypedDict, total=False):
    """Keyword arguments of the prediction methods; `LazyPredictor` documents them."""

    same: Same
    tolerance: float
    max_cost: float | None
    missing: Missing


@dataclass(frozen=True)
class Terms:
    """Validated options of a prediction; `LazyPredictor` documents them."""

    same: Same = "value"
    tolerance: float = 0.0
    max_cost: float | None = None
    missing: Missing = "model"

    def __post_init__(self) -> None:
        for name, known in (("same", get_args(Same)), ("missing", get_args(Missing))):
            if getattr(self, name) not in known:
                raise InvalidInputError(
                    f"{name}={getattr(self, name)!r} is not supported. Use one of: {', '.join(known)}."
                )
        for name in ("tolerance", "max_cost"):
            if getattr(self, name) is not None and not getattr(self, name) >= 0:
                raise InvalidInputError(
                    f"{name} is {getattr(self, name)}, but it must be at least 0. Pass a number >= 0."
                )
        if self.tolerance and self.same != "value":
            raise InvalidInputError(
                f"tolerance={self.tolerance} applies only to same='value', but same={self.same!r}. "
                "Use same='value', or omit tolerance."
            )


@dataclass(frozen=True, eq=False)
class Plan:
    """Hold the arrays of a model that lazy routing reads; all of them are computed once and do not depend on rows.

    Attributes
    ----------
    adapter : Adapter
    columns : InputColumns
        The input columns, and the column behind each feature of the forest.
    cost : SharedCost
        The feature cost.
    """

    adapter: Adapter
    columns: InputColumns
    cost: SharedCost

    @cached_property
    def forest(self) -> Forest:
        """The forest whose raw scores the adapter's `predict` expects."""
        forest = self.adapter.forest
        return replace(forest, divisor=1.0) if self.adapter.raw_is_total else forest

    @cached_property
    def split_column(self) -> NDArray[np.int32]:
        """The input column each split needs, −1 at a leaf, (n_nodes,)."""
        feature = self.forest.feature
        return np.where(feature >= 0, np.append(self.columns.origin, np.int32(-1))[feature], np.int32(-1))

    @cached_property
    def term(self) -> NDArray[np.float64]:
        """The weighted contribution of each node to the score, rounded to the summation dtype, (n_nodes, width)."""
        weight = np.repeat(self.forest.tree_weight, np.diff(self.forest.tree_start))
        with np.errstate(over="ignore"):
            return (weight[:, None] * self.forest.value).astype(self.forest.sum_dtype).astype(np.float64)

    @cached_property
    def _below(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int32]]:
        low, high = np.empty_like(self.term), np.empty_like(self.term)
        settled = np.empty(self.forest.n_nodes, np.int32)
        leaves_below(self.forest.right, self.term, self.forest.value.view(np.int64), low, high, settled)
        return low, high, settled

    @property
    def low(self) -> NDArray[np.float64]:
        """The smallest contribution of the leaves below each node, (n_nodes, width)."""
        return self._below[0]

    @property
    def high(self) -> NDArray[np.float64]:
        """The largest contribution of the leaves below each node, (n_nodes, width)."""
        return self._below[1]

    @cached_property
    def width(self) -> NDArray[np.float64]:
        """The range of contributions still possible below each node, summed over outputs, (n_nodes,)."""
        return (self.high - self.low).sum(axis=1)

    @cached_property
    def splits(self) -> SplitArrays:
        """The splits as the kernels take them."""
        return splits_of(self.forest)

    @cached_property
    def categories(self) -> CategoryLists:
        """The categorical splits as the kernels take them."""
        return category_lists(self.forest)

    def subtrees(self, terms: Terms) -> Subtrees:
        """Return what lazy routing knows of the subtree below each node.

        Routing continues from a leaf if all leaves below a node have identical values, and from the node itself
        otherwise. With same="leaves" it is always the node itself.
        """
        return self._subtrees[terms.same == "leaves"]

    @cached_property
    def _subtrees(self) -> tuple[Subtrees, Subtrees]:
        subtrees = Subtrees(self.split_column, self._below[2], self.low, self.high, self.width)
        return subtrees, subtrees._replace(settled=np.arange(self.forest.n_nodes, dtype=np.int32))

    @cached_property
    def replacement(self) -> Forest:
        """The forest with split values clipped to the range of the leaves below, for trees that stop at a split."""
        low, high = _value_bounds(self.forest)
        return replace(self.forest, value=np.clip(self.forest.value, low, high))

    def start(self, terms: Terms) -> Progress:
        """Return the progress of one row without columns."""
        return self._starts[terms.same == "leaves"]

    @cached_property
    def _starts(self) -> tuple[Progress, Progress]:
        first, second = (start_of(self, subtrees.settled[self.forest.root]) for subtrees in self._subtrees)
        return first, second

    def price_table(self, n_rows: int) -> PriceTable:
        """Return the price table of the input columns for `n_rows` rows."""
        by_column = replace(
            self.forest, feature=self.split_column, n_features=self.columns.n_columns, feature_names=self.columns.names
        )
        return self.cost.price_table(
            by_column, LocalRows(np.zeros((0, n_rows), np.uint8), np.zeros((n_rows, 1)), np.ones(n_rows))
        )

    @cached_property
    def rule(self) -> LabelRule | str:
        """The rule that maps scores to labels, or the reason why none is known."""
        return label_rule(self.adapter, self.forest, self.term)

    @cached_property
    def slack(self) -> NDArray[np.float64]:
        """Bound of the rounding error of the scores, (n_outputs,)."""
        return slack_of(self.forest, self.term)

    @cached_property
    def _why_not_linear(self) -> str | None:
        return why_not_linear(self.adapter, self.forest)

    def check(self, terms: Terms) -> None:
        """Raise InvalidInputError if a tolerance is given but score bounds do not bound the prediction."""
        if terms.tolerance and self._why_not_linear:
            raise InvalidInputError(
                "tolerance requires a model that predicts the sum or the mean of its trees, but "
                f"{self._why_not_linear}. Omit tolerance."
            )

    def is_certain(self, terms: Terms, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the mask of rows whose answer is certain for every score between `lower` and `upper`, (n_rows,)."""
        if terms.tolerance:
            uncertainty = (upper - lower + 2 * self.slack) / self.forest.divisor
            return np.asarray((uncertainty <= terms.tolerance).all(axis=1))
        assert isinstance(self.rule, LabelRule)
        return self.rule.is_certain(lower, upper)

    def can_stop_early(self, terms: Terms) -> bool:
        """Return whether a row may stop before all its trees have reached a leaf."""
        return bool(terms.tolerance) or (terms.same == "label" and isinstance(self.rule, LabelRule))


def start_of(plan: Plan, at: NDArray[np.int32]) -> Progress:
    """Return the progress of one row at the nodes `at`, one per tree, (n_trees,)."""
    forest, needed = plan.forest, plan.split_column[at]
    at_split = needed != -1
    gain = np.bincount(needed[at_split], plan.width[at[at_split]], minlength=plan.columns.n_columns)
    lower, upper = forest.base.astype(np.float64), forest.base.astype(np.float64)
    for sums, bound in ((lower, plan.low), (upper, plan.high)):
        for v, output in zip(at.tolist(), forest.tree_output.tolist(), strict=True):
            sums[output if output >= 0 else slice(None)] += bound[v, 0] if output >= 0 else bound[v]
    state = np.zeros((1, plan.columns.n_columns), np.uint8)
    return Progress(state, at[None], needed[None], gain.astype(np.float64)[None], lower[None], upper[None])


def _value_bounds(forest: Forest) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest and the largest value of the leaves below each node, both (n_nodes, width)."""
    low, high = np.empty_like(forest.value), np.empty_like(forest.value)
    settled = np.empty(forest.n_nodes, np.int32)
    leaves_below(forest.right, forest.value, forest.value.view(np.int64), low, high, settled)
    return low, high
