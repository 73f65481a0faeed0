"""The terminal: results go to stdout; errors, warnings and progress go to stderr; colours only where wanted.

Names from models and files may hold anything. None is taken for markup, and none writes an escape code.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from secateur._util.text import printable

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
    verb : callable
        The command.
    given : dict
        Its arguments.
    quiet : bool
        Whether results and progress are left out.
    interrupted : bool
        Whether Ctrl-C cut short what is computed; the result is then a partial one.
    out : Path or None
        Where the result goes, once it is about to be written.
    line : Line or None
        What the terminal shows at its bottom just now.
    warned : set of str
        What it has warned of; a library may say the same at every call.
    """

    verb: Callable[..., None]
    given: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    interrupted: bool = False
    out: Path | None = None
    line: Line | None = None
    warned: set[str] = field(default_factory=set)
    before: tuple[int, int] | None = None

    def writes(self, out: Path) -> None:
        """Note that the result is about to be written."""
        self.before, self.out = _identity(out), out

    @property
    def written(self) -> Path | None:
        """The result, once it is there: asked of the disk, as Ctrl-C may come just after it was written."""
        return self.out if self.out is not None and _identity(self.out) not in (None, self.before) else None


def _identity(file: Path) -> tuple[int, int] | None:
    """Return what differs between a file and one that has taken its place; None if there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


_runs = [Run(lambda: None)]


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
    if not (wanted := colours_wanted(terminal=stream.isatty())):
        settings["color_system"] = None
    return _Console(highlight=False, no_color=not wanted, **settings)  # rich 13 takes an empty NO_COLOR for a wish
