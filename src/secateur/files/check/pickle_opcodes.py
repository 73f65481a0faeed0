"""Follow the opcodes of a pickle without executing them, and list the names that loading would import and call.

A pickle is a program for a small stack machine. `pickletools.genops` decodes its instructions; the machine here moves
texts, numbers and tuples on the stack as the real one does, because names may be put together from texts that were
stored before. Where the real machine would import or call something, this one writes down the name.

joblib writes the bytes of an array after the instructions that describe it, so they have to be skipped.
"""

import io
import math
import pickletools
import struct
from collections.abc import Callable
from typing import Any

from secateur.files.check.pickle_values import COMPUTES_TEXT, WRAPPER, Global, Made, Scan, item_size

_ENCODE, _ENCODING = "_codecs.encode", "latin1"
_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_MAX_NESTED = 20
_MARK = object()


def scan_pickle(data: bytes, *, arrays: bool) -> Scan:
    """Follow a pickle to its end, or to the first instruction that cannot be followed.

    Parameters
    ----------
    data : bytes
    arrays : bool
        Whether the bytes of arrays follow their description, as in files of joblib.
    """
    scan, stream = Scan(), io.BytesIO(data)
    try:
        _Machine(stream, scan, arrays).run()
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error) as error:
        # pickletools raises any of these for damaged bytes.
        text = str(error).strip().splitlines() or [type(error).__name__]
        scan.error = f"{text[0][:200]}, near byte {stream.tell():,} of {len(data):,}"
    scan.left = len(data) - stream.tell()
    return scan


class _Machine:
    """Move values on the stack as the machine of pickle does; nothing is imported or called."""

    def __init__(self, stream: io.BytesIO, scan: Scan, arrays: bool, nested: int = 0) -> None:
        self.stream, self.scan, self.arrays, self.nested = stream, scan, arrays, nested
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> None:
        for opcode, argument, _ in pickletools.genops(self.stream):
            if opcode.name in _CONSTANTS:
                self.stack.append(_CONSTANTS[opcode.name])
            elif opcode.name in _LITERALS:
                self.stack.append(argument)
            elif opcode.name in _STEPS:
                _STEPS[opcode.name](self, argument)
            elif opcode.name == "PROTO":
                self.scan.protocol = int(argument or 0)
            elif opcode.name not in ("STOP", "FRAME", "READONLY_BUFFER"):
                raise ValueError(f"the instruction {opcode.name} is unknown")

    def pop_to_mark(self) -> list[Any]:
        """Return the values above the last mark, and remove them with it."""
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError("a mark is missing")
        values = self.stack[at + 1 :]
        del self.stack[at:]
        return values

    def import_name(self, module: Any, name: Any) -> Any:
        """Return the name with this text, or something unknown if it is computed."""
        if not isinstance(module, str) or not isinstance(name, str):
            self.scan.oddities["imports a name that it computes"] = None
            return Made()
        found = Global(_MODULES.get(module, module), name)
        self.scan.names[found] = None
        return found

    def call(self, what: Any, arguments: Any) -> None:
        if not isinstance(what, Global):
            self.scan.oddities["calls the result of another call"] = None
        # Bytes of old protocols are encoded in Latin-1; other codecs, such as rot13, give texts.
        if str(what) == _ENCODE and (not isinstance(arguments, tuple) or arguments[1:] != (_ENCODING,)):
            self.scan.oddities[COMPUTES_TEXT] = None
        self.stack.append(Made(what if isinstance(what, Global) else None, arguments))

    def build(self, _: Any) -> None:
        """Give an object its state; an array of joblib is followed by its bytes."""
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(made, Made):
            self.scan.oddities["changes a module, type or function"] = None
            return
        made.state = state
        if self.arrays and str(made.of) == WRAPPER:
            self.stack[-1] = Made()
            self.skip_array(state)

    def skip_array(self, state: Any) -> None:
        """Skip the bytes of an array, or follow the pickle of an array of objects."""
        shape, item = state["shape"], item_size(state["dtype"])
        if not isinstance(shape, tuple | list) or any(type(length) is not int or length < 0 for length in shape):
            raise ValueError("the shape of an array is not a tuple of lengths")
        if item is None:
            if self.nested >= _MAX_NESTED:
                raise ValueError("arrays are nested too deeply")
            return _Machine(self.stream, self.scan, False, self.nested + 1).run()
        if state.get("numpy_array_alignment_bytes") is not None:
            self.skip(self.stream.read(1)[0])
        self.skip(math.prod(shape) * item)
        return None

    def skip(self, size: int) -> None:
        left = len(self.stream.getbuffer()) - self.stream.tell()
        if size > left:
            raise ValueError(f"an array should have {size:,} more bytes, but {left:,} are left")
        self.stream.seek(size, io.SEEK_CUR)


