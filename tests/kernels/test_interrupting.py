"""Ctrl-C while a kernel runs is Ctrl-C afterwards, whatever the kernel returns."""

import signal
import threading
import time

import numpy as np
import pytest

from secateur.kernels._jit import kernel


@kernel
def one_array(n):
    values = np.zeros(3)
    for i in range(n):
        values[i % 3] += i * 0.5
    return values


@kernel
def three_results(n):
    values = one_array(n)
    return values, values[0], values.copy()


@pytest.fixture
def interrupts():
    """Return what sends a signal to this process in a moment; its handler raises what is passed."""
    threads, before = [], signal.getsignal(signal.SIGINT)

    def begin(error):
        def handle(*_):
            raise error

        signal.signal(signal.SIGINT, handle)
        threads.append(threading.Thread(target=lambda: (time.sleep(0.02), signal.raise_signal(signal.SIGINT))))
        threads[-1].start()

    yield begin
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit(143)], ids=repr)
@pytest.mark.parametrize("ran", [one_array, three_results])
def test_the_error_of_a_handler_arrives_as_it_was_raised(ran, error, interrupts):
    ran(1)
    interrupts(error)
    with pytest.raises(BaseException) as found:  # noqa: PT011
        ran(200_000_000)
    assert isinstance(found.value, error if isinstance(error, type) else type(error))


def test_kernels_return_what_they_returned_before():
    values, first, copy = three_results(9)
    np.testing.assert_array_equal(values, copy)
    assert first == values[0] == 4.5
    assert three_results.py_func(9)[1] == 4.5
