"""Transform raw predictions with CatBoost itself, whose exp differs from the C library's in the last digits.

The raw predictions become the leaf values of a model with one symmetric tree, one leaf per row. The features of a row
are the bits of its leaf index, so that CatBoost applies its transformation to exactly the given values.
"""

import io
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from catboost import CatBoost
from numpy.typing import NDArray

from secateur.libraries.catboost.cbm import MAX_DEPTH, NativeModel, NativeTrees, read_cbm, write_cbm
from secateur.libraries.catboost.flatbuffer import root, with_vectors

_FLOATS, _BORDERS = 5, 3
"""Field numbers: the numeric features in the table of trees, and the borders of such a feature."""

_BLOCK_SIZE = 2**22
"""Approximate number of raw predictions per model."""


def transform_predictions(
    raw: NDArray[np.floating], kind: str, loss: str, positions: tuple[int, ...] = (), n_classes: int = 0
) -> NDArray[np.float64]:
    """Return the predictions that CatBoost computes from raw predictions.

    Parameters
    ----------
    raw : (n_rows, n_outputs)
    kind : str
        CatBoost's prediction type: "Probability", "Exponent" or "RMSEWithUncertainty".
    loss : str
        CatBoost's name of the model's loss, without parameters.
    positions : tuple of int
        For classes: the index of each among those the model names.
    n_classes : int
        Number of classes the model names.

    Returns
    -------
    (n_rows,) or (n_rows, n_columns)
    """
    template = _template(loss, positions, n_classes)
    block = 2 ** min(MAX_DEPTH, (_BLOCK_SIZE // raw.shape[1]).bit_length())
    blocks = [_transform_block(template, raw[start : start + block], kind) for start in range(0, len(raw), block)]
    return np.concatenate(blocks)


def _transform_block(template: NativeModel, raw: NDArray[np.floating], kind: str) -> NDArray[np.float64]:
    depth = max(len(raw) - 1, 1).bit_length()
    row = np.arange(len(raw))
    # The features of row i are the bits of i, so row i reaches leaf i.
    bits = (row[:, None] >> np.arange(MAX_DEPTH)) & 1
    value = np.zeros((2**depth, raw.shape[1]))
    value[: len(raw)] = raw
    trees = NativeTrees(
        size=np.array([depth], np.int32),
        split=np.arange(depth, dtype=np.int32),
        leaf_value=value,
        leaf_weight=np.zeros(len(value)),
        step=np.empty((0, 2), np.uint16),
        leaf_id=np.empty(0, np.uint32),
    )
    model = CatBoost().load_model(blob=write_cbm(template, trees, np.zeros(raw.shape[1])))
    predictions: Any = model._predict(bits.astype(np.float32), kind, 0, 0, 1, None, "predict")
    return np.asarray(predictions, np.float64)


@cache
def _template(loss: str, positions: tuple[int, ...], n_classes: int) -> NativeModel:
    """Return a tiny model with the given loss whose split condition i tests bit i of a row index."""
    options: dict[str, Any] = {"loss_function": "Tweedie:variance_power=1.5" if loss == "Tweedie" else loss}
    if positions:
        options["classes_count"] = n_classes
    row = np.arange(2 * max(MAX_DEPTH, len(positions)))
    y = np.resize(positions, len(row)) if positions else row % 2
    quick = {"iterations": 1, "depth": 1, "thread_count": 1, "logging_level": "Silent", "allow_writing_files": False}
    # The log is discarded: CatBoost warns of classes without rows, which is intended here.
    model = CatBoost({**options, **quick}).fit(
        np.eye(MAX_DEPTH)[row % MAX_DEPTH], y, log_cout=io.StringIO(), log_cerr=io.StringIO()
    )
    native = read_cbm(model._serialize_model())
    core = native.core
    # CatBoost keeps only the borders its tree uses, so restore the border of every bit.
    for bit in range(MAX_DEPTH):
        trees = root(core).table(1)
        if trees is not None:
            core = with_vectors(trees.tables(_FLOATS)[bit], {_BORDERS: np.array([0.5], "<f4")})
    return replace(native, core=core)
