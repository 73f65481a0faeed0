"""Export a forest as an ONNX graph: one TreeEnsemble (ai.onnx.ml 5) in float64, and the link as operators.

It needs onnxruntime 1.21 or later to run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import UnsupportedModelError
from secateur.export.onnx.graph import Graph
from secateur.export.onnx.link_operators import LINKS, add_link
from secateur.export.onnx.tree_ensemble import add_sums
from secateur.forest import Forest
from secateur.forest.links import Probability
from secateur.libraries.adapter import Adapter

__all__ = ["check_onnx", "to_onnx", "why_not"]


def to_onnx(adapter: Adapter) -> bytes:
    """Return a model as an ONNX file.

    The input of the graph is `X`, (n_rows, n_features) float64. The output of a regression is `variable`, (n_rows,
    n_outputs). The outputs of a classification are `label`, (n_rows,), and `probabilities`, (n_rows, n_classes); with
    several targets `label_0`, `probabilities_0`, `label_1` and so on. An outlier detector returns its score as
    `variable`.

    Raises
    ------
    UnsupportedModelError
        If a numeric graph cannot represent the model.
    ImportError
        If the onnx package is not installed.
    """
    forest = adapter.forest
    graph = check_onnx(adapter)
    sums = add_sums(graph, forest, tiny_is_zero=_rounds_tiny_to_zero(adapter))
    targets = add_link(graph, forest.response, forest.n_classes, sums)
    if not forest.n_classes:
        graph.output("variable", targets[0][0], (None, forest.n_outputs))
    for target, (probabilities, codes) in enumerate(targets if forest.n_classes else []):
        suffix = "" if len(targets) == 1 else f"_{target}"
        labels = _labels(adapter, target)
        graph.output(f"label{suffix}", graph.add("Gather", labels, codes), (None,), labels.dtype)
        graph.output(f"probabilities{suffix}", probabilities, (None, forest.n_classes[target]))
    return graph.file((None, forest.n_features), forest.feature_names)


def check_onnx(adapter: Adapter) -> Graph:
    """Return an empty graph for the model; raise the same errors as `to_onnx`."""
    graph, reason = Graph(), why_not(adapter)
    if reason:
        raise UnsupportedModelError(f"This {type(adapter.model).__name__} cannot be written as .onnx: {reason}")
    return graph


def why_not(adapter: Adapter) -> str | None:
    """Return why a model cannot be exported to ONNX, or None if it can."""
    forest = adapter.forest
    if forest.aggregation == "median":
        return "it predicts the median over trees, for which ONNX has no operator. Save the model in another format."
    if type(forest.response) not in LINKS:
        return f"its link {forest.link} has no translation to ONNX operators. Save the model in another format."
    if _changes_rows(adapter):
        return (
            "it transforms its columns before the trees use them (a Pipeline, encoded categories, or a value for "
            "missing entries), and the graph contains only the trees. Save the last step of the Pipeline, or save the "
            "model in another format."
        )
    if adapter.offset(np.nan_to_num(_plain_rows(forest))) is not None:
        return (
            "it starts from the predictions of another model, and the graph contains only the trees. Save the model "
            "in another format."
        )
    if forest.n_classes and _applies_thresholds(adapter):
        return (
            "it predicts labels by decision thresholds, which the graph does not contain. Save the model in another "
            "format."
        )
    return None


def _changes_rows(adapter: Adapter) -> bool:
    """Return whether `rows` changes the values of the first probe it accepts."""
    forest = adapter.forest
    numbers = (0.0, 1.0, 1.5, -0.5, 300.0, 1e30, np.nan, adapter.missing_value)
    for probe in (_probe(forest, *numbers), _plain_rows(forest)):
        try:
            rows = adapter.rows(probe)
        except (ValueError, TypeError, KeyError, IndexError):
            continue
        return not np.array_equal(rows, probe.astype(forest.input_dtype), equal_nan=True)
    return True


def _numeric(forest: Forest) -> NDArray[np.bool_]:
    """Return which features have a numeric split, (n_features,)."""
    return np.isin(np.arange(forest.n_features), forest.feature[forest.is_split & ~forest.is_categorical])


def _probe(forest: Forest, *numbers: float) -> NDArray[np.float64]:
    """Return one row per number, with that number in every column."""
    return np.repeat(np.array(numbers)[:, None], forest.n_features, axis=1)


def _plain_rows(forest: Forest) -> NDArray[np.float64]:
    """Return probe rows: numbers for features with numeric splits, all listed categories for categorical features."""
    lists = forest.categories
    nodes = np.flatnonzero(lists.row >= 0)
    column = np.repeat(forest.feature[nodes], np.diff(lists.start)[lists.row[nodes]])
    entry = [np.arange(lists.start[row], lists.start[row + 1]) for row in lists.row[nodes]]
    pairs = np.unique(np.column_stack([column, lists.code[np.concatenate(entry)] if entry else column]), axis=0)
    known = {int(feature): pairs[pairs[:, 0] == feature, 1] for feature in np.unique(pairs[:, 0])}
    length = max([4, *map(len, known.values())])
    rows = _probe(forest, *np.resize([0.0, -0.5, 2.75, 1e30], length))
    rows[:, ~_numeric(forest)] = 0.0
    for feature, codes in known.items():
        rows[:, feature] = np.resize(codes, length)
    return rows


def _applies_thresholds(adapter: Adapter) -> bool:
    """Return whether `predict` returns other labels than the link, ties excepted; False if it returns no labels."""
    forest, rng = adapter.forest, np.random.default_rng(0)
    raw = rng.normal(size=(2000, forest.n_outputs)) * 10 ** rng.uniform(-4, 1, (2000, 1))
    if isinstance(forest.response, Probability):
        ends = np.cumsum(forest.n_classes)[:-1]
        raw = np.hstack([np.exp(part) / np.exp(part).sum(1, keepdims=True) for part in np.split(raw, ends, axis=1)])
    raw = raw.astype(forest.sum_dtype)
    labels = np.asarray(adapter.decode(forest.response.label(raw, forest.n_classes)))
    predicted = np.asarray(adapter.predict(raw))
    if predicted.shape != labels.shape or not set(np.unique(predicted).tolist()) <= set(np.unique(labels).tolist()):
        return False
    return bool(np.mean(predicted != labels) > 0.01)


def _rounds_tiny_to_zero(adapter: Adapter) -> bool:
    """Return whether the library rounds values very close to 0 to 0, as LightGBM does."""
    probe = _plain_rows(adapter.forest)
    probe[probe == 1e30] = 1e-36
    return bool((adapter.rows(probe)[probe == 1e-36] == 0).any())


def _labels(adapter: Adapter, target: int) -> NDArray[Any]:
    """Return the labels of one target in the order of their codes, as a type ONNX supports."""
    labels = adapter.labels(target)
    if labels.dtype == object:
        labels = np.array(labels.tolist())
    if labels.dtype.kind not in "biufU":
        raise UnsupportedModelError(
            f"The labels have dtype {labels.dtype}, but labels in ONNX must be strings or numbers. "
            "Train the model with such labels."
        )
    if labels.dtype.kind == "U" and any(_has_surrogate(label) for label in labels.tolist()):
        raise UnsupportedModelError(
            "A label contains an unpaired surrogate, but labels in ONNX must be valid UTF-8. Rename the classes and "
            "train the model again."
        )
    return labels if labels.dtype.kind in "bU" else labels.astype(np.float64 if labels.dtype.kind == "f" else np.int64)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
