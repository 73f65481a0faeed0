"""Generate the benchmark pages of the site from the committed result files, and the page of changes.

`benchmarks/results/<table>.md` and its pictures become pages of the same names. The index lists each table's title, the
first sentence of its notes, the targets met and the date, from `<table>.json`.
"""

import json
from pathlib import Path
from typing import Any

from links import rehome
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
# Tables contain so many words that they would otherwise come first in every search.
LOW_SEARCH_RANK = "---\nsearch:\n  boost: 0.2\n---\n\n"
INTRODUCTION = """# Benchmarks

`make bench` generates every table from a result file that is committed with it, including unfavourable results. Methods
alternate and medians are reported, so *ratios within one table* are meaningful; times of different tables are not
comparable.
"""


def on_config(config: Any) -> Any:
    """Add all tables to the navigation, below their index."""
    tables = [{_facts(table)["title"]: f"benchmarks/{table.name}"} for table in sorted(RESULTS.glob("*.md"))]
    pages = ["benchmarks/index.md", *tables]
    config.nav = [{"Benchmarks": pages} if "Benchmarks" in entry else entry for entry in config.nav]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for each table, the pictures, the index and the page of changes."""
    tables = sorted(RESULTS.glob("*.md"))
    for table in tables:
        source, page = f"benchmarks/results/{table.name}", f"benchmarks/{table.name}"
        text = LOW_SEARCH_RANK + rehome(table.read_text(), source, page)
        files.append(File.generated(config, page, content=text))
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"benchmarks/{picture.name}", abs_src_path=str(picture)))
    files.append(File.generated(config, "benchmarks/index.md", content=index(tables)))
    changes = rehome((ROOT / "CHANGELOG.md").read_text(), "CHANGELOG.md", "changelog.md")
    files.append(File.generated(config, "changelog.md", content=changes))
    policy = rehome((ROOT / "SECURITY.md").read_text(), "SECURITY.md", "security.md")
    files.append(File.generated(config, "security.md", content=policy))
    return files


def index(tables: list[Path]) -> str:
    """Return the page that lists the tables."""
    lines = [INTRODUCTION, "| table | how it is measured | targets met | date |", "|---|---|---:|---|"]
    for table in tables:
        facts = _facts(table)
        met = [target["met"] for target in facts["targets"]]
        targets = f"{sum(met)} of {len(met)}" if met else "none set"
        note = first_sentence(facts["notes"][0]) if facts["notes"] else ""
        # Non-breaking hyphens keep the date on one line.
        day = facts["machine"]["date"][:10].replace("-", "\u2011")
        lines.append(f"| [{facts['title']}]({table.name}) | {note} | {targets} | {day} |")
    return "\n".join(lines) + "\n"


def first_sentence(note: str) -> str:
    """Return a note up to its first full stop or semicolon, safe inside a table."""
    ends = [at for at in (note.find(". "), note.find("; ")) if at > 0]
    return (note[: min(ends)] if ends else note).rstrip(".").replace("|", "\\|")


def _facts(table: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(table.with_suffix(".json").read_text())
    return facts
