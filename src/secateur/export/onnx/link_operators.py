"""Translate links to ONNX operators: raw predictions to means and class codes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from secateur.export.onnx.graph import Graph
from secateur.forest.links import (
    Anomaly,
    Identity,
    Link,
    Log,
    LogC,
    Logit,
    OneVsAll,
    Probability,
    Sigmoid,
    SignedSquare,
    Softmax,
    SoftmaxC,
    Softplus,
    Vote,
)


def add_link(graph: Graph, link: Link, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    """Add the link; return the names of the mean and of the class codes of each target."""
    return LINKS[type(link)](graph, link, n_classes, sums)


def _largest(graph: Graph, scores: str) -> str:
    return graph.add("ArgMax", scores, axis=1, keepdims=0)


def _identity(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(sums, "")]


def _log(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(graph.add("Exp", sums), "")]


def _softplus(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    """Add log(1 + u), u = exp(raw), as u · log(w) / (w - 1) with w = 1 + u, which is accurate for tiny u."""
    u = graph.add("Exp", sums)
    w = graph.add("Add", u, np.float64(1))
    ratio = graph.add("Div", graph.add("Log", w), graph.add("Sub", w, np.float64(1)))
    tiny = graph.add("Equal", w, np.float64(1))
    return [(graph.add("Where", tiny, u, graph.add("Mul", u, ratio)), "")]


def _signed_square(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(graph.add("Mul", sums, graph.add("Abs", sums)), "")]


def _sigmoid_mean(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(_sigmoid(graph, sums, 1.0), "")]


def _anomaly(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(graph.add("Neg", graph.add("Pow", np.float64(2), graph.add("Neg", sums))), "")]


def _logit(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    targets = []
    for target in range(len(n_classes)):
        raw = graph.add("Gather", sums, np.array([target]), axis=1)
        second = _sigmoid(graph, raw, link.slope)
        both = graph.add("Concat", graph.add("Sub", np.float64(1), second), second, axis=1)
        above = graph.add("GreaterOrEqual" if link.tie else "Greater", raw, np.float64(0))
        targets.append((both, graph.add("Cast", graph.add("Reshape", above, np.array([-1])), to=np.int64)))
    return targets


def _sigmoid(graph: Graph, sums: str, slope: float) -> str:
    power = graph.add("Exp", graph.add("Mul", sums, np.float64(-slope)))
    return graph.add("Div", np.float64(1), graph.add("Add", np.float64(1), power))


def _one_vs_all(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(_sigmoid(graph, sums, link.slope), _largest(graph, sums))]


def _softmax(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    return [(graph.add("Softmax", sums, axis=1), _largest(graph, sums))]


def _vote(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    """Add the softmax of the votes; two classes each get half the difference of their votes."""
    codes = _largest(graph, sums)
    if n_classes[0] == 2:
        swapped = graph.add("Gather", sums, np.array([1, 0]), axis=1)
        scaled = graph.add("Div", graph.add("Sub", sums, swapped), np.float64(2))
    else:
        scaled = graph.add("Div", sums, np.float64(max(n_classes[0] - 1, 1)))
    return [(graph.add("Softmax", scaled, axis=1), codes)]


def _probability(graph: Graph, link: Any, n_classes: tuple[int, ...], sums: str) -> list[tuple[str, str]]:
    stop = np.cumsum(n_classes)
    blocks = [
        graph.add("Gather", sums, np.arange(end - length, end), axis=1)
        for length, end in zip(n_classes, stop, strict=True)
    ]
    return [(block, _largest(graph, block)) for block in blocks]


LINKS: dict[type[Link], Callable[[Graph, Any, tuple[int, ...], str], list[tuple[str, str]]]] = {
    Identity: _identity,
    Log: _log,
    LogC: _log,
    Softplus: _softplus,
    SignedSquare: _signed_square,
    Sigmoid: _sigmoid_mean,
    Anomaly: _anomaly,
    Probability: _probability,
    Logit: _logit,
    OneVsAll: _one_vs_all,
    Vote: _vote,
    Softmax: _softmax,
    SoftmaxC: _softmax,
}
"""The function that adds each link. Subclasses are not included, because they may define another function."""
