"""Write docs/reliability.md from the committed figures."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = Path(__file__).parent / "results"

_HEAD = """# Reliability

A pruned model goes into production without further review. This page lists checks that try to break secateur, and their
results. Each section is a check in `tests/hardening/checks/`. `make test-all` runs it at a small scale; `make harden`
runs it at the scale shown here and writes this page.
"""


def read_results() -> dict[str, dict[str, Any]]:
    """Return the figures of every check that has been run at full scale, by name."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))}


def write_page(results: dict[str, dict[str, Any]], checks: Iterable[str]) -> str:
    """Return the text of the page; it names the checks without figures."""
    sections = [_HEAD, *(_section(name, figures) for name, figures in results.items())]
    missing = [f"`{name}`" for name in checks if name not in results]
    if missing:
        sections.append(f"Not run at full scale yet: {', '.join(missing)}.\n")
    return "\n".join(sections)


def _section(name: str, figures: dict[str, Any]) -> str:
    title = name.replace("_", " ").capitalize()
    lines = [f"## {title}\n", f"{figures['claim']}\n"]
    if figures["rows"]:
        lines.append(_table(figures["rows"]))
    lines += [f"* {note}" for note in figures["notes"]]
    failures = "No failures." if not figures["bad"] else f"Failures: {len(figures['bad'])}"
    lines += ["", failures, *(f"* {text}" for text in figures["bad"]), "", f"Measured on {figures['measured']}.\n"]
    return "\n".join(lines)


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
