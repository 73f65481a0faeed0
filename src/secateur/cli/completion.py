"""Complete option values in the shell: names of solvers, losses and costs, and columns of the data file.

Importing the tables of solvers, losses and costs would take seconds, so names are parsed from their source code.
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
    """Return the names in the table `solvers`, `losses` or `costs`, parsed from the modules it imports."""
    folder = _PACKAGE / table
    try:
        modules = re.findall(rf"^from secateur\.{table}\.([\w.]+) import", (folder / "__init__.py").read_text(), re.M)
        texts = [folder.joinpath(*module.split(".")).with_suffix(".py").read_text() for module in modules]
    except OSError:
        # The package is installed without its source.
        return ()
    return tuple(name for text in texts for name in re.findall(r'^    name(?:: [^=]+)? = "(\w+)"', text, re.M))


@cache
def loss_names() -> tuple[str, ...]:
    """Return the names of losses and those of scikit-learn's scorers that are accepted in their place."""
    file = _PACKAGE / "losses" / "aliases.py"
    aliases = re.findall(r'^    "(\w+)": "', file.read_text(), re.M) if file.is_file() else []
    return (*names_in("losses"), *aliases)


def solvers(incomplete: str) -> list[str]:
    """Return the solver names that start with `incomplete`."""
    return _beginning(("auto", *names_in("solvers")), incomplete)


def losses(incomplete: str) -> list[str]:
    """Return the loss names that start with `incomplete`."""
    return _beginning(loss_names(), incomplete)


def costs(incomplete: str) -> list[str]:
    """Return the cost names that start with `incomplete`."""
    return _beginning(names_in("costs"), incomplete)


def validations(incomplete: str) -> list[str]:
    """Return the validation keywords that start with `incomplete`; if there are none, the shell offers files."""
    return _beginning(VALIDATIONS, incomplete)


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the first .csv file on the command line that start with `incomplete`."""
    # While an option lacks its value, positional arguments are not parsed yet and are found in ctx.args.
    named = [ctx.params.get("data"), *ctx.args]
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
