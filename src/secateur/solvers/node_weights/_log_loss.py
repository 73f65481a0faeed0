"""Fit node weights by log loss, as a sequence of least-squares fits.

Each fit minimises a quadratic approximation of the log loss around the last scores. Its curvature is p(1 − p), that of
the loss, or where this step does not decrease the objective 1/4, the largest curvature of the log loss: then the
approximation is an upper bound, and the objective decreases.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from secateur.solvers.node_weights._weights import Block, Fit

Floats = NDArray[np.float64]

_LEAST_CURVATURE = 1e-5
_MAX_STEPS = 100


class _State(NamedTuple):
    """Weights and what is known of them."""

    w: Floats
    intercept: float
    score: Floats
    objective: float
    residual: float

    def improves(self, other: "_State") -> bool:
        """Whether the objective is smaller or, where it differs by rounding only, the residual."""
        return self.objective < other.objective or (
            self.objective <= other.objective * (1 + 1e-13) and self.residual < other.residual
        )


def by_log_loss(fit: Fit, residual_at: Callable[[Block, float, Floats], float], tolerance: float) -> Fit:
    """Return a fit by log loss that calls `fit` for least-squares problems.

    Parameters
    ----------
    fit : callable
        Minimises half the mean squared error plus the penalty.
    residual_at : callable
        Maps a least-squares problem, a penalty and weights to the residual of the optimality conditions.
    tolerance : float
        Stop when the residual is at most this.
    """

    def fit_log_loss(block: Block, k: int, penalty: float, start: Floats) -> tuple[Floats, float, float]:
        score = block.score(start)
        best = state_at(block, k, penalty, start, _best_intercept(block, k, score))
        for _ in range(_MAX_STEPS):
            if best.residual <= tolerance:
                break
            p = expit(best.score)
            for curvature in (np.maximum(p * (1 - p), _LEAST_CURVATURE), np.full(len(p), 0.25)):
                expansion = _expand(block, k, best.score, curvature)
                w, b, _ = fit(expansion, 0, penalty / float(block.weight @ curvature), best.w)
                state = state_at(block, k, penalty, w, b)
                if state.improves(best):
                    break
            else:
                break
            best = state
        return best.w, best.intercept, best.residual

    def state_at(block: Block, k: int, penalty: float, w: Floats, intercept: float) -> _State:
        score = intercept + block.score(w)
        objective = block.mean_loss(k, score) + penalty * float(block.prior @ np.abs(w))
        bound = _expand(block, k, score, np.full(len(score), 0.25))
        return _State(w, intercept, score, objective, residual_at(bound, 4 * penalty, w))

    return fit_log_loss


def _best_intercept(block: Block, k: int, score: Floats) -> float:
    """Return the intercept that minimises the log loss, given the scores without it; finite if there is one class."""
    share = np.clip(block.weight @ (1 + block.targets[k]) / 2, 1e-9, 1 - 1e-9)
    low, high = logit(share) - score.max(), logit(share) - score.min()
    while high - low > 1e-13 * max(1.0, abs(low), abs(high)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if block.weight @ expit(middle + score) < share else (low, middle)
    return float((low + high) / 2)


def _expand(block: Block, k: int, score: Floats, curvature: Floats) -> Block:
    """Return the least-squares problem with the value, gradient and curvature of the log loss at the scores."""
    target = score + ((1 + block.targets[k]) / 2 - expit(score)) / curvature
    weight = block.weight * curvature
    return replace(block, weight=weight / weight.sum(), targets=target[None], loss="squared_error")
