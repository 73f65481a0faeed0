"""Define the decorator that compiles every kernel with the same options."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from secateur.kernels._cache import compile_lock, enable_disk_cache

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`: serial, cached on disk, GIL released, strict IEEE arithmetic without reordering."""
    compiled: Any = numba.njit(nogil=True)(function)
    compiled.__class__ = _Kernel
    enable_disk_cache(compiled)
    return cast(F, compiled)


class _Kernel(CPUDispatcher):
    """Raise KeyboardInterrupt, not SystemError, when Ctrl-C is pressed during a compiled function.

    Python handles a pending signal as soon as Python code runs, here inside numba's conversion of returned arrays. If a
    kernel returns several arrays, numba continues with the next one although an exception is set, and Python then
    raises SystemError with the real exception as its cause.
    """

    _cache: Any

    def compile(self, signature: Any) -> Any:
        with global_compiler_lock, compile_lock(self._cache):
            return super().compile(signature)

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
"""Fused multiply-add: `fused(a, b, c)` in a kernel returns a · b + c, rounded once."""
