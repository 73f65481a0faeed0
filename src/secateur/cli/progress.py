"""Show the running step on the terminal: a bar, the percentage, the elapsed and the estimated remaining time."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from secateur._util.progress_line import shown_steps
from secateur.cli._terminal import current_run, stderr


@contextmanager
def progress_bar(step: str) -> Iterator[Any]:
    """Show a bar while the block runs, if stderr is a terminal; yield the callback that updates it, or None."""
    run = current_run()
    if run.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    console = stderr(_UntilClosed(sys.stderr))
    with shown_steps(lambda: console, step) as update:
        run.live_console = console
        try:
            yield update
        finally:
            run.live_console = None


class _UntilClosed:
    """A terminal whose errors are ignored, so that the computation continues after it has been closed."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.stream.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self.stream.flush()
