"""Define the command line application, its entry point, and the decorator that registers commands."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from secateur._util.text import printable
from secateur.cli._errors_and_interrupts import (
    EXIT_CODES,
    FAILED,
    Command,
    discard_stdout,
    exit_on_interrupt,
    install_sigterm_handler,
    reports_errors,
)
from secateur.cli._terminal import colours_wanted, print_message, stdout


class _Group(TyperGroup):
    """Command group that makes typer's messages about unknown arguments printable."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _printable_messages():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with _printable_messages():
            return super().invoke(ctx)


@contextmanager
def _printable_messages() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message") and isinstance(getattr(error, "message", None), str):
            error.message = printable(error.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    name="secateur",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)


def main() -> None:
    """Run the command line."""
    install_sigterm_handler()
    exit_on_interrupt()
    for name in ("stdout", "stderr"):
        # The parent process may have closed the stream.
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if not colours_wanted(terminal=sys.stdout.isatty()):
        # Otherwise --help would be bold with NO_COLOR, and coloured in some pipes.
        os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"
    try:
        app(prog_name="secateur")
    except BrokenPipeError:
        sys.exit(discard_stdout())
    # Raised by --help and --version; commands report their own errors.
    except OSError as error:
        print_message(f"Error: Cannot print to stdout: {error.strerror}. Redirect the output.", "red")
        sys.exit(FAILED)


def register_command(command: Command) -> Command:
    """Register a function as a command; it must have the options `quiet` and `debug`."""
    register: Callable[[Command], Command] = app.command(epilog=EXIT_CODES)
    return register(reports_errors(command))


def _print_version(requested: bool) -> None:
    if requested:
        from secateur import __version__

        stdout().print(f"secateur {__version__}")
        raise typer.Exit


@app.callback()
def secateur(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Prune trained decision trees and tree ensembles into smaller models of the same type."""
