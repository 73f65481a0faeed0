"""A fresh process that prunes a model from a file and prints how much memory that took; Linux only.

`python -m benchmarks.probe STEPS MODEL KEEP`: STEPS is "model" (read, write) or "all" (read, cut, write), KEEP a file
with the mask. Prints three numbers of bytes: resident before loading, resident after, and the peak from then on.
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
    prune("all", tiny, np.ones(3, bool))  # compiled kernels belong to the interpreter, not to the model
    before = resident()
    model = joblib.load(model_file)
    loaded = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here; loading has its own, higher one
    held = prune(steps, model, keep)
    print(before, loaded, status("VmHWM"))
    del held


def prune(steps: str, model: Any, keep: NDArray[np.bool_]) -> list[Any]:
    """Return everything that is made on the way to the pruned model."""
    adapter = adapt(model)
    decision = Decision(keep)
    held = [adapter.forest, adapter.write(decision)]
    if steps == "all":
        held.append(subforest(adapter.forest, decision))
    return held


def resident() -> int:
    """Return the memory in use, after what is free was given back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return status("VmRSS")


def status(name: str) -> int:
    """Return a line of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status has no {name}; memory can be measured on Linux only.")


if __name__ == "__main__":
    main(*sys.argv[1:])
