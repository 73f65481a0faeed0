"""Take out of a model what its predictions do not need: splits decided above, and leaves that say the same."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.editing.views import numeric_splits
from secateur.forest import Forest
from secateur.forest.subforest import Decision, kept_trees
from secateur.libraries import adapt

Preserve = Literal["exact", "probabilities", "labels"]
Fold = Literal["base", "leaves"]
_ULP = 4
"""How many floating-point numbers apart two values may be that count as equal where the last bits may change."""


def simplify(model: Any, preserve: Preserve = "exact") -> Any:
    """Return a smaller copy of a trained model, of the same type, that predicts the same.

    Splits one side of which no row can reach, because of the splits above, give way to their other side. Sibling leaves
    with equal values become one. Splits on categories are taken to let every category pass on both sides.

    Parameters
    ----------
    model : fitted model or Forest
    preserve : "exact", "probabilities" or "labels"
        What must not change. `exact`: no prediction, not in its last bit. `probabilities`: nothing but the rounding
        of sums, so trees that say the same to every row also move into the base of a sum, or into another tree, and
        values within 4 ulp count as equal. `labels`: the classes predicted; in a single classification tree
        leaves of the same class become one, which makes probabilities coarser. An ensemble's label depends on the
        values of all of its trees, and a tie on their last bits, so for everything else this is `exact`.

    Notes
    -----
    What a kind of model cannot hold is not done: an IsolationForest predicts by the depth of its leaves, so none is
    raised; symmetric trees lose their last level only as a whole; where leaf values cannot be written, siblings become
    one only where their parent's value is theirs.

    O(nodes · outputs), without recursion.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X, y)
    >>> [small.tree_.node_count for small in (tree, simplify(tree), simplify(tree, "labels"))]
    [29, 29, 13]
    """
    if preserve not in get_args(Preserve):
        raise ValueError(
            f"preserve={preserve!r} is unknown; known are {', '.join(get_args(Preserve))}. Use one of these."
        )
    adapter = adapt(model)
    *bolder, meekest = _means(adapter.forest, preserve)
    for means in bolder:
        decision = _decide(adapter.forest, preserve, means)
        with suppress(ValueError):  # only the adapter knows what its model can hold, and says so before it starts
            return adapter.write(decision)
    return adapter.write(_decide(adapter.forest, preserve, meekest))


@dataclass(frozen=True)
class _Means:
    """What may be done to a model.

    Attributes
    ----------
    fold : "base", "leaves" or None
        Where the values of constant trees may go.
    values : bool
        Whether leaves may get new values.
    raising : bool
        Whether a node may take its parent's place.
    """

    fold: Fold | None
    values: bool
    raising: bool


def _means(forest: Forest, preserve: Preserve) -> list[_Means]:
    """Return what to try, from the boldest to the meekest."""
    raise_or_not = (False,) if forest.symmetric else (True, False)  # a level has no single nodes to be raised
    means = [_Means(None, values, raising) for raising in raise_or_not for values in (True, False)]
    if preserve != "probabilities" or forest.aggregation != "sum":
        return means
    folding: list[tuple[Fold, bool]] = [("base", True), ("leaves", True), ("base", False)]
    return [*(_Means(fold, values, raise_or_not[0]) for fold, values in folding), *means]


@dataclass(frozen=True, eq=False)
class _Draft:
    """A decision in the making, nothing left open."""

    keep: NDArray[np.bool_]
    value: NDArray[np.float64]
    base: NDArray[np.float64]


def _decide(forest: Forest, preserve: Preserve, means: _Means) -> Decision:
    """Return the decision that takes out all that these means allow."""
    keep = _without_contradictions(forest) if means.raising else np.ones(forest.n_nodes, bool)
    draft = _Draft(keep, forest.value, forest.base)
    if preserve == "probabilities":
        draft = _merge_and_fold(forest, draft, means)
    else:
        draft = _merge(forest, draft, _bits(draft.value), means)
    if preserve == "labels" and forest.n_trees == 1 and forest.n_classes and forest.trees_predict_target:
        draft = _merge(forest, draft, _labels(forest, draft.value), means)
    return _only_changes(forest, draft)


def _without_contradictions(forest: Forest) -> NDArray[np.bool_]:
    """Return the mask that drops what no row can reach, and the splits thereby decided."""
    infinity = np.array([-np.inf, np.inf], forest.input_dtype)
    reached = kernels.reachable(
        forest.tree_start,
        forest.right,
        forest.parent,
        forest.end,
        forest.feature,
        _last_left(forest),
        numeric_splits(forest),
        forest.default_left,
        tuple(_ranks(infinity).tolist()),
        forest.n_features,
        forest.max_depth,
    )
    split = np.flatnonzero(forest.is_split & reached)
    keep = reached.copy()
    keep[split] = reached[split + 1] & reached[forest.right[split]]
    return keep


def _last_left(forest: Forest) -> NDArray[np.int64]:
    """Return the rank of the largest number of the forest's input type that goes left at each split, (n_nodes,)."""
    with np.errstate(over="ignore"):
        nearest = forest.threshold.astype(forest.input_dtype)
    beyond = nearest > forest.threshold if forest.comparison == "<=" else nearest >= forest.threshold
    return _ranks(nearest) - beyond


