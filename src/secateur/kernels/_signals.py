"""Ctrl-C at a moment that cannot take it: held back until it can."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM after the block instead of within it.

    LLVM calls Python for the code it loads. What a handler raises there is lost, and LLVM goes on with half of what it
    asked for, which can crash the process.
    """
    if threading.current_thread() is not threading.main_thread():  # no other one runs handlers
        yield
        return
    came: list[int] = []

    def remember(number: int, frame: Any) -> None:
        came.append(number)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, remember)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in came:
        signal.raise_signal(late)
