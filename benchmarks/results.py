"""Write the result of a table: a JSON file with all data, and a Markdown page generated from it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """A target and the measured value; `measured` is None if it could not be measured."""

    what: str
    measured: float | None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if it was not measured."""
        if self.measured is None:
            return None
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= self.measured <= high


@dataclass(frozen=True)
class Result:
    """The outcome of one table.

    Attributes
    ----------
    rows : list of dict
        Flat, JSON values.
    repeats : int
        Number of measurements of each item; the median is reported unless a note states otherwise.
    notes : list of str
        The definition of the comparison.
    targets : list of Target
    findings : list of dict
        Summary rows of the table.
    skipped : list of str
        Omitted items with reasons.
    picture : bytes, optional
        A PNG file.
    """

    rows: list[Row]
    repeats: int
    notes: list[str]
    targets: list[Target] = field(default_factory=list)
    findings: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    picture: bytes | None = None


def write(folder: Path, name: str, title: str, result: Result, machine: dict[str, Any], quick: bool) -> Path:
    """Write `<name>.json`, `<name>.md` and, if there is one, the picture `<name>.png`; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    if result.picture is not None:
        (folder / f"{name}.png").write_bytes(result.picture)
    record = {
        "table": name,
        "title": title,
        "quick": quick,
        **asdict(result),
        "targets": [{**asdict(target), "met": target.met} for target in result.targets],
        "picture": None if result.picture is None else f"{name}.png",
        "machine": machine,
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")
    page = folder / f"{name}.md"
    page.write_text(as_page(json.loads((folder / f"{name}.json").read_text())))
    return page


def as_page(record: dict[str, Any]) -> str:
    """Return a record as Markdown."""
    lines = [f"# {record['title']}", ""]
    if record["quick"]:
        lines += ["**Quick run on tiny sizes: these numbers are meaningless.**", ""]
    lines += [f"Each item was measured {record['repeats']} time(s). Only ratios within this run are meaningful.", ""]
    lines += [f"* {note}" for note in record["notes"]]
    if record["targets"]:
        lines += ["", *_grid([_target_row(target) for target in record["targets"]])]
    lines += ["", *_grid(record["rows"])]
    if record["findings"]:
        lines += ["", *_grid(record["findings"])]
    if record.get("picture"):
        lines += ["", f"![{record['title']}]({record['picture']})"]
    if record["skipped"]:
        lines += ["", "Omitted:", "", *(f"* {reason}" for reason in record["skipped"])]
    lines += ["", _machine_line(record["machine"])]
    return "\n".join(lines) + "\n"


def _target_row(target: dict[str, Any]) -> Row:
    bound = [f"≥ {target['at_least']:g}"] if target["at_least"] is not None else []
    bound += [f"≤ {target['at_most']:g}"] if target["at_most"] is not None else []
    met = {True: "yes", False: "**no**", None: "not measured"}[target["met"]]
    return {"target": target["what"], "wanted": ", ".join(bound), "measured": target["measured"], "met": met}


def _grid(rows: list[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {name: all(isinstance(row.get(name), int | float | None) for row in rows) for name in names}
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |"]
    lines += ["|" + "|".join("---:" if numeric[name] else "---" for name in names) + "|"]
    return lines + ["| " + " | ".join(_cell(row.get(name)) for name in names) + " |" for row in rows]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _machine_line(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    took = f"; took {machine['minutes']:g} min" if "minutes" in machine else ""
    return (
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['platform']}; "
        f"Python {machine['python']}, {versions}; code at {machine['commit']}; "
        f"load average before the run {machine['load_average_before']}; {machine['date']}{took}."
    )
