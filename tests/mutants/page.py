"""The table of mutants and of the tests that catch them."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.apply import Mutant

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent / "results.md"
Results = dict[str, dict[str, str | None]]


def read_results() -> Results:
    """Return for each mutant the test that caught it, by suite: "old" before the suite was made fast, and "now"."""
    found: Results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def write_page(mutants: Sequence[Mutant], results: Results) -> str:
    """Return the table in Markdown."""
    old, now = (sum(bool(results.get(m.name, {}).get(column)) for m in mutants) for column in ("old", "now"))
    tried = sum("old" in results.get(mutant.name, {}) for mutant in mutants)
    lines = [
        "# Mutants",
        "",
        f"{len(mutants)} defects, applied one at a time to a copy of the sources and tried on the tests of their "
        f"folder and the contracts. The suite before it was made fast (19,125 tests) caught {old} of the {tried} "
        f"that were tried on it, the suite now catches {now}. `make mutants` writes this page.",
        "",
        "| mutant | folder | defect | before | caught now by |",
        "|---|---|---|---|---|",
    ]
    for mutant in mutants:
        found = results.get(mutant.name, {})
        test = f"`{found['now'].partition('::')[2].replace('|', '/')}`" if found.get("now") else "**survives**"
        before = "not tried" if "old" not in found else "caught" if found["old"] else "survived"
        lines.append(f"| {mutant.name} | {mutant.folder} | {mutant.defect} | {before} | {test} |")
    return "\n".join(lines) + "\n"
