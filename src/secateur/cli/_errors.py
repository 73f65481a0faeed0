"""How a command runs: what it says when it fails or is interrupted, and with which code it exits."""

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
    """SIGTERM came: whatever is open is left as by an error, so that no half-written file stays."""


def end_when_told() -> None:
    """Let SIGTERM end the program as an error does."""

    def terminate(*_: Any) -> NoReturn:
        raise Terminated(TERMINATED)

    signal.signal(signal.SIGTERM, terminate)


def leave_when_interrupted() -> None:
    """Let Ctrl-C end the program at once until a command runs: nothing is lost, and no import can swallow it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: Any) -> NoReturn:
    os.write(2, b"Interrupted; nothing was written.\n")
    os._exit(INTERRUPTED)


def runs(command: Command) -> Command:
    """Return the command with errors, warnings and interruptions told in plain sentences, and exit codes.

    It must have the options `debug`, which shows tracebacks, and `quiet`.
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
    """Do the work and return the exit code."""
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
    """Return whether Ctrl-C is behind an error: Python makes a RuntimeError of one in the midst of an import."""
    seen: set[int] = set()  # an error may be called its own cause
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__
    return False


def _tell(error: Exception, run: Run) -> int:
    """Say what went wrong and return the exit code."""
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
    """Return what a system's error means; those of our own say it themselves."""
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
    """Stand in for `warnings.showwarning`: the sentence without the place in the code.

    Work that was interrupted goes on with what there is; interrupted once more, it ends.
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
    """Let nothing more be written to a pipe nobody reads, not even at the end of the program, and return its code."""
    with suppress(OSError, ValueError):  # where no file is behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
