"""Run checks at full scale and write figures and page: python -m tests.hardening [NAME or NAME=SCALE ...]."""

import json
import logging
import sys
import time
from dataclasses import asdict

from benchmarks.machine import facts
from tests.hardening.checks import checks
from tests.hardening.page import PAGE, RESULTS, read_results, write_page


def main(names: list[str]) -> int:
    """Run the given checks, or all, and return the number of checks with failures; `NAME=SCALE` is another scale."""
    RESULTS.mkdir(exist_ok=True)
    known, failed = checks(), 0
    for wanted in names or known:
        name, _, scale = wanted.partition("=")
        began = time.perf_counter()
        found = known[name].run(int(scale or known[name].LONG))
        machine = facts()
        result = {
            "claim": " ".join(known[name].__doc__.split("\n\n")[0].split()),
            **asdict(found),
            "measured": f"{machine['date'][:10]}, {machine['cores']} cores, {machine['commit']}",
        }
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
        failed += bool(found.bad)
        logging.info("%s: %d bad, %.0f s", name, len(found.bad), time.perf_counter() - began)
    PAGE.write_text(write_page(read_results(), known))
    return failed


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(min(main(sys.argv[1:]), 1))
