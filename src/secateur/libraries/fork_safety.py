"""Limit OpenMP to one thread in forked processes, where XGBoost and LightGBM would deadlock.

GNU OpenMP keeps its threads between calls, and a forked child has none of them. XGBoost and LightGBM then wait for
these threads forever, even when they only serialise a model. Spawned processes, as joblib's, start their own threads.
"""

import ctypes
import os
import sys

from threadpoolctl import threadpool_limits

_free = {os.getpid()}
"""Ids of processes that need no limit: the one that imported this module, and forks that are limited already."""


def one_thread_in_a_fork() -> None:
    """Limit OpenMP to one thread if this process was forked after this module was imported."""
    if os.getpid() in _free:
        return
    threadpool_limits(1, user_api="openmp")
    # LightGBM has a thread count separate from OpenMP's.
    if "lightgbm" in sys.modules:
        library = sys.modules["lightgbm"].basic._LIB
        if hasattr(library, "LGBM_SetMaxThreads"):
            library.LGBM_SetMaxThreads(ctypes.c_int(1))
    _free.add(os.getpid())
