"""A path whose evaluation is interrupted has the points evaluated until then."""

import signal
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from secateur.errors import InterruptedWarning


@pytest.fixture(scope="module")
def made():
    """Return a path, and rows to evaluate it on."""
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(5, random_state=0).fit(X[:150], y[:150])
    path = sc.prune_path(model, X[150:300], y[150:300], solver="weakest_link")
    return path, X[300:], y[300:]


def interrupt_at(step):
    """Return a progress callback that presses Ctrl-C."""

    def progress(done, total, what):
        if done == step:
            signal.raise_signal(signal.SIGINT)

    return progress


@pytest.mark.parametrize("step", [2, 7])
def test_points_evaluated_until_the_interruption_are_kept(made, step):
    path, X, y = made
    whole = path.evaluate(X, y)
    with pytest.warns(InterruptedWarning, match=f"the {step} of {len(path)} points"):
        partial = path.evaluate(X, y, progress=interrupt_at(step))
    assert len(partial) == step < len(whole)
    assert partial.info == replace(whole.info, interrupted=True)
    for name, column in partial.table.items():
        np.testing.assert_array_equal(column, whole.table[name][:step])
    assert path.info.interrupted is False
    assert 0 < partial.select().point < step


def test_the_unpruned_model_alone_is_nothing_to_keep(made):
    path, X, y = made
    with pytest.raises(KeyboardInterrupt):
        path.evaluate(X, y, progress=interrupt_at(1))


def test_an_interruption_after_the_last_point_is_reported_and_loses_nothing(made):
    path, X, y = made
    with pytest.warns(InterruptedWarning):
        whole = path.evaluate(X, y, progress=interrupt_at(len(path)))
    assert len(whole) == len(path)
    assert whole.info.interrupted is False
