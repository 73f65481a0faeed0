"""Ctrl-C at any moment returns what was computed, or ends the call; files are whole, and the next call is as ever."""

from tests.hardening.alone import alone
from tests.hardening.checks import Figures

LONG = 100
_LIMIT = 3600.0
_MODULE = "tests.hardening.faults.interrupting"


def run(scale: int) -> Figures:
    """Interrupt every call and command `scale` times."""
    told = []
    for function in ("interrupt_calls", "interrupt_first_calls", "interrupt_commands"):
        told += alone(_MODULE, function, scale, scale, limit=_LIMIT)
    bad = [text for row in told for text in row.pop("bad")]
    return Figures(told, bad, _NOTES)


_NOTES = [
    "Moments are random over the time a call takes; those after its end are not counted. *partial*: the points found "
    "until then, with an `InterruptedWarning`; every one of them is, number for number, a point of the whole path. "
    "*whole*: nothing was left to do, and nothing was lost.",
    "After every interruption the same call was made again in the same process, and gave what it gives alone.",
    "*the first call of a process* fetches compiled code while it is interrupted.",
    "Commands are interrupted while an old result is in place: they exit with 130, say whether they have written, and "
    "the file is then the old one, or a new one that can be loaded; nothing else stays in the folder.",
]
