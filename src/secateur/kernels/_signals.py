"""Delay Ctrl-C and SIGTERM during code that must not be interrupted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM after the block instead of within it.

    LLVM calls back into Python while it loads code. An exception raised there by a signal handler is lost, and LLVM
    continues with incomplete data, which can crash the process.
    """
    # Python runs signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
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