def _append(machine: _Machine, values: list[Any]) -> None:
    if isinstance(machine.stack[-1], list):
        machine.stack[-1].extend(values)


def _set_items(machine: _Machine, values: list[Any]) -> None:
    target = machine.stack[-1]
    if isinstance(target, Global):
        machine.scan.oddities["changes a module, type or function"] = None
    for key, value in zip(values[::2], values[1::2], strict=True):
        if key == "_sklearn_version" and isinstance(key, str) and isinstance(value, str):
            machine.scan.version = value[:40]
        if isinstance(target, dict) and isinstance(key, str):
            target[key] = value


def _as_dict(values: list[Any]) -> dict[str, Any]:
    pairs = zip(values[::2], values[1::2], strict=True)
    return {key: value for key, value in pairs if isinstance(key, str)}


def _store(machine: _Machine, number: int | None) -> None:
    machine.memo[len(machine.memo) if number is None else number] = machine.stack[-1]


def _tuple(size: int) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, _: Any) -> None:
        values = tuple(machine.stack[-size:])
        if len(values) < size:
            raise IndexError("the stack is empty")
        machine.stack[-size:] = [values]

    return step


def _call_top(n_arguments: int) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, _: Any) -> None:
        arguments = [machine.stack.pop() for _ in range(n_arguments)][-1]
        machine.call(machine.stack.pop(), arguments)

    return step


def _object(machine: _Machine, _: Any) -> None:
    what, *arguments = machine.pop_to_mark()
    machine.call(what, tuple(arguments))


def _instance(machine: _Machine, text: str) -> None:
    arguments = tuple(machine.pop_to_mark())
    machine.call(machine.import_name(*text.split(" ", 1)), arguments)


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.stack.append(machine.import_name(module, name))


def _odd(text: str) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, _: Any) -> None:
        machine.scan.oddities[text] = None
        machine.stack.append(Made())

    return step


def _persistent(machine: _Machine, argument: Any) -> None:
    if argument is None:
        machine.stack.pop()
    _odd("asks the program that loads it for an object")(machine, argument)


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": (), "MARK": _MARK}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
}
_STEPS: dict[str, Callable[[_Machine, Any], Any]] = {
    "EMPTY_LIST": lambda m, _: m.stack.append([]),
    "EMPTY_DICT": lambda m, _: m.stack.append({}),
    "EMPTY_SET": lambda m, _: m.stack.append(Made()),
    "NEXT_BUFFER": lambda m, _: m.stack.append(Made()),
    "LIST": lambda m, _: m.stack.append(m.pop_to_mark()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.pop_to_mark())),
    "DICT": lambda m, _: m.stack.append(_as_dict(m.pop_to_mark())),
    "FROZENSET": lambda m, _: m.stack.append(Made(arguments=m.pop_to_mark())),
    **{f"TUPLE{size}": _tuple(size) for size in (1, 2, 3)},
    "APPEND": lambda m, _: _append(m, [m.stack.pop()]),
    "APPENDS": lambda m, _: _append(m, m.pop_to_mark()),
    "ADDITEMS": lambda m, _: m.pop_to_mark(),
    "SETITEM": lambda m, _: _set_items(m, [m.stack.pop(), m.stack.pop()][::-1]),
    "SETITEMS": lambda m, _: _set_items(m, m.pop_to_mark()),
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.pop_to_mark(),
    "DUP": lambda m, _: m.stack.append(m.stack[-1]),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _store),
    **{name: lambda m, number: m.stack.append(m.memo[number]) for name in ("GET", "BINGET", "LONG_BINGET")},
    "GLOBAL": lambda m, text: m.stack.append(m.import_name(*text.split(" ", 1))),
    "STACK_GLOBAL": _stack_global,
    "INST": _instance,
    "OBJ": _object,
    "REDUCE": _call_top(1),
    "NEWOBJ": _call_top(1),
    "NEWOBJ_EX": _call_top(2),
    "BUILD": _Machine.build,
    **{name: _odd("uses an extension code, which stands for any name") for name in ("EXT1", "EXT2", "EXT4")},
    **dict.fromkeys(("PERSID", "BINPERSID"), _persistent),
}
