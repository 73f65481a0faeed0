"""Define the decorator that compiles every kernel with the same options."""

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar, cast

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from secateur.kernels._cache import compile_lock, compiling, enable_disk_cache

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function`: serial, cached on disk, GIL released, strict IEEE arithmetic without reordering.

    If NUMBA_DISABLE_JIT is set, kernels are plain Python, which is slow but can be debugged.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    # No kernel is called from C, and no part from Python. numba's type stubs lack these options.
    options: Any = {"nogil": True, "no_cfunc_wrapper": True}
    part_options: Any = {**options, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
    compiled: Any = numba.njit(**options)(function)
    compiled.__class__ = _Kernel
    compiled.part = numba.njit(**part_options)(function)
    enable_disk_cache(compiled)
    return cast(F, compiled)


class _Kernel(CPUDispatcher):
    """A compiled function with two forms: one that Python calls, and a `part` for calls from other kernels.

    Ctrl-C during the function raises KeyboardInterrupt, not SystemError. Python handles a pending signal as soon as
    Python code runs, here inside numba's conversion of returned arrays. If a kernel returns several arrays, numba
    continues with the next one although an exception is set, and Python then raises SystemError with the real exception
    as its cause.
    """

    _cache: Any
    part: Any

    def compile(self, signature: Any) -> Any:
        with global_compiler_lock, compile_lock(self._cache), _garbage_kept(), compiling(self._cache):
            return super().compile(signature)

    def add_overload(self, compiled: Any) -> None:
        super().add_overload(compiled)
        # Numba sets only the environment of the function itself, and those of its parts if it is loaded from the cache.
        for environment in compiled._find_referenced_environments():
            compiled.library.codegen.set_env(environment.env_name, environment)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # Otherwise a part is compiled for every constant and for every size of integer that it is called with.
        return self.part.get_call_template([_widened(a) for a in args], {key: _widened(a) for key, a in kws.items()})

    def get_overload(self, sig: Any) -> Any:
        return self.part.get_overload(sig)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except SystemError as error:
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None


def _widened(kind: Any) -> Any:
    """Return int64 for the type of a constant or of a smaller signed integer, and other types as they are."""
    kind = numba.types.unliteral(kind)
    return numba.types.int64 if kind in numba.types.signed_domain else kind


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Do not look for cyclic garbage: numba makes many objects that stay, and looking takes a seventh of the time.

    The caller must hold numba's compiler lock.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _PartLibrary(JITCodeLibrary):
    """The code of a kernel for calls from other kernels, which is not run: it is linked into theirs.

    By default numba optimises every function and makes machine code of it, and again within each function that calls
    it. Kernels are several calls deep; with parts they are optimised once.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing. Numba calls this to set an address in code that is ready to run."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernels that this code is linked into are optimised."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(Compiler):
    """Compile a kernel into a `_PartLibrary`."""

    def define_pipelines(self) -> Any:
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    number = numba.types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return number(number, number, number), generate


def _fused_in_python(a: float, b: float, c: float) -> float:
    product = a * b + c
    return float(Fraction(a) * Fraction(b) + Fraction(c)) if math.isfinite(product) else product


fused: Any = _fused_in_python if numba.config.DISABLE_JIT else intrinsic(_fused)  # type: ignore[attr-defined]
"""Fused multiply-add: `fused(a, b, c)` in a kernel returns a · b + c, rounded once."""
