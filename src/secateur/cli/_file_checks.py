"""Check the files of `secateur check` and print their reports."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from secateur.cli._errors_and_interrupts import FAILED
from secateur.cli._tables_and_json import grid
from secateur.cli._terminal import stdout

UNCHECKED = 2
"""The exit code if a file cannot be read or is of a kind that cannot be checked."""

_COLOURS = {"ok": "green", "damaged": "red", "runs code": "red"}


def check_files(files: Sequence[Path], move: Callable[[int, int, str], None] | None) -> dict[str, Any]:
    """Return the reports of all files, and the number of each result."""
    reports = []
    for number, file in enumerate(files):
        if move is not None:
            move(number, len(files), "checking")
        reports.append(_check(file))
    statuses = [report["status"] for report in reports]
    return {"files": reports, "counts": {status: statuses.count(status) for status in dict.fromkeys(statuses)}}


def _check(file: Path) -> dict[str, Any]:
    """Return the report of one file; a file that cannot be opened does not end the command."""
    from secateur.files.check import FileReport, check_file

    try:
        return check_file(file).summary()
    except OSError as error:
        reason = f"Cannot access {file}: {(error.strerror or '').lower()}. Check the name and the permissions."
        problem = reason if error.strerror else str(error)
        return FileReport(str(file), "unreadable", runs="not known", problem=problem).summary()


def exit_code(facts: Mapping[str, Any]) -> int:
    """Return 0 if all files passed, 1 if one is damaged or would run code, else 2."""
    found = set(facts["counts"])
    if found & {"damaged", "runs code"}:
        return FAILED
    return UNCHECKED if found - {"ok"} else 0


def print_reports(facts: Mapping[str, Any]) -> None:
    """Print the reports of files, one entry per line."""
    from rich.text import Text

    from secateur._util.text import printable
    from secateur.files.check.file_report import described

    console = stdout()
    for report in facts["files"]:
        status = Text(report["status"], _COLOURS.get(report["status"], "yellow"))
        console.print(Text.assemble((printable(report["file"]), "bold"), ": ", status), soft_wrap=True)
        table = grid("", "", header=False)
        for label, text in described(report):
            table.add_row(label, text)
        console.print(table)
    if len(facts["files"]) > 1:
        console.print(", ".join(f"{count} {status}" for status, count in facts["counts"].items()))
