"""Ctrl-C at any time returns the partial result or ends the call. Files are complete; later calls are not affected."""

from tests.hardening.alone import alone
from tests.hardening.checks import Figures

LONG = 100
_LIMIT = 3600.0
_MODULE = "tests.hardening.faults.interrupting"


def run(scale: int) -> Figures:
    """Interrupt every call and command `scale` times."""
    rows = []
    for function in ("interrupt_calls", "interrupt_first_calls", "interrupt_commands"):
        rows += alone(_MODULE, function, scale, scale, limit=_LIMIT)
    bad = [text for row in rows for text in row.pop("bad")]
    return Figures(rows, bad, _NOTES)


_NOTES = [
    "The times of the interruptions are random over the duration of a call; those after its end are not counted. "
    "*partial*: the points found so far, with an `InterruptedWarning`; every one of them is, number for number, a "
    "point of the complete path. *whole*: the call had finished, and nothing was lost.",
    "After every interruption the same call was repeated in the same process, and gave the usual result.",
    "*the first call of a process* is interrupted while it loads compiled code.",
    "Commands are interrupted while an old result exists. They exit with 130 and say whether they have written; the "
    "file is then the old one, or a new one that can be loaded, and nothing else is left in the folder.",
]
