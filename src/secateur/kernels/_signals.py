"""Delay Ctrl-C and SIGTERM during code that must not be interrupted."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def signals_delayed() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM after the block instead of within it.

    LLVM calls back into Python while it loads code. An exception raised there by a signal handler is lost, and LLVM
    continues with incomplete data, which can crash the process.
    """
    # Python runs signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def record(number: int, frame: Any) -> None:
        received.append(number)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, record)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for pending in received:
        signal.raise_signal(pending)
