"""Simplify a model without changing its predictions: remove unreachable branches and merge equal sibling leaves."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur._util.user_functions import user_function
from secateur.errors import InvalidInputError
from secateur.forest import Forest
from secateur.forest.ranks import infinite_ranks, last_left, ranks
from secateur.forest.subforest import Decision, kept_trees
from secateur.libraries import adapt

Preserve = Literal["exact", "probabilities", "labels"]
Fold = Literal["base", "leaves"]
_ULP = 4
"""Tolerance for equal values, in units in the last place, where preserve="probabilities"."""


@user_function
def simplify(model: Any, preserve: Preserve = "exact") -> Any:
    """Return a smaller copy of a trained model, of the same type, with the same predictions.

    A branch is unreachable if its condition contradicts the splits above it; its sibling then replaces their parent.
    Sibling leaves with equal values are merged into their parent. Both sides of a categorical split are treated as
    reachable.

    Parameters
    ----------
    model : fitted model or Forest
    preserve : "exact", "probabilities" or "labels"
        Which outputs must not change. `exact`: predictions are bit-identical. `probabilities`: only the rounding of
        sums may change, so constant trees are also folded into the base of the sum or into another tree, and values
        within 4 ulp count as equal. `labels`: the predicted classes; sibling leaves of the same class are merged in a
        single classification tree, which makes probabilities coarser. The label of an ensemble depends on the values
        of all of its trees, and a tie on their last bits, so for all other models `labels` is the same as `exact`.

    Notes
    -----
    Simplifications that a model type cannot represent are skipped. An IsolationForest predicts from the depth of its
    leaves, so no node replaces its parent. Symmetric trees lose their last level only as a whole. If leaf values cannot
    be changed, siblings are merged only if their parent has the same value.

    The complexity is O(n_nodes · n_outputs) per pass, without recursion.

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
        raise InvalidInputError(f"preserve={preserve!r} is not supported. Use one of: {', '.join(get_args(Preserve))}.")
    adapter = adapt(model)
    *permissive, strictest = _allowed_sets(adapter.forest, preserve)
    for allowed in permissive:
        decision = _decide(adapter.forest, preserve, allowed)
        # Only the adapter knows which decisions its model can represent. It raises before it changes anything.
        with suppress(ValueError):
            return adapter.write(decision)
    return adapter.write(_decide(adapter.forest, preserve, strictest))


@dataclass(frozen=True)
class _Allowed:
    """Allowed simplifications of a model.

    Attributes
    ----------
    fold : "base", "leaves" or None
        Whether constant trees are folded into the base or into the leaves of another tree.
    values : bool
        Whether leaf values may change.
    raising : bool
        Whether a node may replace its parent.
    """

    fold: Fold | None
    values: bool
    raising: bool


def _allowed_sets(forest: Forest, preserve: Preserve) -> list[_Allowed]:
    """Return the sets of simplifications to try, from the most to the least permissive."""
    # In a symmetric tree all nodes of a level share a split, so a single node cannot replace its parent.
    raising_options = (False,) if forest.symmetric else (True, False)
    allowed = [_Allowed(None, values, raising) for raising in raising_options for values in (True, False)]
    if preserve != "probabilities" or forest.aggregation != "sum":
        return allowed
    folding: list[tuple[Fold, bool]] = [("base", True), ("leaves", True), ("base", False)]
    return [*(_Allowed(fold, values, raising_options[0]) for fold, values in folding), *allowed]


@dataclass(frozen=True, eq=False)
class _Draft:
    """Intermediate decision with explicit mask, values (n_nodes, width) and base (n_outputs,)."""

    keep: NDArray[np.bool_]
    value: NDArray[np.float64]
    base: NDArray[np.float64]


def _decide(forest: Forest, preserve: Preserve, allowed: _Allowed) -> Decision:
    """Return the decision that applies all allowed simplifications."""
    keep = _without_contradictions(forest) if allowed.raising else np.ones(forest.n_nodes, bool)
    draft = _Draft(keep, forest.value, forest.base)
    if preserve == "probabilities":
        draft = _merge_and_fold(forest, draft, allowed)
    else:
        draft = _merge(forest, draft, _bits(draft.value), allowed)
    if preserve == "labels" and forest.n_trees == 1 and forest.n_classes and forest.trees_predict_target:
        draft = _merge(forest, draft, _labels(forest, draft.value), allowed)
    return _only_changes(forest, draft)


def _without_contradictions(forest: Forest) -> NDArray[np.bool_]:
    """Return the mask without unreachable nodes and without splits that have one reachable child, (n_nodes,)."""
    reached = kernels.reachable(
        forest.tree_start,
        forest.right,
        forest.parent,
        forest.end,
        forest.feature,
        last_left(forest),
        forest.is_split & ~forest.is_categorical,
        forest.default_left,
        infinite_ranks(forest),
        forest.n_features,
        forest.max_depth,
    )
    split = np.flatnonzero(forest.is_split & reached)
    keep = reached.copy()
    keep[split] = reached[split + 1] & reached[forest.right[split]]
    return keep


