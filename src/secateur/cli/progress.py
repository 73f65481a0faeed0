"""Show the running step on the terminal: a bar, the percentage, the elapsed and the estimated remaining time."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

from secateur._util.text import printable
from secateur.cli._terminal import current_run, stderr

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

_REDRAWS_PER_SECOND = 10
# Rates are averaged over the whole step: the parts of a step may take minutes each.
_RATE_SECONDS = 24 * 3600.0
# The step name that cross-validation reports between folds.
_FOLD_STEP = "validating"


@contextmanager
def progress_bar(step: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar while the block runs, if stderr is a terminal; yield the callback that updates it, or None."""
    run = current_run()
    if run.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    console = stderr(_UntilClosed(sys.stderr))
    with _progress(console) as progress:
        run.live_console = console
        try:
            yield _Steps(progress, step).update
        finally:
            run.live_console = None


class _Steps:
    """Show one step at a time; a new or restarted step restarts the clock."""

    def __init__(self, progress: "Progress", step: str) -> None:
        self.progress, self.step, self.done = progress, step, 0
        self.runs, self.folds = Counter([step]), ""
        self.task = progress.add_task(printable(step), total=None)

    def update(self, done: int, total: int, step: str) -> None:
        """Show that `done` of `total` parts of a step are done."""
        if step == _FOLD_STEP and total > 1:
            self.folds = f" ({done} of {total} folds done)"
        if step != self.step or done < self.done:
            self.runs[step] += 1
            self.progress.reset(self.task, description=self._description(step))
        self.step, self.done = step, done
        self.progress.update(self.task, completed=done, total=total, description=self._description(step))

    def _description(self, step: str) -> str:
        repeated = self.runs[step] > 1 and step != _FOLD_STEP
        return printable(step) + (f", run {self.runs[step]}" if repeated else "") + self.folds


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


def _progress(console: "Console") -> "Progress":
    from rich.progress import Progress

    return Progress(
        *_columns(),
        console=console,
        refresh_per_second=_REDRAWS_PER_SECOND,
        speed_estimate_period=_RATE_SECONDS,
        transient=True,
        # Results on stdout must stay there.
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _columns() -> "Iterator[ProgressColumn]":
    from rich.progress import BarColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class TimeLeftColumn(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            return super().render(task).append(" left") if task.time_remaining else Text("")

    # Names of files are no markup.
    yield TextColumn("{task.description}", markup=False)
    yield BarColumn(bar_width=30)
    yield TaskProgressColumn(table_column=Column(no_wrap=True))
    yield TimeElapsedColumn(table_column=Column(no_wrap=True))
    yield TimeLeftColumn(table_column=Column(no_wrap=True))
