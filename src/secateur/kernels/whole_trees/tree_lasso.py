"""Solve the lasso over tree weights by coordinate descent and active-set steps on the Gram matrix of the trees.

The trees of a forest are so correlated that coordinate descent alone takes thousands of sweeps. Here coordinate descent
only finds the support and the signs of the weights; a linear solve then finds the weights.

References
----------
Friedman and Popescu (2003), Importance sampled learning ensembles.
"""

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

    `square` is the squared error of β = 0. The descent starts from `start`. It stops when the duality gap, an upper
    bound on the distance of the objective to its minimum, is at most `tolerance`, or after `max_sweeps`. No step
    increases the objective.
    """
    beta = start.copy()
    # Loop invariant: neg_gradient = match − gram @ beta, half the negative gradient of the loss.
    neg_gradient = match - gram @ beta
    gap = np.inf
    for sweep in range(max_sweeps):
        for j in range(beta.shape[0]):
            if gram[j, j] > 0.0:
                correlation = neg_gradient[j] + gram[j, j] * beta[j]
                new = np.sign(correlation) * max(abs(correlation) - penalty / 2, 0.0) / gram[j, j]
                if new != beta[j]:
                    neg_gradient -= gram[j] * (new - beta[j])
                    beta[j] = new
        # Each step that returns True sets a weight to 0, so the loop ends.
        while _step_within_signs(gram, penalty, beta, neg_gradient):
            neg_gradient[:] = match - gram @ beta
        neg_gradient[:] = match - gram @ beta
        gap = _duality_gap(match, square, penalty, beta, neg_gradient)
        if gap <= tolerance:
            return beta, gap, sweep + 1
    return beta, gap, max_sweeps


@kernel
def _step_within_signs(gram: np.ndarray, penalty: float, beta: np.ndarray, neg_gradient: np.ndarray) -> bool:
    """Move the non-zero weights towards the minimum for their current signs; return whether one was set to 0.

    With g half the negative gradient and p = (G + εI)⁻¹ g, a step of length t ≤ 1 lowers the objective by
    2t g'p − t² p'Gp ≥ t g'p ≥ 0.
    """
    active = np.flatnonzero(beta)
    n = active.shape[0]
    if n == 0:
        return False
    system, g = np.empty((n, n)), np.empty(n)
    trace = 0.0
    for i in range(n):
        for j in range(n):
            system[i, j] = gram[active[i], active[j]]
        g[i] = neg_gradient[active[i]] - penalty / 2 * np.sign(beta[active[i]])
        trace += system[i, i]
    for i in range(n):
        system[i, i] += 1e-12 * trace
    p = np.linalg.solve(system, g)
    length, zeroed = 1.0, -1
    for i in range(n):
        current = beta[active[i]]
        if current * (current + length * p[i]) < 0.0:
            length, zeroed = -current / p[i], i
    for i in range(n):
        beta[active[i]] += length * p[i]
    if zeroed >= 0:
        beta[active[zeroed]] = 0.0
    return zeroed >= 0


@kernel
def _duality_gap(match: np.ndarray, square: float, penalty: float, beta: np.ndarray, neg_gradient: np.ndarray) -> float:
    """Return the duality gap, objective − dual.

    The dual objective is 2 s r'y − s² r'r, with r the residual and s the best scale for which
    s |neg_gradient| ≤ penalty / 2.
    """
    # along is r'y, loss is r'r.
    along = square - (beta * match).sum()
    loss = max(along - (beta * neg_gradient).sum(), 0.0)
    largest = np.abs(neg_gradient).max() if neg_gradient.shape[0] else 0.0
    scale = along / loss if loss > 0.0 else 1.0
    if scale * largest > penalty / 2:
        scale = penalty / (2 * largest)
    return loss + penalty * np.abs(beta).sum() - (2 * scale * along - scale**2 * loss)
