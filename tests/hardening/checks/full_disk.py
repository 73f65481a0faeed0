"""On a full disk, writing raises an error that says what to do. The old file is unchanged; no partial file is left."""

from tests.hardening.alone import alone, own_mounts
from tests.hardening.checks import Figures

LONG = 20
_LIMIT = 3600.0
_MODULE = "tests.hardening.faults.disks"


def run(scale: int) -> Figures:
    """Write every kind of output with increasing free space, in 3 · `scale` steps."""
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
    "The free space grows in even steps from none to nearly enough; in the last attempt it is sufficient. Every "
    "attempt writes a new model over an old one. *refused*: an `OSError` that names the file, says that the old one "
    "is unchanged, and says what to do; the bytes of the old file were compared, and the folder contains nothing else.",
    "`secateur prune` was also run with its result on a full disk: it exits with 1 and the same message.",
]
