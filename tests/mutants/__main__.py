"""Try mutants, all or some, and write the table of results: python -m tests.mutants [NAME ...]."""

import argparse
import json
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.apply import ROOT, caught_by, read_table
from tests.mutants.page import PAGE, RESULTS, read_results, write_page


def main() -> int:
    """Try the given mutants, or all, record the test that caught each, and return the number of survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--suite", type=Path, default=ROOT, help="the checkout whose sources and tests are used")
    parser.add_argument("--column", default="now", help="the column of the table to write")
    given = parser.parse_args()
    survivors = 0
    for mutant in read_table():
        if given.names and mutant.name not in given.names:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            test = caught_by(mutant, given.suite.resolve(), Path(folder))
        results = read_results()
        results.setdefault(mutant.name, {})[given.column] = test
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        survivors += test is None
        logging.info("%-55s %4.0f s  %s", mutant.name, time.perf_counter() - began, test or "SURVIVES")
    PAGE.write_text(write_page(read_table(), read_results()))
    return survivors


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(min(main(), 1))
