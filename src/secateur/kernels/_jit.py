"""One decorator for all kernels, so that they are all compiled the same way."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.extending import intrinsic

from secateur.kernels._cache import keep_on_disk

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`: serial, cached on disk, GIL released, IEEE arithmetic left as written."""
    compiled = numba.njit(nogil=True)(function)
    keep_on_disk(compiled)
    return cast(F, compiled)


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    number = numba.types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return number(number, number, number), generate


fused: Any = intrinsic(_fused)
"""Called as `fused(a, b, c)` in a kernel: a · b + c, rounded once."""
