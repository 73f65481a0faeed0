"""Compute paths of a model from a file in a new process and print the memory of each; Linux only.

`python -m benchmarks.probe_path FILE`: FILE holds a model, X, y and a list of solvers, written by joblib. Prints for
each solver by how many bytes the peak was above what was resident after loading.
"""

import sys
from pathlib import Path

import joblib
import numpy as np
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from benchmarks.probe import resident, status


def main(file: str) -> None:
    """Load the model, compute the paths and print."""
    model, X, y, solvers = joblib.load(file)
    rows = np.eye(4)
    tiny = RandomForestRegressor(2, max_depth=1).fit(rows, rows[0])
    for solver in solvers:
        sc.prune_path(tiny, rows, rows[0], solver=solver)  # compiled kernels belong to the interpreter, not to the path
    for solver in solvers:
        loaded = resident()
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        path = sc.prune_path(model, X, y, solver=solver)
        print(status("VmHWM") - loaded)
        del path


if __name__ == "__main__":
    main(*sys.argv[1:])
