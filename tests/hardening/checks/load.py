"""Ten million rows in a file and ten million nodes in a model need no more memory than documented, and the time grows
no faster than about in proportion to their number.
"""

from typing import Any

from benchmarks.measure import growth
from tests.hardening.alone import alone
from tests.hardening.checks import Figures
from tests.hardening.loading import MODELS, N_FEATURES, TREES

LONG = 1000
"""The largest of three sizes, in units of ten thousand rows or nodes."""
_EACH = 10_000
_PER_ROW, _BESIDES = 72, 300e6
"""Bytes documented in docs/ensembles.md: per row besides one per tree, and for the batch being read."""
_STEEPEST = 1.5
"""Largest exponent of the growth of time; a step over all pairs has 2."""
_LIMIT = 3600.0
_MODULE = "tests.hardening.loading"


def run(scale: int) -> Figures:
    """Prune on up to `scale` times ten thousand rows, and models of up to as many nodes."""
    figures = Figures([], notes=_NOTES)
    sizes = [_EACH * scale] if scale == 1 else [_EACH * scale // part for part in (100, 10, 1)]
    tasks = [("prune_rows", solver) for solver in ("weakest_link", "block_descent")]
    tasks += [("prune_nodes", kind) for kind in MODELS]
    calls = [[*task, size] for task in tasks for size in sizes]
    # Separate processes, because memory is not returned.
    batches = [calls] if scale == 1 else [[call] for call in calls]
    found = iter([row for batch in batches for row in alone(_MODULE, "measure", batch, limit=_LIMIT)])
    for function, name in tasks:
        rows = [{"size": size, **next(found)} for size in sizes]
        if function == "prune_nodes":
            _add(figures, f"nodes of {name}", rows)
            continue
        _add(figures, f"rows of a parquet file, {name}", rows)
        figures.bad += [f"{row['size']} rows, {name}: {row['bytes']} bytes" for row in rows if _takes_more(row)]
    return figures


_NOTES = [
    f"Rows: a file with {N_FEATURES} numeric columns is read in batches to prune {TREES} trees of depth 6 by "
    "WeakestLink and by BlockDescent with five penalties; the model and compiled code are loaded before. The "
    f"documented limit is one byte per row and tree, {_PER_ROW} more bytes per row, y included, and "
    f"{_BESIDES / 1e6:.0f} MB for the batch being read. Up to 100,000 rows the path was compared with that of the same "
    "rows in memory.",
    f"Nodes: a saved model of {TREES} trees (for LightGBM as many trees of 2000 leaves as needed) is read, pruned to a "
    "tenth by WeakestLink with 2000 rows, and written. The written model is read again; its splits and values equal, "
    "number for number, those that were chosen.",
    "*growth*: the exponent b of seconds (or bytes) = c · sizeᵇ over the sizes; more than 1.5 for seconds is a "
    "failure.",
]


def _takes_more(row: dict[str, Any]) -> bool:
    """Return whether rows took more bytes than documented."""
    return bool(row["bytes"] > row["size"] * (TREES + _PER_ROW) + _BESIDES)


def _add(figures: Figures, what: str, found: list[dict[str, Any]]) -> None:
    """Add a row per size, one for the growth of time and memory, and the failures."""
    for row in found:
        measured = {"seconds": row["seconds"], "MB": row["bytes"] / 1e6, "bytes each": row["bytes"] / row["size"]}
        figures.rows.append({"what": what, "how many": row["size"], **measured})
        figures.bad += [f"{row['size']} {what}: {text}" for text in row["wrong"]]
    if len(found) < 2:
        return
    steep = {
        name: growth([row["size"] for row in found], [row[name] for row in found]) for name in ("seconds", "bytes")
    }
    figures.rows.append({"what": what, "how many": "growth", "seconds": steep["seconds"], "MB": steep["bytes"]})
    if steep["seconds"] is None or steep["seconds"] > _STEEPEST:
        figures.bad.append(f"{what}: seconds grow with the power {steep['seconds']}")
