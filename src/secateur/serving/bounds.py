"""Decide from score bounds whether the label or the value of a row is certain.

The contribution of a tree that has not reached a leaf lies between the smallest and the largest contribution of the
leaves below its current node. If all scores between the resulting bounds, widened by a rounding error bound, have the
same label, no further feature can change it.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest
from secateur.forest.links import Anomaly, Logit, Probability, Softmax
from secateur.libraries.adapter import Adapter

Floats = NDArray[np.floating]

_LARGE = 1e4
_PROBES = 64


@dataclass(frozen=True, eq=False)
class LabelRule:
    """Rule that maps a model's scores (sums before any division) to labels.

    Attributes
    ----------
    threshold : float or None
        The decision threshold of every output: scores above it have one label, scores below it the other.
    blocks : tuple of slice
        Without a threshold: the outputs of each target; the label is the argmax within a block.
    slack : (n_outputs,)
        The margin from the threshold, or between outputs, beyond which rounding cannot change the label.
    """

    threshold: float | None
    blocks: tuple[slice, ...]
    slack: Floats

    def is_certain(self, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
        """Return the mask of rows for which all scores within the bounds have the same label, (n_rows,).

        `lower` and `upper` are (n_rows, n_outputs).
        """
        if self.threshold is not None:
            certain = (lower - self.slack > self.threshold) | (upper + self.slack < self.threshold)
            return np.asarray(certain.all(axis=1))
        certain = np.ones(len(lower), bool)
        for block in self.blocks:
            low, high = lower[:, block] - self.slack[block], upper[:, block] + self.slack[block]
            rows, first = np.arange(len(low)), low.argmax(axis=1)
            runner_up = high.copy()
            runner_up[rows, first] = -np.inf
            certain &= low[rows, first] > runner_up.max(axis=1)
        return certain


def slack_of(forest: Forest, term: Floats) -> NDArray[np.float64]:
    """Return a bound of the rounding error of the sum over all trees, (n_outputs,).

    It adds three terms: n · ε · Σ |terms|, twice the usual bound for the sum itself; 64 · ε times the scale of the
    scores for the operations after the sum; and the error of the bounds, which are updated in double precision at every
    step of every tree.
    """
    sizes = np.abs(forest.base).astype(np.float64)
    for tree in range(forest.n_trees):
        nodes, output = slice(forest.tree_start[tree], forest.tree_start[tree + 1]), forest.tree_output[tree]
        largest = np.abs(term[nodes]).max(axis=0)
        if output >= 0:
            sizes[output] += largest[0]
        else:
            sizes += largest
    epsilon, steps = float(np.finfo(forest.sum_dtype).eps), forest.n_trees * (forest.max_depth + 2)
    after_sum = 64 * epsilon * (sizes + (forest.divisor or 1.0))
    return (forest.n_trees + 3) * epsilon * sizes + after_sum + 4 * steps * np.finfo(np.float64).eps * sizes


def label_rule(adapter: Adapter, forest: Forest, term: Floats) -> LabelRule | str:
    """Return the rule that maps scores to labels, or the reason why none is known."""
    slack, link = slack_of(forest, term), forest.response
    if forest.aggregation == "median" or not forest.divisor:
        return "the model does not add the values of its trees"
    ends = np.cumsum([0, *forest.n_classes])
    if isinstance(link, Softmax | Probability) and ends[-1] == forest.n_outputs:
        rule = LabelRule(None, tuple(slice(a, b) for a, b in pairwise(ends)), slack)
        return rule if _predicts_link_labels(adapter, forest) else _NO_LABELS
    if not forest.n_classes and not isinstance(link, Anomaly):
        return "the model is a regressor"
    if not isinstance(link, Logit | Anomaly):
        return f"with the link {forest.link!r} the class with the largest score is not always predicted"
    if isinstance(link, Logit) and _predicts_link_labels(adapter, forest):
        return LabelRule(0.0, (), slack)
    threshold = _decision_threshold(adapter, forest)
    if threshold is None:
        return _NO_LABELS
    return LabelRule(
        threshold * forest.divisor, (), slack + 64 * np.finfo(forest.sum_dtype).eps * abs(threshold) * forest.divisor
    )


_NO_LABELS = "the model's predict does not return the labels that follow from its scores"


def _probes(forest: Forest) -> Floats:
    """Return random scores of many magnitudes, none near a tie, (_PROBES, n_outputs)."""
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-2, 1, (_PROBES, 1))
    if isinstance(forest.response, Probability):
        return np.hstack([rng.dirichlet(np.ones(k), _PROBES) for k in forest.n_classes]).astype(forest.sum_dtype)
    return (size * rng.normal(size=(_PROBES, forest.n_outputs))).astype(forest.sum_dtype)


def _predicts_link_labels(adapter: Adapter, forest: Forest) -> bool:
    """Return whether the model's own `predict` returns the labels that follow from its link, checked on probes."""
    raw = _probes(forest)
    labels = forest.response.label(raw, forest.n_classes)
    found = np.ravel(_predict_quietly(adapter, raw))
    if found.shape != labels.ravel().shape:
        return False
    expected = np.ravel(adapter.decode(labels))
    return bool((found == expected).all()) and len(np.unique(found)) <= max((0, *forest.n_classes))


def _decision_threshold(adapter: Adapter, forest: Forest) -> float | None:
    """Return the decision threshold of a model with one output and two labels, or None if there is none.

    The threshold is bracketed by grids of 4097 scores, each refining one interval of the previous grid.
    """
    if forest.n_outputs != 1:
        return None
    probes = np.vstack([[[-_LARGE]], _probes(forest), [[_LARGE]]]).astype(forest.sum_dtype)
    labels = np.ravel(_predict_quietly(adapter, probes))
    if len(np.unique(labels)) != 2 or labels[0] == labels[-1]:
        return None
    low, high = -_LARGE, _LARGE
    # Invariant: the label changes between low and high. Each pass divides the interval by 4096, so that after six
    # passes low and high are neighbouring floating-point numbers.
    for _ in range(6):
        grid = np.linspace(low, high, 4097).astype(forest.sum_dtype)
        first = int((np.ravel(_predict_quietly(adapter, grid[:, None])) != labels[0]).argmax())
        low, high = float(grid[first - 1]), float(grid[first])
    return (low + high) / 2


def _predict_quietly(adapter: Adapter, raw: Floats) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return np.asarray(adapter.predict(raw))


def why_not_linear(adapter: Adapter, forest: Forest) -> str | None:
    """Return why score bounds do not bound the predictions, or None if they do."""
    if forest.aggregation == "median" or not forest.divisor:
        return "the model does not add the values of its trees"
    if not forest.response.linear:
        return f"the link {forest.link!r} of this model is not linear"
    raw = _probes(forest)
    if forest.n_classes:
        blocks = adapter.probabilities(raw)
        found = np.hstack(blocks) if isinstance(blocks, list) else np.asarray(blocks)
    else:
        found = _predict_quietly(adapter, raw).reshape(len(raw), -1)
    if found.shape == raw.shape and np.array_equal(found, raw):
        return None
    return "the predictions of this model differ from its scores"
