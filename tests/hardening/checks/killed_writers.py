"""A process killed while writing leaves a complete file, old or new, and nothing that disturbs the next writer."""

from tests.hardening.alone import alone
from tests.hardening.checks import Figures

LONG = 100
_LIMIT = 3600.0


def run(scale: int) -> Figures:
    """Kill writers of every kind of output, `scale` times at random times and as often at random calls."""
    rows = alone("tests.hardening.faults.killing", "kill_writers", scale, scale, limit=_LIMIT)
    bad = [text for row in rows for text in row.pop("bad")]
    if not any(row.get("while writing") for row in rows):
        bad.append("no writer was killed while it wrote")
    return Figures(rows, bad, _NOTES)


_NOTES = [
    "Half of the kills (SIGKILL) come from outside at a random time, while a process writes the old and the new file "
    "in turn. The other half come from within, just before or after a call of a C function: of any, or of one that "
    "accesses the disk.",
    "*while writing*: a temporary file or folder was left, `.name.….part`. If the kill came before it was created, or "
    "after it had been renamed, there is none.",
    "After every kill the file was loaded and compared, number for number, with the old and the new one. Then, as if "
    "two hours later, it was written again, which must succeed and remove what the killed writer had left.",
]
