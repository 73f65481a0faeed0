"""A kernel that other kernels call is a part of their code."""

import os
import subprocess
import sys

import numpy as np
import pytest

from secateur.kernels import _jit


@pytest.fixture
def caller(monkeypatch):
    """A kernel that calls another one, compiled here and kept in memory only."""
    monkeypatch.setattr(_jit, "enable_disk_cache", lambda compiled: None)

    @_jit.kernel
    def smallest(x):
        if x.shape[0] == 0:
            raise ValueError(f"{x.shape[0]} numbers")
        print(x)  # noqa: T201
        return x.min()

    @_jit.kernel
    def twice_smallest(x):
        return 2.0 * smallest(x)

    return twice_smallest, smallest


def test_a_part_prints_and_raises_like_the_kernel_itself(caller, capfd):
    for kernel, expected in zip(caller, (6.0, 3.0), strict=True):
        assert kernel(np.array([3.0, 4.0])) == expected
        assert capfd.readouterr().out.strip() == "[3. 4.]"
        with pytest.raises(ValueError, match="0 numbers"):
            kernel(np.empty(0))


def test_a_kernel_is_compiled_for_python_only_if_python_calls_it(caller):
    twice_smallest, smallest = caller
    twice_smallest(np.ones(2))
    counts = [len(form.overloads) for form in (twice_smallest, smallest, twice_smallest.part, smallest.part)]
    assert counts == [1, 0, 0, 1]


def test_a_part_is_compiled_once_for_all_signed_integers(monkeypatch):
    monkeypatch.setattr(_jit, "enable_disk_cache", lambda compiled: None)

    @_jit.kernel
    def half(x):
        return x // 2

    @_jit.kernel
    def halves(short, small):
        return half(short[0]), half(7), half(short.shape[0]), half(small[0])

    assert halves(np.array([-9], np.int32), np.array([250], np.uint8)) == (-5, 3, 0, 125)
    assert len(half.part.overloads) == 2


WITHOUT_COMPILER = """
import numpy as np
from sklearn.ensemble import RandomForestRegressor
import secateur
X = np.arange(12.0).reshape(6, 2)
model = RandomForestRegressor(2, max_depth=1, random_state=0).fit(X, X[:, 0])
path = secateur.prune_path(model, X, X[:, 0], solver="weakest_link")
print([path[0].predict(X).tolist(), path.table["risk"].tolist()])
"""


def test_kernels_run_without_the_compiler_and_give_the_same_numbers():
    run = lambda off: subprocess.run(  # noqa: E731
        [sys.executable, "-c", WITHOUT_COMPILER],
        env={**os.environ, "NUMBA_DISABLE_JIT": off},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run("1").stdout == run("0").stdout


def test_multiplying_and_adding_without_the_compiler_rounds_once():
    x = 1 + 2.0**-30
    assert _jit._fused_in_python(x, x, -1 - 2.0**-29) == 2.0**-60
    assert np.isnan(_jit._fused_in_python(np.nan, 1.0, 2.0))
    assert _jit._fused_in_python(np.inf, 1.0, 2.0) == np.inf
