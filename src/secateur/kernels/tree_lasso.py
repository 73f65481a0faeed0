"""Lasso on whole trees (Friedman and Popescu 2003): coordinate descent on the Gram matrix of what the trees predict."""

import numpy as np

from secateur.kernels._jit import kernel


@kernel
def fit_tree_lasso(
    gram: np.ndarray,
    match: np.ndarray,
    square: float,
    penalty: float,
    start: np.ndarray,
    tolerance: float,
    max_sweeps: int,
) -> tuple:
    """Return the β that minimises square − 2β'm + β'Gβ + penalty Σ|β|, its duality gap and the number of sweeps.

    `square` is the squared error of β = 0. The descent starts from `start` and ends when the gap, by how much the
    objective may be above the minimum, is at most `tolerance`, or after `max_sweeps`.
    """
    beta = start.copy()
    pull = match - gram @ beta  # stays match − gram @ beta
    gap = np.inf
    for sweep in range(max_sweeps):
        few = sweep % 10 != 0  # the trees that have a weight come to rest first; the others are looked at now and then
        for j in range(beta.shape[0]):
            if gram[j, j] <= 0.0 or (few and beta[j] == 0.0):
                continue
            wanted = pull[j] + gram[j, j] * beta[j]
            new = np.sign(wanted) * max(abs(wanted) - penalty / 2, 0.0) / gram[j, j]
            if new != beta[j]:
                pull -= gram[j] * (new - beta[j])
                beta[j] = new
        if sweep % 10 == 0 or sweep == max_sweeps - 1:
            gap = _duality_gap(match, square, penalty, beta, pull)
            if gap <= tolerance:
                return beta, gap, sweep + 1
    return beta, gap, max_sweeps


@kernel
def _duality_gap(match, square, penalty, beta, pull):
    """Return objective − dual, where the dual is 2 s r'y − s² r'r for the residual r, and s |pull| ≤ penalty / 2."""
    along = square - (beta * match).sum()  # r'y
    loss = max(along - (beta * pull).sum(), 0.0)  # r'r
    steepest = np.abs(pull).max() if pull.shape[0] else 0.0
    scale = along / loss if loss > 0.0 else 1.0
    if scale * steepest > penalty / 2:
        scale = penalty / (2 * steepest)
    return loss + penalty * np.abs(beta).sum() - (2 * scale * along - scale**2 * loss)
