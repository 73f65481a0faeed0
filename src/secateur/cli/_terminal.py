"""Print to the terminal: results to stdout; errors, warnings and progress to stderr; colours only where supported.

Names from models and files may contain any characters. They are never parsed as markup, and escape codes in them are
neutralised.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur._util.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_PIPED_WIDTH = 120


@dataclass
class Run:
    """State of the running command.

    Attributes
    ----------
    command : callable
    arguments : dict
        The arguments of the command.
    quiet : bool
        Whether to suppress results and progress.
    interrupted : bool
        Whether Ctrl-C stopped the computation early; the result is then partial.
    out : Path or None
        The output file, once writing starts.
    live_console : Console or None
        The console of the progress bar that is shown; it prints messages above the bar.
    warned : set of str
        The warnings already printed; a library may repeat the same warning at every call.
    before : tuple of int, or None
        The identity of the output file before writing, None if it did not exist.
    """

    command: Callable[..., None]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    interrupted: bool = False
    out: Path | None = None
    live_console: "Console | None" = None
    warned: set[str] = field(default_factory=set)
    before: tuple[int, int] | None = None

    def start_writing(self, out: Path) -> None:
        """Record that the result is about to be written to `out`."""
        self.before, self.out = _identity(out), out

    @property
    def written(self) -> Path | None:
        """The output file if it has been written, else None.

        The file system is checked, because Ctrl-C may arrive right after the file was written.
        """
        return self.out if self.out is not None and _identity(self.out) not in (None, self.before) else None


def _identity(file: Path) -> tuple[int, int] | None:
    """Return the inode and modification time of a file, which change when it is replaced; None if it does not exist."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


_runs = [Run(lambda: None)]


def current_run() -> Run:
    """Return the state of the running command."""
    return _runs[-1]


@contextmanager
def as_current(run: Run) -> Iterator[Run]:
    """Make `run` the current command until the block ends."""
    _runs.append(run)
    try:
        yield run
    finally:
        _runs.pop()


def stdout(*, even_if_quiet: bool = False) -> "Console":
    """Return the console for results; in a pipe it is 120 columns wide instead of 80."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    quiet = current_run().quiet and not even_if_quiet
    return _console(width=_PIPED_WIDTH if piped else None, quiet=quiet)


def stderr(file: Any = None) -> "Console":
    """Return the console for errors, warnings and progress; `file` replaces stderr."""
    return _console(stderr=True, file=file)


def print_message(text: str, colour: str) -> None:
    """Print one line to stderr, above the progress bar."""
    from rich.text import Text

    console = current_run().live_console or stderr()
    console.print(Text(printable(" ".join(text.split())), colour), soft_wrap=True)


def colours_wanted(*, terminal: bool) -> bool:
    """Return whether escape codes may be written.

    NO_COLOR and TERM=dumb disable them. Otherwise they are written to terminals, and to other files with FORCE_COLOR.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return terminal or bool(os.environ.get("FORCE_COLOR"))


def _console(**settings: Any) -> "Console":
    """Return a console that writes no styles at all, not even bold text, if colours are disabled."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render_str(self, text: str, **options: Any) -> "Text":
            return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    stream = sys.stderr if settings.get("stderr") else sys.stdout
    coloured = colours_wanted(terminal=stream.isatty())
    if not coloured:
        settings["color_system"] = None
    # Set no_color explicitly: rich 13 treats an empty NO_COLOR as set.
    return _Console(highlight=False, no_color=not coloured, **settings)
