"""Compute paths in a separate process and print their fingerprints: python -m tests.hardening.fingerprints FILE."""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

from tests.hardening.solving import fingerprint, found_path


def fingerprints(models: dict[str, tuple[Any, Any, Any]], solvers: list[Any]) -> dict[str, str]:
    """Return the fingerprint of the path of each model and solver, evaluated at some points; or the error."""
    found = {}
    for name, (model, X, y) in models.items():
        for solver in solvers:
            path = found_path(solver, model, X, y)
            if not isinstance(path, str):
                path = fingerprint(path) + fingerprint(path.thin(8).evaluate(X, y))
            found[f"{name}: {solver!r}"] = path
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(fingerprints(*pickle.loads(Path(sys.argv[1]).read_bytes()))))
