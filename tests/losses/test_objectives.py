"""Objectives are checked against finite differences, their parabolas against the loss itself."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.in_one_test import for_each

from secateur.losses import Gamma, Huber, LogLoss, Poisson, PseudoHuber, Quantile, Tweedie
from secateur.losses.objectives import (
    HuberObjective,
    LogisticObjective,
    PinballObjective,
    PseudoHuberObjective,
    SoftmaxObjective,
    SquaredObjective,
    TweedieObjective,
    weighted_quantile,
)


def targets(objective, rng, n=40):
    """Return random scores and targets that fit an objective, both (n, n_outputs)."""
    if isinstance(objective, SoftmaxObjective):
        return rng.normal(0, 2, (n, 3)), np.eye(3)[rng.integers(3, size=n)]
    if isinstance(objective, LogisticObjective):
        return rng.normal(0, 3, (n, 2)), rng.random((n, 2)).round(1)
    if isinstance(objective, TweedieObjective):
        return rng.normal(0, 1, (n, 1)), rng.gamma(2.0, 1.0, (n, 1)) * (
            1.0 if objective.power == 2 else rng.integers(2)
        )
    return rng.normal(0, 2, (n, 1)), rng.normal(0, 2, (n, 1))


OBJECTIVES = [
    SquaredObjective(),
    LogisticObjective(),
    SoftmaxObjective(),
    PinballObjective(0.9, 1e-3),
    PinballObjective(0.5, 1e-3),
    HuberObjective(0.7),
    PseudoHuberObjective(0.7),
    TweedieObjective(1.0),
    TweedieObjective(1.4),
    TweedieObjective(2.0),
]


def name_of(objective):
    return " ".join([type(objective).__name__, *map(str, vars(objective).values())])


objectives = pytest.mark.parametrize("objective", OBJECTIVES, ids=name_of)
BOUNDED = [objective for objective in OBJECTIVES if not isinstance(objective, TweedieObjective)]


@objectives
def test_the_gradient_is_that_of_the_loss(objective):
    score, target = targets(objective, np.random.default_rng(0))
    gradient = objective.parabolas(score, target)[0]
    for k in range(score.shape[1]):
        step = np.zeros_like(score)
        step[:, k] = 1e-6
        slope = (objective.rows(score + step, target) - objective.rows(score - step, target)) / 2e-6
        np.testing.assert_allclose(gradient[:, k], -slope, atol=2e-5)


@pytest.mark.parametrize("objective", BOUNDED, ids=name_of)
def test_the_last_parabola_lies_above_the_loss(objective):
    rng = np.random.default_rng(1)
    for _ in range(200):
        score, target = targets(objective, rng, 10)
        gradient, curvature = objective.parabolas(score, target, objective.n_curvatures - 1)
        step = rng.normal(0, rng.choice([0.1, 1.0, 10.0]), score.shape)
        above = objective.rows(score, target) + (curvature * step**2 / 2 - gradient * step).sum(axis=1)
        # Within its width the pinball loss is above its parabola, by at most a quarter of the width.
        slack = 1e-9 + getattr(objective, "width", 0.0)
        assert (objective.rows(score + step, target) <= above + slack).all()


@objectives
def test_the_constant_is_the_best_constant(objective):
    rng = np.random.default_rng(2)
    _, target = targets(objective, rng, 60)
    weight = rng.integers(1, 4, 60).astype(float)
    found = objective.constant(target, weight)
    if target.shape[1] == 1 and not isinstance(objective, HuberObjective):
        best = minimize_scalar(
            lambda f: weight @ objective.rows(np.full((60, 1), f), target), bounds=(-20, 20), method="bounded"
        )
        assert weight @ objective.rows(np.full((60, 1), found[0]), target) <= best.fun + 1e-5 * abs(best.fun)
    else:
        gradient = objective.parabolas(np.tile(found, (60, 1)), target)[0]
        largest = np.abs(weight @ gradient).max()
        assert largest < (20 if isinstance(objective, HuberObjective) else 1e-9)


def test_a_perfect_prediction_has_no_loss_and_deviances_are_those_of_the_losses():
    y = np.array([[0.5], [2.0], [7.0]])
    f = np.log([[1.0], [2.0], [3.0]])
    for objective, loss in [
        (TweedieObjective(1.0), Poisson()),
        (TweedieObjective(1.4), Tweedie(1.4)),
        (TweedieObjective(2.0), Gamma()),
    ]:
        np.testing.assert_allclose(objective.rows(np.log(y), y), 0, atol=1e-12)
        np.testing.assert_allclose(2 * objective.rows(f, y)[:, None], loss.of(np.exp(f), y), atol=1e-12)
    for objective, loss in [
        (PinballObjective(0.3), Quantile(0.3)),
        (HuberObjective(2.0), Huber(2.0)),
        (PseudoHuberObjective(2.0), PseudoHuber(2.0)),
    ]:
        np.testing.assert_allclose(objective.rows(f, y)[:, None], loss.of(f, y))


def test_log_losses_are_those_of_the_probabilities():
    rng = np.random.default_rng(3)
    score, target = targets(SoftmaxObjective(), rng)
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    labels = LogLoss().labels(p)
    np.testing.assert_allclose(SoftmaxObjective().rows(score, target), (labels * target).sum(axis=1))
    two = LogisticObjective().rows(score[:, :1], target[:, :1])
    q = 1 / (1 + np.exp(-score[:, 0]))
    np.testing.assert_allclose(two, -np.log(np.where(target[:, 0] == 1, q, 1 - q)))


@for_each("level", [0.1, 0.5, 0.9])
def test_a_weight_counts_as_repetition_in_a_quantile(level):
    rng = np.random.default_rng(4)
    values, weight = rng.normal(size=31), rng.integers(0, 4, 31).astype(float)
    repeated = np.repeat(values, weight.astype(int))
    assert weighted_quantile(values, weight, level) == np.quantile(repeated, level, method="inverted_cdf")
