"""Time calls in turns, so that a slow moment of the machine meets all of them."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray


def time_in_turns(
    functions: Sequence[Callable[[Any], Any]], arguments: Sequence[Any], seconds: float
) -> NDArray[np.float64]:
    """Return the seconds of single calls, (n_rounds, n_functions).

    Every round calls each function once with the same argument, in random order. The rounds take the arguments in turn,
    and end after `seconds`; there is at least one. Each function is called once before, untimed. The garbage collector
    is paused.
    """
    for function in functions:
        function(arguments[0])
    rng = np.random.default_rng(0)
    rounds: list[NDArray[np.float64]] = []
    with _no_garbage_collection():
        start = perf_counter()
        while not rounds or perf_counter() - start < seconds:
            argument = arguments[len(rounds) % len(arguments)]
            taken = np.empty(len(functions))
            for k in rng.permutation(len(functions)).tolist():
                called = perf_counter()
                functions[k](argument)
                taken[k] = perf_counter() - called
            rounds.append(taken)
    return np.array(rounds)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
