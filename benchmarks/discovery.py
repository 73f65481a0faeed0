"""Discover data sets, methods and tables: every file of datasets/, methods/ and tables/ exposes one."""

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from benchmarks.load import DataSet
from benchmarks.measure import Job
from benchmarks.results import Result

__all__ = ["Method", "Table", "data_sets", "jobs", "methods", "tables"]


@dataclass(frozen=True)
class Method:
    """One method to perform a task; a file of methods/ exposes one as `METHOD`.

    Attributes
    ----------
    name : str
    kind : str
        The kind of task: "path", "leaves", "sums" or "prune". A table runs every method of its kind.
    prepare : callable
        Gets the task of that kind (see `benchmarks/tasks.py`). Returns a `Job`, for the kind "prune" a function from
        a limit to a model, or the reason why this method does not apply.
    """

    name: str
    kind: str
    prepare: Any


@dataclass(frozen=True)
class Table:
    """One benchmark table; a file of tables/ exposes one as `TABLE`.

    Attributes
    ----------
    name : str
    title : str
    run : callable
        Called as `run(quick)`; `quick` selects the smallest sizes that still execute every step.
    """

    name: str
    title: str
    run: Any

    def measure(self, quick: bool) -> Result:
        """Return the rows of the table."""
        result: Result = self.run(quick)
        return result


def data_sets() -> dict[str, DataSet]:
    """Return every data set by name."""
    return _by_name(_found("datasets", "DATA"))


def tables() -> dict[str, Table]:
    """Return every table by name."""
    return _by_name(_found("tables", "TABLE"))


def methods(kind: str) -> dict[str, Method]:
    """Return the methods of one kind by name."""
    return _by_name([method for method in _found("methods", "METHOD") if method.kind == kind])


def jobs(kind: str, task: Any) -> dict[str, Job]:
    """Return the jobs of all methods of a kind that apply to the task."""
    prepared = {name: method.prepare(task) for name, method in methods(kind).items()}
    return {name: job for name, job in prepared.items() if isinstance(job, Job)}


def _found(folder: str, attribute: str) -> list[Any]:
    """Return the objects that the files of a folder expose, in the order of the file names."""
    package = import_module(f"benchmarks.{folder}")
    modules = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return [getattr(import_module(f"{package.__name__}.{name}"), attribute) for name in modules]


def _by_name(found: list[Any]) -> dict[str, Any]:
    names = [item.name for item in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Two files use the name {twice[0]!r}, but names must be unique. Rename one.")
    return dict(zip(names, found, strict=True))
