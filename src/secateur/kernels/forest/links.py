"""Compute exponential links with the C library's functions, so that predictions match C++ libraries bit for bit."""

import math

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def exp_all(raw: np.ndarray, out: np.ndarray) -> None:
    """Write exp(raw) to `out`, both (n_rows, n_outputs), in the precision of the arrays."""
    for i in range(raw.shape[0]):
        for k in range(raw.shape[1]):
            out[i, k] = math.exp(raw[i, k])


@kernel
def softplus_all(raw: np.ndarray, out: np.ndarray) -> None:
    """Write log(1 + exp(raw)) to `out`, both (n_rows, n_outputs)."""
    for i in range(raw.shape[0]):
        for k in range(raw.shape[1]):
            out[i, k] = math.log1p(math.exp(raw[i, k]))


@kernel
def softmax_rows(raw: np.ndarray, out: np.ndarray) -> None:
    """Write the softmax of each row to `out`; exponentials in the precision of the arrays, their sum in double."""
    n_rows, n_outputs = raw.shape
    for i in range(n_rows):
        largest = raw[i, 0]
        for k in range(1, n_outputs):
            largest = max(largest, raw[i, k])
        total = 0.0
        for k in range(n_outputs):
            out[i, k] = math.exp(raw[i, k] - largest)
            total += out[i, k]
        for k in range(n_outputs):
            out[i, k] /= out.dtype.type(total)
