"""Read-only folders are reported before any computation; if nothing can be written, pruning still works."""

import os

from tests.hardening.alone import alone, own_mounts
from tests.hardening.checks import Figures

LONG = 1
_LIMIT = 3600.0
_MODULE = "tests.hardening.faults.disks"


def run(scale: int) -> Figures:
    """Write every kind of output to a read-only folder, and prune where all folders are read-only."""
    ways = (["permissions"] if os.getuid() else []) + (["read-only mount"] if own_mounts() else [])
    rows, bad = [], []
    for way in ways:
        before = own_mounts() if way == "read-only mount" else ()
        found = alone(_MODULE, "write_where_nothing_may_be", way, limit=_LIMIT, before=before)
        bad += [text for row in found for text in row.pop("bad")]
        rows += [{"folder": way, **row} for row in found]
    if own_mounts():
        there = alone(_MODULE, "prune_where_nothing_may_be", limit=_LIMIT, before=own_mounts(), HOME="/nowhere")
        here = alone(_MODULE, "pruned_models", limit=_LIMIT)
        bad += [f"{name}: pruned otherwise where nothing may be written" for name in here if here[name] != there[name]]
        rows += [{"folder": "the whole machine", "what": f"pruning {name}", "the same": 1} for name in here]
    return Figures(rows, bad, _NOTES)


_NOTES = [
    "*refused*: a `PermissionError` that names the folder and says what to do; the old file is unchanged, and the "
    "folder contains nothing else. Root is refused only by read-only mounts.",
    "*the whole machine*: every disk is mounted read-only, including the folders of the package, the home folder and "
    "those for temporary files, so compiled code cannot be cached. The pruned models are the usual ones, number for "
    "number; only compiling takes additional seconds.",
]
