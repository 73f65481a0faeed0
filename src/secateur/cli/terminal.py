"""The terminal: results go to stdout; errors, warnings and the progress bar go to stderr."""

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rich.console import Console

Command = TypeVar("Command", bound=Callable[..., None])

_PIPED_WIDTH = 120
_USER_ERRORS = (ValueError, TypeError, OSError, ImportError)


def stdout() -> "Console":
    """Return where results are printed; into a pipe, tables are not squeezed to 80 columns."""
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(highlight=False, width=_PIPED_WIDTH if piped else None)


def stderr() -> "Console":
    """Return where everything else is printed."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def plain_messages(command: Command) -> Command:
    """Return the command with errors a user can mend, and warnings, shown as plain sentences.

    The command must have the option `debug`, which shows tracebacks instead.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            try:
                command(*args, **kwargs)
            except _USER_ERRORS as error:
                if kwargs["debug"]:
                    raise
                _say("Error", str(error) or type(error).__name__, "red")
                raise typer.Exit(1) from error

    return run  # type: ignore[return-value]


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar while the block runs, if stderr is a terminal; gives the callback that moves it."""
    console = stderr()
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total, step: bar.update(task, description=step, total=total, completed=done)


def _show_warning(message: Warning | str, *place: Any, **rest: Any) -> None:
    """Stand in for `warnings.showwarning`: the sentence without the place in the code."""
    _say("Warning", str(message), "yellow")


def _say(kind: str, text: str, colour: str) -> None:
    console = stderr()
    console.print(f"{kind}: {' '.join(text.split())}", style=colour, markup=False, soft_wrap=True)
