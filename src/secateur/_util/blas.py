"""Limit BLAS to one thread, so that results are bitwise identical for any number of cores.

BLAS splits sums by the number of its threads. In most BLAS libraries this number applies to the whole process, so the
first thread that enters the context sets the limit and the last one to leave restores it.
"""

import os
import threading
from functools import cached_property
from typing import Any

from threadpoolctl import ThreadpoolController


class _OneThread:
    """Context manager `with one_blas_thread:`; several threads may be inside at once, and it may be nested.

    If it is interrupted on entry, BLAS may stay limited to one thread; it never has more while a thread is inside.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # Number of threads inside the context.
        self._n_inside = 0
        self._before: list[int] = []
        self._local = threading.local()

    @cached_property
    def _libraries(self) -> list[Any]:
        import scipy.linalg  # noqa: F401 - loads the BLAS that kernels use; NumPy has loaded its own

        found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
        return found

    def __enter__(self) -> None:
        depth = getattr(self._local, "depth", 0)
        if depth == 0:
            with self.lock:
                self._local.before = [library.num_threads for library in self._libraries]
                if self._n_inside == 0:
                    self._before = self._local.before
                self._n_inside += 1
                for library in self._libraries:
                    _set(library, 1)
        self._local.depth = depth + 1

    def __exit__(self, *error: object) -> None:
        self._local.depth -= 1
        if self._local.depth > 0:
            return
        with self.lock:
            self._n_inside -= 1
            for library, shared, before in zip(self._libraries, self._before, self._local.before, strict=True):
                if _counts_by_thread(library):
                    _set(library, before)
                elif self._n_inside == 0:
                    _set(library, shared)


def _counts_by_thread(library: Any) -> bool:
    """Return whether the limit is per thread, as in OpenBLAS built with OpenMP."""
    return library.internal_api == "openblas" and library.threading_layer == "openmp"


def _set(library: Any, n_threads: int) -> None:
    """Set the number of threads; threadpoolctl 3.8 allows only the controlling thread, so clear that first."""
    clear = getattr(library, "clear_controlling_thread", lambda force: None)
    clear(force=True)
    library.set_num_threads(n_threads)
    clear(force=True)


one_blas_thread = _OneThread()

if hasattr(os, "register_at_fork"):
    # A forked child lacks the other threads, so none of them may hold the lock at the time of the fork.
    os.register_at_fork(
        before=one_blas_thread.lock.acquire,
        after_in_parent=one_blas_thread.lock.release,
        after_in_child=one_blas_thread.lock.release,
    )
