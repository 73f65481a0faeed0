"""Show a progress bar with elapsed and estimated remaining time in one terminal line.

The line is redrawn with carriage returns and spaces only, so no escape codes are written on any terminal.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from secateur._util.text import printable
from secateur.cli._terminal import current_run

_REDRAW_SECONDS = 0.1
_MAX_WIDTH, _MIN_WIDTH = 30, 5
# The step name that cross-validation reports between folds.
_FOLD_STEP = "trying on other rows"

Clock = Callable[[], float]


@contextmanager
def progress_bar(step: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar while the block runs, if stderr is a terminal; yield the callback that updates it, or None."""
    run = current_run()
    if run.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    with Bar(sys.stderr, step).shown() as bar:
        run.status_line = bar
        try:
            yield bar.update
        finally:
            run.status_line = None


class StepProgress:
    """Progress of one step, and an estimate of its remaining time by extrapolation."""

    def __init__(self, name: str, clock: Clock = time.monotonic) -> None:
        self.name, self.clock = name, clock
        self.done, self.total, self.n_updates = 0, 0, 0
        self.started = self.updated = clock()

    def update(self, done: int, total: int) -> None:
        """Record that `done` of `total` parts are done."""
        if done != self.done:
            self.updated, self.n_updates = self.clock(), self.n_updates + 1
        self.done, self.total = done, total

    @property
    def fraction(self) -> float | None:
        """The completed fraction, None if the total is not known."""
        return min(self.done / self.total, 1.0) if self.total > 0 else None

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return self.clock() - self.started

    @property
    def remaining(self) -> float | None:
        """Estimated seconds until the step ends, None if no estimate is possible yet.

        The remaining parts are assumed to take the mean time of the completed parts. If the last update is longer ago
        than the mean interval between updates, the excess is added to the time of the completed parts.
        """
        if not 0 < self.done < self.total:
            return None
        taken, since = self.updated - self.started, self.clock() - self.updated
        late = max(since - taken / self.n_updates, 0.0)
        return max((taken + late) * (self.total - self.done) / self.done - (since - late), 0.0)


class Bar:
    """Status line that a background thread redraws while it is shown."""

    def __init__(self, stream: TextIO, step: str, clock: Clock = time.monotonic) -> None:
        self.stream, self.clock = stream, clock
        self.step = StepProgress(step, clock)
        self.runs, self.folds = {step: 1}, ""
        self.drawn, self.drawn_at = 0, -1.0
        self.lock, self.over = threading.RLock(), threading.Event()

    @contextmanager
    def shown(self) -> Iterator["Bar"]:
        """Show the line until the block ends, then erase it."""
        self.draw()
        thread = threading.Thread(target=self._keep_drawing, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            thread.join()
            self.erase()

    def update(self, done: int, total: int, step: str) -> None:
        """Record the progress of a step; a new or restarted step restarts the clock."""
        with self.lock:
            if step == _FOLD_STEP and total > 1:
                self.folds = f" ({done} of {total} folds done)"
            is_new = step != self.step.name
            if is_new or done < self.step.done:
                self.runs[step] = self.runs.get(step, 0) + 1
                self.step = StepProgress(step, self.clock)
            self.step.update(done, total)
            if is_new or self.clock() - self.drawn_at > _REDRAW_SECONDS:
                self.draw()

    def draw(self) -> None:
        """Redraw the line in place."""
        with self.lock:
            text = self.text(_columns(self.stream) - 1)
            self._write("\r" + text + " " * (self.drawn - len(text)))
            self.drawn, self.drawn_at = len(text), self.clock()

    def erase(self) -> None:
        """Erase the line."""
        with self.lock:
            self._write("\r" + " " * self.drawn + "\r")
            self.drawn = 0

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Erase the line while other text is printed."""
        with self.lock:
            self.erase()
            yield

    def text(self, width: int) -> str:
        """Return the text of the line, at most `width` characters."""
        step = self.step
        repeated = self.runs[step.name] > 1 and step.name != _FOLD_STEP
        run = f", run {self.runs[step.name]}" if repeated else ""
        name, fraction, remaining = printable(step.name) + run + self.folds, step.fraction, step.remaining
        times = [format_duration(step.elapsed)]
        if fraction is not None:
            times.insert(0, f"{int(100 * fraction)}%")
        if remaining is not None:
            times.append(f"about {format_duration(remaining)} left")
        status = ", ".join(times)
        bar_width = min(_MAX_WIDTH, width - len(name) - len(status) - 2)
        parts = [name, status]
        if bar_width >= _MIN_WIDTH:
            parts.insert(1, _bar(fraction, step.elapsed, bar_width, self._characters()))
        return " ".join(parts)[: max(width, 0)]

    def _characters(self) -> tuple[str, str]:
        try:
            "━╌".encode(self.stream.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return "#", "-"
        return "━", "╌"

    def _keep_drawing(self) -> None:
        while not self.over.wait(_REDRAW_SECONDS):
            self.draw()

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            # The terminal has been closed. Stop drawing, but let the computation continue.
            self.over.set()


def format_duration(seconds: float) -> str:
    """Format a duration: 8 s, 3 min 20 s, 2 h 5 min."""
    total = max(round(seconds), 0)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"


def _bar(fraction: float | None, elapsed: float, width: int, characters: tuple[str, str]) -> str:
    """Return a bar filled to `fraction`, or one with a segment that moves back and forth if the fraction is unknown."""
    full, empty = characters
    if fraction is not None:
        filled = int(fraction * width)
        return full * filled + empty * (width - filled)
    segment = max(width // 5, 1)
    period = 2 * (width - segment)
    position = int(elapsed * 10) % period if period else 0
    position = min(position, period - position)
    return empty * position + full * segment + empty * (width - segment - position)


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