def _ranks(numbers: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return integers that order as the numbers do and count the floating-point numbers between them; -0 is 0."""
    bits = np.ascontiguousarray(numbers).view(f"i{numbers.dtype.itemsize}")
    return np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(np.int64)


def _bits(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return numbers that are equal where the values are the same to the last bit; -0 is not 0."""
    return np.ascontiguousarray(value).view(np.int64)


def _labels(forest: Forest, value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return what each node of a single tree predicts alone, (n_nodes, n_targets)."""
    raw = (forest.base + forest.tree_weight[0] * value) / forest.divisor
    return np.ascontiguousarray(forest.response.label(raw, forest.n_classes), dtype=np.int64)


def _merge(forest: Forest, draft: _Draft, code: NDArray[np.int64], means: _Means, tolerance: int = 0) -> _Draft:
    """Merge sibling leaves of the same code; where levels stay or go together, those of a level if all can be."""
    keep, source = draft.keep.copy(), np.arange(forest.n_nodes)
    kernels.merge_leaves(forest.right, code, tolerance, means.values, keep, source)
    if forest.symmetric and forest.n_trees:
        deepest = np.maximum.reduceat(np.where(keep, forest.depth, -1), forest.root)
        keep = forest.depth <= np.repeat(deepest, np.diff(forest.tree_start))
    return replace(draft, keep=keep, value=draft.value[source])


def _merge_and_fold(forest: Forest, draft: _Draft, means: _Means) -> _Draft:
    """Merge leaves and fold constant trees in turn: new values may be equal where the old ones were not."""
    while True:
        draft = _merge(forest, draft, _ranks(draft.value), means, tolerance=_ULP)
        folded = _fold(forest, draft, means)
        if folded is draft:
            return draft
        draft = folded


def _fold(forest: Forest, draft: _Draft, means: _Means) -> _Draft:
    """Add constant trees to something else; return the draft itself if there is nothing to add."""
    size = np.diff(np.concatenate([[0], np.cumsum(draft.keep)])[forest.tree_start])
    lone = np.flatnonzero(size == 1)
    if means.fold is None or not len(lone):
        return draft
    return (_fold_into_base if means.fold == "base" else _fold_into_leaves)(forest, draft, lone)


def _fold_into_base(forest: Forest, draft: _Draft, lone: NDArray[np.intp]) -> _Draft:
    """Add what the trees in `lone` say to where the sums start, and drop them."""
    base, share = draft.base.copy(), _share(forest, draft, lone)
    if forest.tree_output[lone[0]] >= 0:
        np.add.at(base, forest.tree_output[lone], share[:, 0])
    else:
        base += share.sum(axis=0)
    return replace(draft, keep=draft.keep & ~_nodes_of(forest, lone), base=base)


def _fold_into_leaves(forest: Forest, draft: _Draft, lone: NDArray[np.intp]) -> _Draft:
    """Add what the trees in `lone` say to one tree that feeds the same output, and drop them."""
    keep, value = draft.keep, draft.value.copy()
    able = kept_trees(forest, keep) & (forest.tree_weight != 0)
    for output in np.unique(forest.tree_output[lone]):
        hosts = np.flatnonzero(able & (forest.tree_output == output))
        if not len(hosts):
            continue
        host = hosts[np.isin(hosts, lone).argmin()]  # the first that is not constant, or the first
        moved = lone[(forest.tree_output[lone] == output) & (lone != host)]
        if not len(moved):
            continue
        shift = _share(forest, draft, moved).sum(axis=0) / forest.tree_weight[host]
        value[forest.tree_start[host] : forest.tree_start[host + 1]] += shift
        keep = keep & ~_nodes_of(forest, moved)
    return draft if keep is draft.keep else replace(draft, keep=keep, value=value)


def _share(forest: Forest, draft: _Draft, lone: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return what each tree that is down to one leaf adds to the sums, (n_lone, width)."""
    leaf = np.flatnonzero(draft.keep & _nodes_of(forest, lone))
    return forest.tree_weight[lone, None] * draft.value[leaf]


def _nodes_of(forest: Forest, trees: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return which nodes belong to the trees, (n_nodes,)."""
    return np.repeat(np.isin(np.arange(forest.n_trees), trees), np.diff(forest.tree_start))


def _only_changes(forest: Forest, draft: _Draft) -> Decision:
    """Return the decision, without values and base that are the forest's own."""
    same_value = np.array_equal(_bits(draft.value)[draft.keep], _bits(forest.value)[draft.keep])
    same_base = np.array_equal(draft.base, forest.base)
    return Decision(draft.keep, None if same_value else draft.value, base=None if same_base else draft.base)
