"""The benchmark pages of the site, made from the committed result files, and the page of changes.

`benchmarks/results/<table>.md` and its pictures become pages of the same names; the index shows each table's title,
what it says of itself first, its targets, and when and on what it was measured, from `<table>.json`.
"""

import json
from pathlib import Path
from typing import Any

from links import rehome
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FOUND_LATE = "---\nsearch:\n  boost: 0.2\n---\n\n"  # tables have many words, and would come first whatever is searched
INTRODUCTION = """# Benchmarks

Every table is made by `make bench` from a result file that is committed with it; losing rows stay in. Methods take
turns and medians count, so *ratios within one table* mean something, and seconds of different tables do not compare.
"""


def on_config(config: Any) -> Any:
    """Put all tables under the entry of the menu that names their index."""
    tables = [{_facts(table)["title"]: f"benchmarks/{table.name}"} for table in sorted(RESULTS.glob("*.md"))]
    pages = ["benchmarks/index.md", *tables]
    config.nav = [{"Benchmarks": pages} if "Benchmarks" in entry else entry for entry in config.nav]
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add a page for each result, its pictures, the index, and the changes."""
    tables = sorted(RESULTS.glob("*.md"))
    for table in tables:
        source, page = f"benchmarks/results/{table.name}", f"benchmarks/{table.name}"
        text = FOUND_LATE + rehome(table.read_text(), source, page)
        files.append(File.generated(config, page, content=text))
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"benchmarks/{picture.name}", abs_src_path=str(picture)))
    files.append(File.generated(config, "benchmarks/index.md", content=index(tables)))
    changes = rehome((ROOT / "CHANGELOG.md").read_text(), "CHANGELOG.md", "changelog.md")
    files.append(File.generated(config, "changelog.md", content=changes))
    return files


def index(tables: list[Path]) -> str:
    """Return the page that lists the tables."""
    lines = [INTRODUCTION, "| table | how it is measured | targets met | date |", "|---|---|---:|---|"]
    for table in tables:
        facts = _facts(table)
        met = [target["met"] for target in facts["targets"]]
        kept = f"{sum(met)} of {len(met)}" if met else "none set"
        note = first_sentence(facts["notes"][0]) if facts["notes"] else ""
        day = facts["machine"]["date"][:10].replace("-", "\u2011")  # hyphens that break no line
        lines.append(f"| [{facts['title']}]({table.name}) | {note} | {kept} | {day} |")
    return "\n".join(lines) + "\n"


def first_sentence(note: str) -> str:
    """Return a note up to its first full stop or semicolon, safe inside a table."""
    ends = [at for at in (note.find(". "), note.find("; ")) if at > 0]
    return (note[: min(ends)] if ends else note).rstrip(".").replace("|", "\\|")


def _facts(table: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(table.with_suffix(".json").read_text())
    return facts
