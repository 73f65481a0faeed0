"""In a fork of a process, libraries wait for OpenMP threads that are not there; they are asked to do with one thread.

GNU's OpenMP keeps its threads from call to call, and a fork has none of them: XGBoost and LightGBM lock up in it even
when they only write down a model. Processes that are spawned, as those of joblib, have their own.
"""

import ctypes
import os
import sys

from threadpoolctl import threadpool_limits

_free = {os.getpid()}
"""The process that imported this; it and those in which threads are limited already need nothing."""


def one_thread_in_a_fork() -> None:
    """Let OpenMP have one thread from now on if this process was forked since this module was imported."""
    if os.getpid() in _free:
        return
    threadpool_limits(1, user_api="openmp")
    if "lightgbm" in sys.modules:  # it counts its threads itself
        library = sys.modules["lightgbm"].basic._LIB
        if hasattr(library, "LGBM_SetMaxThreads"):
            library.LGBM_SetMaxThreads(ctypes.c_int(1))
    _free.add(os.getpid())
