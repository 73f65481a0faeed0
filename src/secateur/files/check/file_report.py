"""Define the result of checking a model file."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from secateur._util.text import printable, shortened
from secateur.errors import InvalidInputError, SecateurError, UnsupportedFileError, UnsupportedModelError

Status = Literal["ok", "damaged", "runs code", "unsupported", "unreadable"]

NOTHING = "nothing"
"""What a format of plain numbers and texts runs when it is loaded."""

_UNSUPPORTED = (UnsupportedFileError, UnsupportedModelError, InvalidInputError)
_SHOWN_NAMES, _MAX_NAME = 10, 200


@dataclass(frozen=True)
class FileReport:
    """Report what a model file is, whether its content is valid, and what it would run when loaded.

    Attributes
    ----------
    file : str
    status : str
        "ok": all checks passed. "damaged": a check failed. "runs code": loading calls something that no tree model
        needs. "unsupported": secateur cannot check such a file, or needs a library that is not installed.
        "unreadable": the file cannot be opened.
    format : str
        The format of the file, such as "LightGBM text".
    library, version : str or None
        The library that wrote the model, and its version; None if the file does not record it.
    trees, nodes, leaves, features, outputs : int or None
        Sizes of the model; None if they are not known without loading the file.
    objective : str or None
        The training objective as the library names it; None if the file does not record it.
    runs : str
        What loading the file runs.
    names : tuple of str
        The types and functions that loading imports or calls; empty for formats that name none.
    unknown : tuple of str
        Those of `names` that no tree model needs.
    problem : str or None
        What was found, what is needed and what to do; None for "ok".
    warnings : tuple of str
        Valid but unusual facts.
    """

    file: str
    status: Status = "ok"
    format: str = "unknown"
    library: str | None = None
    version: str | None = None
    trees: int | None = None
    nodes: int | None = None
    leaves: int | None = None
    features: int | None = None
    outputs: int | None = None
    objective: str | None = None
    runs: str = NOTHING
    names: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    problem: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return self.status == "ok"

    def summary(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in facts.items()}

    def __str__(self) -> str:
        lines = [f"{label}: {text}" for label, text in described(self.summary())]
        return "\n".join([f"{printable(self.file)}: {self.status}", *lines])


def failed(report: FileReport, error: Exception) -> FileReport:
    """Return the report of a file whose check raised an error."""
    if isinstance(error, (*_UNSUPPORTED, ImportError)):
        return replace(report, status="unsupported", problem=str(error))
    if isinstance(error, SecateurError):
        return replace(report, status="damaged", problem=str(error))
    text = str(error).strip().partition("\n")[0]
    problem = (
        f"{report.file} cannot be read as {report.format} ({type(error).__name__}: {text[:200]}). A complete file is "
        "needed. Copy it again, or save the model again."
    )
    return replace(report, status="damaged", problem=problem)


def described(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the known entries of a summary as (label, text), in the order in which they are shown."""
    version = f" {summary['version']}" if summary["version"] else ""
    rows = [("format", summary["format"])]
    if summary["library"]:
        rows.append(("library", f"{summary['library']}{version}"))
    for name in ("trees", "nodes", "leaves", "features", "outputs"):
        if summary[name] is not None:
            rows.append((name, f"{summary[name]:,}"))
    if summary["objective"]:
        rows.append(("objective", summary["objective"]))
    rows.append(("runs when loaded", summary["runs"]))
    for name, label in (("names", "names"), ("unknown", "unknown names")):
        if summary[name]:
            rows.append((label, _listed(summary[name])))
    if summary["problem"]:
        rows.append(("problem", summary["problem"]))
    rows += [("warning", text) for text in summary["warnings"]]
    return [(label, printable(text)) for label, text in rows]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(shortened(name, _MAX_NAME) for name in names[:_SHOWN_NAMES]) + more
