"""docs/reliability.md, written from the committed figures."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = Path(__file__).parent / "results"

_HEAD = """# Reliability

A pruned model goes to production unseen. What follows was tried to break it, and what came of it. Each part is a check
in `tests/hardening/checks/`: `make test-all` runs it small, `make harden` at the scale shown here and writes this page.
"""


def read_results() -> dict[str, dict[str, Any]]:
    """Return the figures of every check that has been run at full scale, by name."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))}


def write_page(results: dict[str, dict[str, Any]], checks: Iterable[str]) -> str:
    """Return the page of some figures; it names the checks that have none yet."""
    told = [_HEAD, *(_section(name, figures) for name, figures in results.items())]
    missing = [f"`{name}`" for name in checks if name not in results]
    if missing:
        told.append(f"Not run at full scale yet: {', '.join(missing)}.\n")
    return "\n".join(told)


def _section(name: str, figures: dict[str, Any]) -> str:
    title = name.replace("_", " ").capitalize()
    told = [f"## {title}\n", f"{figures['claim']}\n"]
    if figures["rows"]:
        told.append(_table(figures["rows"]))
    told += [f"* {note}" for note in figures["notes"]]
    ended = "Nothing ended badly." if not figures["bad"] else f"{len(figures['bad'])} ended badly:"
    told += ["", ended, *(f"* {text}" for text in figures["bad"]), "", f"Measured on {figures['measured']}.\n"]
    return "\n".join(told)


def _table(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in names)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
