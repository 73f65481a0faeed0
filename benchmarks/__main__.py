"""Run benchmark tables and write their result files: `python -m benchmarks [table …]`."""

import argparse
import json
import time
from pathlib import Path

from benchmarks import machine, results
from benchmarks.discovery import tables

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> None:
    """Run the given tables, or all."""
    known = tables()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure secateur on this machine.")
    parser.add_argument("table", nargs="*", help=f"tables to run (default: all): {', '.join(known)}")
    parser.add_argument("--list", action="store_true", help="say what the tables are and how long they took")
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, to check that everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.table) - set(known))
    if unknown:
        parser.error(f"no table {', '.join(unknown)}; known are {', '.join(known)}")
    if chosen.quick and chosen.out == RESULTS:
        parser.error("a quick run measures nothing and must not overwrite the results; pass another folder with --out")
    for name in chosen.table or known:
        if chosen.list:
            print(describe(name))
        else:
            run(name, chosen.out, chosen.quick)


def describe(name: str) -> str:
    """Return the name and title of a table and how long its last full run took, if that is recorded."""
    file = RESULTS / f"{name}.json"
    minutes = json.loads(file.read_text())["machine"].get("minutes") if file.exists() else None
    took = "not recorded" if minutes is None else f"{minutes:g} min"
    return f"{name:24} {took:>12}  {tables()[name].title}"


def run(name: str, folder: Path, quick: bool) -> None:
    """Run one table and print its page."""
    table = tables()[name]
    print(describe(name), flush=True)
    facts, start = machine.facts(), time.perf_counter()
    result = table.measure(quick)
    facts["minutes"] = round((time.perf_counter() - start) / 60, 1)
    page = results.write(folder, name, table.title, result, facts, quick)
    print(page.read_text(), flush=True)


if __name__ == "__main__":
    main()
