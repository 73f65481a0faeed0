"""One decorator for all kernels, so that they are all compiled the same way."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`: serial, cached on disk, GIL released, IEEE arithmetic left as written."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
