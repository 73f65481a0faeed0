"""The terminal: results go to stdout; errors, warnings and progress go to stderr; colours only where wanted.

Names from models and files may hold anything. None is taken for markup, and none writes an escape code.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from secateur.showing import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_PIPED_WIDTH = 120


class Line(Protocol):
    """A line at the bottom of the terminal that is drawn again and again."""

    def away(self) -> AbstractContextManager[None]:
        """Take it away while something else is printed."""


@dataclass
class Run:
    """What is known of the command that runs.

    Attributes
    ----------
    quiet : bool
        Whether results and progress are left out.
    interrupted : bool
        Whether Ctrl-C cut short what is computed; the result is then a partial one.
    written : Path or None
        The result, once it is there.
    line : Line or None
        What the terminal shows at its bottom just now.
    """

    quiet: bool = False
    interrupted: bool = False
    written: Path | None = None
    line: Line | None = None


_runs = [Run()]


def current() -> Run:
    """Return the command that runs."""
    return _runs[-1]


@contextmanager
def begun(run: Run) -> Iterator[Run]:
    """Make a command the one that runs, until the block ends."""
    _runs.append(run)
    try:
        yield run
    finally:
        _runs.pop()


def stdout(*, even_if_quiet: bool = False) -> "Console":
    """Return where results are printed; into a pipe, tables are not squeezed to 80 columns."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    quiet = current().quiet and not even_if_quiet
    return _console(width=_PIPED_WIDTH if piped else None, quiet=quiet)


def stderr() -> "Console":
    """Return where everything else is printed."""
    return _console(stderr=True)


def say(text: str, colour: str) -> None:
    """Print one line on stderr, above the progress."""
    line = current().line
    with line.away() if line is not None else nullcontext():
        stderr().print(" ".join(text.split()), style=colour, soft_wrap=True)


def colours_wanted(*, terminal: bool) -> bool:
    """Return whether escape codes may be written: not with NO_COLOR, and not to files without FORCE_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return terminal or bool(os.environ.get("FORCE_COLOR"))


def _console(**settings: Any) -> "Console":
    """Return a console without any escape codes, bold ones included, where colours are not wanted."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render_str(self, text: str, **options: Any) -> "Text":
            return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    stream = sys.stderr if settings.get("stderr") else sys.stdout
    if not colours_wanted(terminal=stream.isatty()):
        settings["color_system"] = None
    return _Console(highlight=False, **settings)
