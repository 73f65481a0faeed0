"""Run commands: convert errors, warnings and signals to messages on stderr and exit codes."""

import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import typer

from secateur._util.text import printable
from secateur.cli._terminal import Run, begun, say
from secateur.errors import InterruptedWarning

Command = TypeVar("Command", bound=Callable[..., None])

FAILED, DEFECT, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 70, 130, 141, 143
EXIT_CODES = "Exit codes: 0 fine, 1 an error you can mend, 2 wrong usage, 70 a defect of secateur, 130 interrupted."

_USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)
_TYPERS_OWN = (typer.Exit, typer.Abort, typer.BadParameter)


class Terminated(SystemExit):
    """Raised on SIGTERM, so that open resources are cleaned up and no partially written file remains."""


def end_when_told() -> None:
    """Install a SIGTERM handler that raises `Terminated`."""

    def terminate(*_: Any) -> NoReturn:
        raise Terminated(TERMINATED)

    signal.signal(signal.SIGTERM, terminate)


def leave_when_interrupted() -> None:
    """Make Ctrl-C exit immediately until a command runs.

    Nothing has been computed by then, and an import in progress cannot swallow the interruption.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: Any) -> NoReturn:
    os.write(2, b"Interrupted; nothing was written.\n")
    os._exit(INTERRUPTED)


def runs(command: Command) -> Command:
    """Wrap a command: report errors, warnings and interruptions as plain sentences, and set the exit code.

    The command must have the options `quiet` and `debug`; the latter shows tracebacks.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with begun(Run(command, kwargs, kwargs["quiet"])) as here, warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = functools.partial(_show_warning, here)
            code = _attempt(lambda: command(*args, **kwargs), here, kwargs["debug"])
        if code:
            raise typer.Exit(code)

    return run  # type: ignore[return-value]


def _attempt(work: Callable[[], None], run: Run, debug: bool) -> int:
    """Call `work` and return the exit code."""
    try:
        work()
    except _TYPERS_OWN:
        raise
    except BrokenPipeError:
        return forget_stdout()
    except KeyboardInterrupt:
        return _interrupted(run)
    except Terminated:
        say(f"Terminated; {_what_is_left(run)}", "yellow")
        return TERMINATED
    except Exception as error:
        if _comes_of_interruption(error):
            return _interrupted(run)
        if debug:
            sys.stderr.write(printable(traceback.format_exc(), keep="\n"))
        return _tell(error, run)
    if run.interrupted:
        made = "the result is" if run.written is None else f"{run.written} is"
        say(f"Interrupted; {made} made from what was computed until then. Run again for the whole.", "yellow")
        return INTERRUPTED
    return 0


def _interrupted(run: Run) -> int:
    say(f"Interrupted; {_what_is_left(run)}", "yellow")
    return INTERRUPTED


def _comes_of_interruption(error: BaseException | None) -> bool:
    """Return whether an error was caused by Ctrl-C; during an import Python may wrap it in a RuntimeError."""
    # The chain of causes may contain a cycle.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__
    return False


def _tell(error: Exception, run: Run) -> int:
    """Print the message of an error and return the exit code."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = _in_words(error, run)
    if isinstance(error, MemoryError):
        text = f"The memory does not suffice ({text}). Pass fewer rows, or a model with fewer trees."
    if not isinstance(error, _USER_ERRORS):
        say(
            f"Error: {type(error).__name__}: {text.rstrip('.')}: this is a defect of secateur. "
            "Run again with --debug and report what it shows.",
            "red",
        )
        return DEFECT
    if run.interrupted and isinstance(error, ValueError):
        say(f"Interrupted; what was computed until then does not suffice, and {_what_is_left(run)} {text}", "yellow")
        return INTERRUPTED
    say(f"Error: {text}", "red")
    return FAILED


def _in_words(error: OSError, run: Run) -> str:
    """Return an explanation of an operating system error; secateur's own messages are returned unchanged."""
    said = str(error.strerror)
    if error.filename is not None:
        return f"{error.filename} cannot be used: {said.lower()}. Check the name and the permissions."
    if error.errno is None or said != os.strerror(error.errno):
        return said
    if run.written is None:
        return f"{said}: a file, or what is printed, cannot be written. Make room, or print to another place."
    return f"Results cannot be printed: {said.lower()}; {_what_is_left(run)} Print them elsewhere, or pass --quiet."


def _what_is_left(run: Run) -> str:
    return "nothing was written." if run.written is None else f"{run.written} was written."


def _show_warning(run: Run, message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
    """Replace `warnings.showwarning`: print the message once, without the code location.

    After a first interruption the command continues with the partial result; a second one raises KeyboardInterrupt.
    """
    if issubclass(category, InterruptedWarning):
        if run.interrupted:
            raise KeyboardInterrupt
        run.interrupted = True
        message = f"{message} Going on with these; press Ctrl-C again to stop at once."
    if str(message) not in run.warned:
        run.warned.add(str(message))
        say(f"Warning: {message}", "yellow")


def forget_stdout() -> int:
    """Redirect stdout to the null device after a broken pipe, and return the exit code.

    Without this, the flush at the end of the program would fail again.
    """
    # stdout may have no file descriptor.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
