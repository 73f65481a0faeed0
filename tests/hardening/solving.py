"""List the solvers to check, compute their paths or errors, and compare paths."""

import hashlib
import warnings
from typing import Any

import numpy as np

import secateur as sc
from secateur.path import Path
from secateur.solvers import SOLVERS, Solver

COMPARED = {"penalty", "n_nodes", "n_leaves", "n_trees", "n_features", "depth", "cost", "risk", "objective"}


def all_solvers(scale: int) -> list[Solver]:
    """Return every solver of the table; beyond scale 1 also with the settings of its contract tests."""
    usual = [solver() for solver in SOLVERS.values()]
    if scale == 1:
        return usual
    from tests.contracts.test_solvers import VARIANTS  # imports every library

    return usual + VARIANTS


def found_path(solver: Solver, model: Any, X: Any, y: Any = None, **options: Any) -> Path | str:
    """Return the path, or the message of the error that refuses it; other exceptions are raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about what rows were passed; numbers that overflow are heard
        try:
            return sc.prune_path(model, X, y, solver=solver, **options)
        except ValueError as error:
            return str(error)


def is_clear(refusal: str) -> bool:
    """Return whether a message is one or more sentences, not the message of a library or the text of an array."""
    strange = ("broadcast", "operands", "Traceback", "dtype(", "not supported between")
    return refusal.endswith(".") and len(refusal.split()) > 5 and not any(word in refusal for word in strange)


def fingerprint(path: Path) -> str:
    """Return a text that is the same only for paths that are the same bit for bit."""
    seen = hashlib.sha256()
    for name in sorted(path.table):
        column = path.table[name]
        seen.update(name.encode() + (str(column.tolist()).encode() if column.dtype.kind in "US" else column.tobytes()))
    for point in range(len(path)):
        decision = path.decision(point)
        seen.update(decision.keep.tobytes())
        for change in (decision.value, decision.tree_weight, decision.base):
            seen.update(b"-" if change is None else np.ascontiguousarray(change).tobytes())
    return seen.hexdigest()


def same_prunings(a: Path, b: Path) -> bool:
    """Return whether two paths keep the same nodes at every point."""
    return len(a) == len(b) and all(np.array_equal(a.masks.keep(i), b.masks.keep(i)) for i in range(len(a)))


def difference(a: Path, b: Path) -> float:
    """Return the largest difference of two paths of the same length, as a fraction of the largest number in a column.

    Columns that describe how a pruning was found are ignored.
    """
    apart = 0.0
    for name in COMPARED & set(a.table) & set(b.table):
        one, other = np.nan_to_num(a.table[name]), np.nan_to_num(b.table[name])
        apart = max(apart, float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-300)))
    return apart


def worse_by(a: Path, b: Path) -> float:
    """Return the largest difference of the objectives of two paths at equal penalties, as a fraction of the largest."""
    column = "objective" if "objective" in a.table else "risk"
    one, other = (path.table[column][np.argsort(path.table["penalty"], kind="stable")] for path in (a, b))
    return float(np.abs(one - other).max() / max(np.abs(one).max(), 1e-300)) if len(a) == len(b) else np.inf
