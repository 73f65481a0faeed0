"""Prune a model from a file in a new process and print the memory it took; Linux only.

`python -m benchmarks.probe STEPS MODEL KEEP`: STEPS is "model" (read, write) or "all" (read, cut, write), KEEP a file
with the mask. Prints three sizes in bytes: resident before loading, resident after loading, and the peak after that.
"""

import ctypes
import gc
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from secateur.forest.subforest import Decision, subforest
from secateur.libraries import adapt


def main(steps: str, model_file: str, keep_file: str) -> None:
    """Load, prune and print."""
    keep = np.load(keep_file)
    tiny = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    # Compile the kernels first, so that they do not count as memory of the model.
    prune("all", tiny, np.ones(3, bool))
    before = resident()
    model = joblib.load(model_file)
    loaded = resident()
    # Reset the peak: that of loading is higher.
    Path("/proc/self/clear_refs").write_text("5")
    held = prune(steps, model, keep)
    print(before, loaded, status("VmHWM"))
    del held


def prune(steps: str, model: Any, keep: NDArray[np.bool_]) -> list[Any]:
    """Return all objects created while pruning the model, so that they are kept in memory."""
    adapter = adapt(model)
    decision = Decision(keep)
    held = [adapter.forest, adapter.write(decision)]
    if steps == "all":
        held.append(subforest(adapter.forest, decision))
    return held


def resident() -> int:
    """Return the resident memory after free memory has been returned to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def status(name: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {name}; memory can be measured on Linux only.")


if __name__ == "__main__":
    main(*sys.argv[1:])
