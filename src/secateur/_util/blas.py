"""One thread for BLAS, so that what it adds up is the same bit for bit on every number of cores.

BLAS cuts sums into parts by the number of its threads. That number is mostly one for the whole process, so the first
thread that asks for the limit puts it on, and the last takes it off.
"""

import os
import threading
from functools import cached_property
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """What `with one_blas_thread:` does; threads may be inside at the same time, and inside several times.

    Interrupted on the way in it may leave BLAS with one thread, never with more while somebody is inside.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._n_inside = 0  # threads
        self._before: list[int] = []
        self._mine = threading.local()

    @cached_property
    def _libraries(self) -> list[Any]:
        import scipy.linalg  # noqa: F401 - brings the BLAS that kernels use; NumPy's own is there

        found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        return found

    def __enter__(self) -> None:
        depth = getattr(self._mine, "depth", 0)
        if depth == 0:
            with self.lock:
                self._mine.before = [library.num_threads for library in self._libraries]
                if self._n_inside == 0:
                    self._before = self._mine.before
                self._n_inside += 1
                for library in self._libraries:
                    _set(library, 1)
        self._mine.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        self._mine.depth -= 1
        if self._mine.depth > 0:
            return
        with self.lock:
            self._n_inside -= 1
            for library, shared, mine in zip(self._libraries, self._before, self._mine.before, strict=True):
                if _counts_by_thread(library):
                    _set(library, mine)
                elif self._n_inside == 0:
                    _set(library, shared)


def _counts_by_thread(library: Any) -> bool:
    """Return whether each thread of the process has a limit of its own, as in OpenBLAS made with OpenMP."""
    return library.internal_api == "openblas" and library.threading_layer == "openmp"


def _set(library: Any, n_threads: int) -> None:
    """Set the number of threads; threadpoolctl 3.8 lets one thread do so, until that is done with it."""
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(n_threads)
    clear(force=True)


one_blas_thread = _OneThread()

if hasattr(os, "register_at_fork"):
    # A fork has none of the threads that could let go of the lock, so none of them may hold it then.
    os.register_at_fork(
        before=one_blas_thread.lock.acquire,
        after_in_parent=one_blas_thread.lock.release,
        after_in_child=one_blas_thread.lock.release,
    )
