"""Where a disk is full, writing says so and what to do; the old file is as it was, and nothing half-written stays."""

from tests.hardening.alone import alone, own_mounts
from tests.hardening.checks import Figures

LONG = 20
_LIMIT = 3600.0
_MODULE = "tests.hardening.faults.disks"


def run(scale: int) -> Figures:
    """Write every kind of output with ever more room, in 3 · `scale` steps."""
    n_steps = 3 * scale
    tried = {"largest file allowed": alone(_MODULE, "limit_files", n_steps, limit=_LIMIT)}
    bad: list[str] = []
    if own_mounts():
        tried["room on the disk"] = alone(_MODULE, "fill_disk", n_steps, limit=_LIMIT, before=own_mounts())
        bad += alone(_MODULE, "command_on_full_disk", limit=_LIMIT, before=own_mounts())
    bad += [f"{how}: {text}" for how, rows in tried.items() for row in rows for text in row.pop("bad")]
    rows = [{"limit": how, **row} for how, rows in tried.items() for row in rows]
    return Figures(rows, bad, _NOTES if own_mounts() else _NOTES[:1])


_NOTES = [
    "The room grows in even steps from none to nearly enough; the last attempt has plenty. Every attempt writes a new "
    "model over an old one. *refused*: an `OSError` that names the file, says that the old one is as it was, and what "
    "to do; the bytes of the old one were compared, and the folder holds nothing else.",
    "Also tried: `secateur prune` with its result on a full disk, which exits with 1 and says the same.",
]
