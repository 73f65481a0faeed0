"""What the shell offers when TAB is pressed: names from the tables, columns from the data file.

The tables themselves are not imported, which would take seconds: their source is read.
"""

import csv
import re
from functools import cache
from pathlib import Path

import typer

VALIDATIONS = ("auto", "cv", "none", "oob", "refit")

_PACKAGE = Path(__file__).parents[1]


@cache
def names_in(table: str) -> tuple[str, ...]:
    """Return the names in a table: of the classes in the modules that `solvers`, `losses` or `costs` imports."""
    folder = _PACKAGE / table
    try:
        modules = re.findall(rf"^from secateur\.{table}\.([\w.]+) import", (folder / "__init__.py").read_text(), re.M)
        texts = [folder.joinpath(*module.split(".")).with_suffix(".py").read_text() for module in modules]
    except OSError:
        return ()  # installed without its source
    return tuple(name for text in texts for name in re.findall(r'^    name(?:: [^=]+)? = "(\w+)"', text, re.M))


def solvers(incomplete: str) -> list[str]:
    """Return the solvers that begin so."""
    return _beginning(("auto", *names_in("solvers")), incomplete)


def losses(incomplete: str) -> list[str]:
    """Return the losses that begin so."""
    return _beginning(names_in("losses"), incomplete)


def costs(incomplete: str) -> list[str]:
    """Return the costs that begin so."""
    return _beginning(names_in("costs"), incomplete)


def validations(incomplete: str) -> list[str]:
    """Return the ways to choose that begin so; if there are none the shell offers files."""
    return _beginning(VALIDATIONS, incomplete)


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the first .csv file named so far."""
    named = [ctx.params.get("data"), *ctx.args]  # an option without its value leaves the arguments unread
    data = next((Path(file) for file in named if file and str(file).lower().endswith(".csv")), None)
    if data is None:
        return []
    try:
        with data.open(encoding="utf-8-sig", newline="") as stream:
            return _beginning(next(csv.reader(stream), []), incomplete)
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _beginning(names: tuple[str, ...] | list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]
