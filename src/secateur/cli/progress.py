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
from secateur.cli._terminal import current

# Seconds between redraws.
_EVERY = 0.1
_BAR, _SHORTEST_BAR = 30, 5
# The step name that cross-validation reports between folds.
_ROUNDS = "trying on other rows"

Clock = Callable[[], float]


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar while the block runs, if stderr is a terminal; yield the callback that updates it, or None."""
    run = current()
    if run.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    with Bar(sys.stderr, what).shown() as bar:
        run.line = bar
        try:
            yield bar.move
        finally:
            run.line = None


class Pace:
    """Progress of one step, and an estimate of its remaining time by extrapolation."""

    def __init__(self, what: str, clock: Clock = time.monotonic) -> None:
        self.what, self.clock = what, clock
        self.done, self.total, self.moves = 0, 0, 0
        self.began = self.moved = clock()

    def move(self, done: int, total: int) -> None:
        """Record that `done` of `total` parts are done."""
        if done != self.done:
            self.moved, self.moves = self.clock(), self.moves + 1
        self.done, self.total = done, total

    @property
    def share(self) -> float | None:
        """The completed share, None if the total is not known."""
        return min(self.done / self.total, 1.0) if self.total > 0 else None

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return self.clock() - self.began

    @property
    def left(self) -> float | None:
        """Estimated seconds until the step ends, None if no estimate is possible yet.

        The remaining parts are assumed to take the mean time of the completed parts. If the last update is longer ago
        than the mean interval between updates, the excess is added to the time of the completed parts.
        """
        if not 0 < self.done < self.total:
            return None
        taken, since = self.moved - self.began, self.clock() - self.moved
        late = max(since - taken / self.moves, 0.0)
        return max((taken + late) * (self.total - self.done) / self.done - (since - late), 0.0)


class Bar:
    """Status line that a background thread redraws while it is shown."""

    def __init__(self, stream: TextIO, what: str, clock: Clock = time.monotonic) -> None:
        self.stream, self.clock = stream, clock
        self.pace = Pace(what, clock)
        self.runs, self.rounds = {what: 1}, ""
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

    def move(self, done: int, total: int, what: str) -> None:
        """Record the progress of a step; a new or restarted step restarts the clock."""
        with self.lock:
            if what == _ROUNDS and total > 1:
                self.rounds = f" ({done} of {total} rounds done)"
            news = what != self.pace.what
            if news or done < self.pace.done:
                self.runs[what] = self.runs.get(what, 0) + 1
                self.pace = Pace(what, self.clock)
            self.pace.move(done, total)
            if news or self.clock() - self.drawn_at > _EVERY:
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
    def away(self) -> Iterator[None]:
        """Erase the line while other text is printed."""
        with self.lock:
            self.erase()
            yield

    def text(self, width: int) -> str:
        """Return the text of the line, at most `width` characters."""
        pace = self.pace
        again = self.runs[pace.what] > 1 and pace.what != _ROUNDS
        run = f", run {self.runs[pace.what]}" if again else ""
        name, share, left = printable(pace.what) + run + self.rounds, pace.share, pace.left
        facts = [in_words(pace.elapsed)]
        if share is not None:
            facts.insert(0, f"{int(100 * share)}%")
        if left is not None:
            facts.append(f"about {in_words(left)} left")
        told = ", ".join(facts)
        room = min(_BAR, width - len(name) - len(told) - 2)
        parts = [name, _bar(share, pace.elapsed, room, self._full()), told] if room >= _SHORTEST_BAR else [name, told]
        return " ".join(parts)[: max(width, 0)]

    def _full(self) -> tuple[str, str]:
        try:
            "━╌".encode(self.stream.encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            return "#", "-"
        return "━", "╌"

    def _keep_drawing(self) -> None:
        while not self.over.wait(_EVERY):
            self.draw()

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            # The terminal has been closed. Stop drawing, but let the computation continue.
            self.over.set()


def in_words(seconds: float) -> str:
    """Format a duration: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _bar(share: float | None, elapsed: float, width: int, characters: tuple[str, str]) -> str:
    """Return a bar filled to `share`, or one with a segment that moves back and forth if the share is unknown."""
    full, empty = characters
    if share is not None:
        filled = int(share * width)
        return full * filled + empty * (width - filled)
    part = max(width // 5, 1)
    around = 2 * (width - part)
    place = int(elapsed * 10) % around if around else 0
    place = min(place, around - place)
    return empty * place + full * part + empty * (width - part - place)


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
