"""Run benchmark tables and write their result files: `python -m benchmarks [table …]`."""

import argparse
from pathlib import Path

from benchmarks import machine, results
from benchmarks.discovery import tables

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: list[str] | None = None) -> None:
    """Run the given tables, or all."""
    known = tables()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure secateur on this machine.")
    parser.add_argument("table", nargs="*", help=f"tables to run (default: all): {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, to check that everything runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the result files")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.table) - set(known))
    if unknown:
        parser.error(f"no table {', '.join(unknown)}; known are {', '.join(known)}")
    if chosen.quick and chosen.out == RESULTS:
        parser.error("a quick run measures nothing and must not overwrite the results; pass another folder with --out")
    for name in chosen.table or known:
        run(name, chosen.out, chosen.quick)


def run(name: str, folder: Path, quick: bool) -> None:
    """Run one table and print its page."""
    table = tables()[name]
    print(f"{name}: {table.title} …", flush=True)
    facts = machine.facts()
    page = results.write(folder, name, table.title, table.measure(quick), facts, quick)
    print(page.read_text(), flush=True)


if __name__ == "__main__":
    main()