def _bits(value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bit patterns of values as integers; -0 and 0 differ."""
    return np.ascontiguousarray(value).view(np.int64)


def _labels(forest: Forest, value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the labels each node of a single tree predicts, (n_nodes, n_targets)."""
    raw = (forest.base + forest.tree_weight[0] * value) / forest.divisor
    return np.ascontiguousarray(forest.response.label(raw, forest.n_classes), dtype=np.int64)


def _merge(forest: Forest, draft: _Draft, code: NDArray[np.int64], allowed: _Allowed, tolerance: int = 0) -> _Draft:
    """Merge sibling leaves with equal codes; in symmetric trees only if all leaves of the last level can be merged."""
    keep, source = draft.keep.copy(), np.arange(forest.n_nodes)
    kernels.merge_leaves(forest.right, code, tolerance, allowed.values, keep, source)
    if forest.symmetric and forest.n_trees:
        deepest = np.maximum.reduceat(np.where(keep, forest.depth, -1), forest.root)
        keep = forest.depth <= np.repeat(deepest, np.diff(forest.tree_start))
    return replace(draft, keep=keep, value=draft.value[source])


def _merge_and_fold(forest: Forest, draft: _Draft, allowed: _Allowed) -> _Draft:
    """Alternate merging leaves and folding constant trees until nothing changes.

    Folding changes leaf values, so leaves that differed before may become equal.
    """
    while True:
        draft = _merge(forest, draft, ranks(draft.value), allowed, tolerance=_ULP)
        folded = _fold(forest, draft, allowed)
        if folded is draft:
            return draft
        draft = folded


def _fold(forest: Forest, draft: _Draft, allowed: _Allowed) -> _Draft:
    """Fold trees with a single leaf into the base or another tree; return the same draft if nothing changes."""
    size = np.diff(np.concatenate([[0], np.cumsum(draft.keep)])[forest.tree_start])
    constant = np.flatnonzero(size == 1)
    if allowed.fold is None or not len(constant):
        return draft
    return (_fold_into_base if allowed.fold == "base" else _fold_into_leaves)(forest, draft, constant)


def _fold_into_base(forest: Forest, draft: _Draft, constant: NDArray[np.intp]) -> _Draft:
    """Add the contributions of the trees `constant` to the base, and drop these trees."""
    base, contributions = draft.base.copy(), _contributions(forest, draft, constant)
    if forest.tree_output[constant[0]] >= 0:
        np.add.at(base, forest.tree_output[constant], contributions[:, 0])
    else:
        base += contributions.sum(axis=0)
    return replace(draft, keep=draft.keep & ~_nodes_of(forest, constant), base=base)


def _fold_into_leaves(forest: Forest, draft: _Draft, constant: NDArray[np.intp]) -> _Draft:
    """Add the contributions of the trees `constant` to a tree of the same output, and drop these trees."""
    keep, value = draft.keep, draft.value.copy()
    can_host = kept_trees(forest, keep) & (forest.tree_weight != 0)
    for output in np.unique(forest.tree_output[constant]):
        hosts = np.flatnonzero(can_host & (forest.tree_output == output))
        if not len(hosts):
            continue
        # The first tree that is not constant, or the first tree if all are.
        host = hosts[np.isin(hosts, constant).argmin()]
        moved = constant[(forest.tree_output[constant] == output) & (constant != host)]
        if not len(moved):
            continue
        shift = _contributions(forest, draft, moved).sum(axis=0) / forest.tree_weight[host]
        value[forest.tree_start[host] : forest.tree_start[host + 1]] += shift
        keep = keep & ~_nodes_of(forest, moved)
    return draft if keep is draft.keep else replace(draft, keep=keep, value=value)


def _contributions(forest: Forest, draft: _Draft, constant: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the contribution of each constant tree, (n_lone, width)."""
    leaf = np.flatnonzero(draft.keep & _nodes_of(forest, constant))
    return forest.tree_weight[constant, None] * draft.value[leaf]


def _nodes_of(forest: Forest, trees: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return the mask of the nodes of the given trees, (n_nodes,)."""
    return np.repeat(np.isin(np.arange(forest.n_trees), trees), np.diff(forest.tree_start))


def _only_changes(forest: Forest, draft: _Draft) -> Decision:
    """Return the decision; values and base that equal those of the forest become None."""
    same_value = np.array_equal(_bits(draft.value)[draft.keep], _bits(forest.value)[draft.keep])
    same_base = np.array_equal(draft.base, forest.base)
    return Decision(draft.keep, None if same_value else draft.value, base=None if same_base else draft.base)
