"""Show a running computation as one line on stderr: the step, a bar, the time passed and the time left.

The line appears after two seconds, from a thread of its own, so that it is alive while the computation says nothing.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from secateur._util.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

Progress = Callable[[int, int, str], None]

DELAY = 2.0
"""Seconds before the line appears; calls that take less time show nothing."""
_COMPILING = "compiling kernels (once per machine)"
_REDRAWS_PER_SECOND = 10
# Rates are averaged over the whole step: the parts of a step may take minutes each.
_RATE_SECONDS = 24 * 3600.0
# The step name that cross-validation reports between folds.
_FOLD_STEP = "validating"
_NOTEBOOK_WIDTH = 100

_one_line = threading.Lock()


@contextmanager
def progress_line(progress: Progress | bool | None, step: str) -> Iterator[Progress | None]:
    """Yield a progress callback that shows a line; the given function if it is one; None if nothing is to be shown.

    By default (None) a line is shown on terminals and in notebooks, by the main thread of the main process. True shows
    it always, False never. Only one line is shown at a time, the outermost.
    """
    wanted = _is_watched() if progress is None else progress
    if callable(wanted) or not wanted or not _one_line.acquire(blocking=False):
        yield wanted if callable(wanted) else None
        return
    try:
        with shown_steps(_console, step, delay=DELAY, redirect_stderr=not _in_notebook()) as update:
            yield update
    finally:
        _one_line.release()


@contextmanager
def shown_steps(
    console: "Callable[[], Console]", step: str, *, delay: float = 0.0, redirect_stderr: bool = False
) -> Iterator[Progress]:
    """Show a line on a console while the block runs, from `delay` seconds on; yield the callback that updates it."""
    line = _Line(console, step, redirect_stderr)
    timer = threading.Timer(delay, line.show)
    timer.daemon = True
    if delay:
        timer.start()
    else:
        line.show()
    try:
        yield line.update
    finally:
        timer.cancel()
        line.close()


class _Line:
    """A line that shows one step at a time; a new or restarted step restarts the clock."""

    def __init__(self, console: "Callable[[], Console]", step: str, redirect_stderr: bool) -> None:
        self._console, self._redirect_stderr = console, redirect_stderr
        self._step, self._done = step, 0
        self._total: int | None = None
        self._began = time.monotonic()
        self._runs, self._folds = Counter([step]), ""
        self._lock = threading.Lock()
        self._closed = False
        self._bar: Any = None

    def show(self) -> None:
        """Start to draw the line."""
        from rich.progress import Progress as Bar

        with self._lock:
            if self._closed:
                return
            self._bar = Bar(
                *_columns(),
                console=self._console(),
                refresh_per_second=_REDRAWS_PER_SECOND,
                speed_estimate_period=_RATE_SECONDS,
                transient=True,
                get_time=time.monotonic,
                # Results on stdout must stay there.
                redirect_stdout=False,
                redirect_stderr=self._redirect_stderr,
            )
            self._bar.add_task(self._description, total=self._total, completed=self._done)
            self._bar.tasks[0].start_time = self._began
            self._bar.start()

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()

    def update(self, done: int, total: int, step: str) -> None:
        """Show that `done` of `total` parts of a step are done."""
        with self._lock:
            if step == _FOLD_STEP and total > 1:
                self._folds = f" ({done} of {total} folds done)"
            restarted = step != self._step or done < self._done
            if restarted:
                self._runs[step] += 1
                self._began = time.monotonic()
            self._step, self._done, self._total = step, done, total
            if self._bar is None:
                return
            if restarted:
                self._bar.reset(0, description=self._description)
            self._bar.update(0, completed=done, total=total, description=self._description)

    @property
    def _description(self) -> str:
        repeated = self._runs[self._step] > 1 and self._step != _FOLD_STEP
        return printable(self._step) + (f", run {self._runs[self._step]}" if repeated else "") + self._folds


def _columns() -> "Iterator[ProgressColumn]":
    from rich.progress import BarColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class StepColumn(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(_COMPILING) if _are_compiling() else super().render(task)

    class TimeLeftColumn(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return super().render(task).append(" left") if task.time_remaining else Text("")

    # Names of files are no markup.
    yield StepColumn("{task.description}", markup=False)
    yield BarColumn(bar_width=30)
    yield TaskProgressColumn(table_column=Column(no_wrap=True))
    yield TimeElapsedColumn(table_column=Column(no_wrap=True))
    yield TimeLeftColumn(table_column=Column(no_wrap=True))


def _are_compiling() -> bool:
    """Return whether kernels are being compiled; they are loaded only when they are needed."""
    return bool(getattr(sys.modules.get("secateur.kernels"), "are_compiling", lambda: False)())


def _is_watched() -> bool:
    """Return whether somebody sees stderr: it is a terminal or that of a notebook, of the main thread and process."""
    main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    return main and (_in_notebook() or (sys.stderr.isatty() and os.environ.get("TERM") != "dumb"))


def _in_notebook() -> bool:
    """Return whether stderr is shown in a notebook, which understands a carriage return."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _console() -> "Console":
    from rich.console import Console

    # The widgets that rich uses in notebooks need another library.
    width = _NOTEBOOK_WIDTH if _in_notebook() else None
    return Console(file=sys.stderr, force_terminal=True, force_jupyter=False, width=width, highlight=False)
