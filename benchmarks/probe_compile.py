"""Prune a model from a file in a new process; print CPU seconds of the first and the later calls, and of the kernels.

`python -m benchmarks.probe_compile FILE`: FILE holds a model, X, y, the keyword arguments of `prune` and the names of
modules to import before the first call, written by joblib. Prints JSON: the seconds of the first call, the least of the
later calls, the modules that the first call imported, and for each kernel that was compiled its seconds, without those
of the kernels it calls, and its number of signatures.
"""

import json
import sys
import warnings
from importlib import import_module
from time import process_time
from typing import Any

import joblib
from numba.core import event

import secateur as sc

_LATER = 3


def main(file: str) -> None:
    """Load the model, prune it several times and print."""
    model, X, y, options, modules = joblib.load(file)
    for name in modules:
        import_module(name)
    known = set(sys.modules)
    clock = CompileClock()
    event.register("numba:compile", clock)
    warnings.simplefilter("ignore")
    first = seconds_of_prune(model, X, y, options)
    imported = sorted(set(sys.modules) - known)
    later = min(seconds_of_prune(model, X, y, options) for _ in range(_LATER))
    kernels = [{"kernel": name, "seconds": sum(own), "signatures": len(own)} for name, own in clock.seconds.items()]
    print(json.dumps({"first": first, "later": later, "imported": imported, "kernels": kernels}))


def seconds_of_prune(model: Any, X: Any, y: Any, options: dict[str, Any]) -> float:
    """Return the CPU seconds of one call."""
    # `sc.prune` is imported on first use, which is not part of the call.
    prune = sc.prune
    began = process_time()
    prune(model, X, y, **options)
    return process_time() - began


class CompileClock(event.Listener):
    """Measure the CPU seconds of each compilation; those of a kernel compiled on behalf of another count once."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.open: list[tuple[float, list[float]]] = []
        """The start of each compilation that has not ended, and the seconds of compilations within it."""

    def on_start(self, event: Any) -> None:
        """Begin to measure a compilation."""
        self.open.append((process_time(), []))

    def on_end(self, event: Any) -> None:
        """Add the seconds of a compilation to its kernel."""
        began, inner = self.open.pop()
        taken = process_time() - began
        if self.open:
            self.open[-1][1].append(taken)
        self.seconds.setdefault(name_of(event.data["dispatcher"].py_func), []).append(taken - sum(inner))


def name_of(function: Any) -> str:
    """Return module and name of a kernel, or of a function of numba that kernels call."""
    package, *_, module = function.__module__.split(".")
    return f"{module}.{function.__name__}" if package == "secateur" else f"{package}: {module}.{function.__name__}"


if __name__ == "__main__":
    main(*sys.argv[1:])
