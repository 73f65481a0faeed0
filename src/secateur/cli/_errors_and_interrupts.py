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
from secateur.cli._terminal import Run, as_current, print_message
from secateur.errors import InterruptedWarning

Command = TypeVar("Command", bound=Callable[..., None])

FAILED, BUG, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 70, 130, 141, 143
EXIT_CODES = "Exit codes: 0 success, 1 an error you can fix, 2 wrong usage, 70 a bug in secateur, 130 interrupted."

_USER_ERRORS = (ValueError, TypeError, OSError, ImportError, MemoryError)
_TYPER_EXCEPTIONS = (typer.Exit, typer.Abort, typer.BadParameter)


class Terminated(SystemExit):
    """Raised on SIGTERM, so that open resources are cleaned up and no partially written file remains."""


def install_sigterm_handler() -> None:
    """Install a SIGTERM handler that raises `Terminated`."""

    def terminate(*_: Any) -> NoReturn:
        raise Terminated(TERMINATED)

    signal.signal(signal.SIGTERM, terminate)


def exit_on_interrupt() -> None:
    """Make Ctrl-C exit immediately until a command runs.

    Nothing has been computed by then, and an import in progress cannot swallow the interruption.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit_interrupted)


def _exit_interrupted(*_: Any) -> NoReturn:
    os.write(2, b"Interrupted; nothing was written.\n")
    os._exit(INTERRUPTED)


def reports_errors(command: Command) -> Command:
    """Decorate a command: print errors, warnings and interruptions as messages, and set the exit code.

    The command must have the options `quiet` and `debug`; the latter shows tracebacks.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        if signal.getsignal(signal.SIGINT) is _exit_interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with as_current(Run(command, kwargs, kwargs["quiet"])) as current, warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = functools.partial(_show_warning, current)
            code = _exit_code(lambda: command(*args, **kwargs), current, kwargs["debug"])
        if code:
            raise typer.Exit(code)

    return run  # type: ignore[return-value]


def _exit_code(work: Callable[[], None], run: Run, debug: bool) -> int:
    """Call `work` and return the exit code."""
    try:
        work()
    except _TYPER_EXCEPTIONS:
        raise
    except BrokenPipeError:
        return discard_stdout()
    except KeyboardInterrupt:
        return _report_interrupt(run)
    except Terminated:
        print_message(f"Terminated; {_output_status(run)}", "yellow")
        return TERMINATED
    except Exception as error:
        if _caused_by_interrupt(error):
            return _report_interrupt(run)
        if debug:
            sys.stderr.write(printable(traceback.format_exc(), keep="\n"))
        return _report_error(error, run)
    if run.interrupted:
        result = "the result" if run.written is None else run.written
        print_message(f"Interrupted; {result} is partial. Run again to get the complete result.", "yellow")
        return INTERRUPTED
    return 0


def _report_interrupt(run: Run) -> int:
    print_message(f"Interrupted; {_output_status(run)}", "yellow")
    return INTERRUPTED


def _caused_by_interrupt(error: BaseException | None) -> bool:
    """Return whether an error was caused by Ctrl-C; during an import Python may wrap it in a RuntimeError."""
    # The chain of causes may contain a cycle.
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__
    return False


def _report_error(error: Exception, run: Run) -> int:
    """Print the message of an error and return the exit code."""
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        text = _explain_os_error(error, run)
    if isinstance(error, MemoryError):
        text = f"Not enough memory ({text}). Pass fewer rows, or a model with fewer trees."
    if not isinstance(error, _USER_ERRORS):
        print_message(
            f"Error: {type(error).__name__}: {text.rstrip('.')}. This is a bug in secateur. "
            "Run again with --debug and report the output.",
            "red",
        )
        return BUG
    if run.interrupted and isinstance(error, ValueError):
        print_message(f"Interrupted; the partial result is not sufficient, and {_output_status(run)} {text}", "yellow")
        return INTERRUPTED
    print_message(f"Error: {text}", "red")
    return FAILED


def _explain_os_error(error: OSError, run: Run) -> str:
    """Return an explanation of an operating system error; secateur's own messages are returned unchanged."""
    reason = str(error.strerror)
    if error.filename is not None:
        return f"Cannot access {error.filename}: {reason.lower()}. Check the name and the permissions."
    if error.errno is None or reason != os.strerror(error.errno):
        return reason
    if run.written is None:
        return f"Cannot write the results: {reason.lower()}. Free disk space, or redirect the output."
    return f"Cannot print the results: {reason.lower()}; {_output_status(run)} Redirect the output, or pass --quiet."


def _output_status(run: Run) -> str:
    return "nothing was written." if run.written is None else f"{run.written} was written."


def _show_warning(run: Run, message: Warning | str, category: type[Warning], *location: Any, **rest: Any) -> None:
    """Replace `warnings.showwarning`: print the message once, without the code location.

    After a first interruption the command continues with the partial result; a second one raises KeyboardInterrupt.
    """
    if issubclass(category, InterruptedWarning):
        if run.interrupted:
            raise KeyboardInterrupt
        run.interrupted = True
        message = f"{message} Continuing with the partial result; press Ctrl-C again to stop immediately."
    if str(message) not in run.warned:
        run.warned.add(str(message))
        print_message(f"Warning: {message}", "yellow")


def discard_stdout() -> int:
    """Redirect stdout to the null device after a broken pipe, and return the exit code.

    Without this, the flush at the end of the program would fail again.
    """
    # stdout may have no file descriptor.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
