"""When the answer is settled: bounds of the sums, and what they say of the label or the value.

Trees that are not at a leaf add something between the least and the largest of what the leaves below them add. Where
all sums between these bounds, widened by what rounding can do, have the same label, no feature can change it.
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

_FAR = 1e4
_PROBES = 64


@dataclass(frozen=True, eq=False)
class LabelRule:
    """How a model's labels follow from its sums (before any division).

    Attributes
    ----------
    border : float or None
        A sum above it has one label, a sum below it the other, each output for itself.
    blocks : tuple of slice
        Without a border: in each block of outputs the largest wins.
    slack : (n_outputs,)
        How far from the border, or from each other, sums must be for rounding not to matter.
    """

    border: float | None
    blocks: tuple[slice, ...]
    slack: Floats

    def settled(self, least: Floats, most: Floats) -> NDArray[np.bool_]:
        """Return for which rows all sums within the bounds (n_rows, n_outputs) have the same label."""
        if self.border is not None:
            sure = (least - self.slack > self.border) | (most + self.slack < self.border)
            return np.asarray(sure.all(axis=1))
        sure = np.ones(len(least), bool)
        for block in self.blocks:
            low, high = least[:, block] - self.slack[block], most[:, block] + self.slack[block]
            rows, first = np.arange(len(low)), low.argmax(axis=1)
            rival = high.copy()
            rival[rows, first] = -np.inf
            sure &= low[rows, first] > rival.max(axis=1)
        return sure


def slack_of(forest: Forest, term: Floats) -> NDArray[np.float64]:
    """Return by how much a sum of all trees can miss the true sum of its terms, (n_outputs,).

    n · ε · Σ |terms|, twice the usual bound, and something for what comes after the sum. The bounds themselves change
    with every step of every tree, in double precision.
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
    after = 64 * epsilon * (sizes + (forest.divisor or 1.0))
    return (forest.n_trees + 3) * epsilon * sizes + after + 4 * steps * np.finfo(np.float64).eps * sizes


def label_rule(adapter: Adapter, forest: Forest, term: Floats) -> LabelRule | str:
    """Return how labels follow from sums, or the reason why that is not known."""
    slack, link = slack_of(forest, term), forest.response
    if forest.aggregation == "median" or not forest.divisor:
        return "its trees are not added up"
    ends = np.cumsum([0, *forest.n_classes])
    if isinstance(link, Softmax | Probability) and ends[-1] == forest.n_outputs:
        rule = LabelRule(None, tuple(slice(a, b) for a, b in pairwise(ends)), slack)
        return rule if _tells(adapter, forest) else _NO_LABELS
    if not forest.n_classes and not isinstance(link, Anomaly):
        return "it predicts numbers"
    if not isinstance(link, Logit | Anomaly):
        return f"with the link {forest.link!r} the largest sum need not win"
    if isinstance(link, Logit) and _tells(adapter, forest):
        return LabelRule(0.0, (), slack)
    border = _border(adapter, forest)
    if border is None:
        return _NO_LABELS
    return LabelRule(
        border * forest.divisor, (), slack + 64 * np.finfo(forest.sum_dtype).eps * abs(border) * forest.divisor
    )


_NO_LABELS = "its predict gives numbers, or labels by a rule of its own"


def _probes(forest: Forest) -> Floats:
    """Return sums of many sizes, none of them near a tie."""
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-2, 1, (_PROBES, 1))
    if isinstance(forest.response, Probability):
        return np.hstack([rng.dirichlet(np.ones(k), _PROBES) for k in forest.n_classes]).astype(forest.sum_dtype)
    return (size * rng.normal(size=(_PROBES, forest.n_outputs))).astype(forest.sum_dtype)


def _tells(adapter: Adapter, forest: Forest) -> bool:
    """Return whether the model's own `predict` gives the labels its link says."""
    raw = _probes(forest)
    labels = forest.response.label(raw, forest.n_classes)
    found = np.ravel(_predicted(adapter, raw))
    if found.shape != labels.ravel().shape:
        return False
    expected = np.ravel(adapter.decode(labels))
    return bool((found == expected).all()) and len(np.unique(found)) <= max((0, *forest.n_classes))


def _border(adapter: Adapter, forest: Forest) -> float | None:
    """Return the sum at which the label of a model with one sum and two labels changes, between ever finer grids."""
    if forest.n_outputs != 1:
        return None
    probes = np.vstack([[[-_FAR]], _probes(forest), [[_FAR]]]).astype(forest.sum_dtype)
    labels = np.ravel(_predicted(adapter, probes))
    if len(np.unique(labels)) != 2 or labels[0] == labels[-1]:
        return None
    low, high = -_FAR, _FAR
    for _ in range(6):  # each a 4096th of the last, down to neighbours
        grid = np.linspace(low, high, 4097).astype(forest.sum_dtype)
        first = int((np.ravel(_predicted(adapter, grid[:, None])) != labels[0]).argmax())
        low, high = float(grid[first - 1]), float(grid[first])
    return (low + high) / 2


def _predicted(adapter: Adapter, raw: Floats) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return np.asarray(adapter.predict(raw))


def not_linear(adapter: Adapter, forest: Forest) -> str | None:
    """Return why bounds of the sums are none of the predictions, or None if they are."""
    if forest.aggregation == "median" or not forest.divisor:
        return "its trees are not added up"
    if not forest.response.linear:
        return f"its sums go through the link {forest.link!r}"
    raw = _probes(forest)
    if forest.n_classes:
        blocks = adapter.probabilities(raw)
        found = np.hstack(blocks) if isinstance(blocks, list) else np.asarray(blocks)
    else:
        found = _predicted(adapter, raw).reshape(len(raw), -1)
    if found.shape == raw.shape and np.array_equal(found, raw):
        return None
    return "its predictions are not its sums"
