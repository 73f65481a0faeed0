"""One decorator for all kernels, so that they are all compiled the same way."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from secateur.kernels._cache import keep_on_disk

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`: serial, cached on disk, GIL released, IEEE arithmetic left as written."""
    compiled: Any = numba.njit(nogil=True)(function)
    compiled.__class__ = _Kernel
    keep_on_disk(compiled)
    return cast(F, compiled)


class _Kernel(CPUDispatcher):
    """A compiled function that Ctrl-C ends as it ends any other.

    Python runs the handler of a signal that came meanwhile as soon as any Python code runs, and that is numba's own,
    which makes arrays of what a kernel returns. With several of them numba goes on with the next as if nothing had been
    raised, and Python complains of that with a SystemError.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except SystemError as error:
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    number = numba.types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return number(number, number, number), generate


fused: Any = intrinsic(_fused)
"""Called as `fused(a, b, c)` in a kernel: a · b + c, rounded once."""
