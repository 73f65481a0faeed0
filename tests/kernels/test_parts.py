"""A kernel that other kernels call is a part of their code."""

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
