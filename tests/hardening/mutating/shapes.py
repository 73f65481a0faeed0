"""Change the content of JSON, arrays and zips; their syntax stays valid.

Children are swapped, point to themselves or to no node, features and counts are out of range, thresholds are NaN,
types are wrong, lists are nested a hundred thousand deep, numbers exceed all types; zips unpack to gigabytes,
have paths outside of the archive, or contain pickled objects.
"""

import io
import json
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator

OUTSIDE = "escaped"
"""The file that a path outside of an archive would write beside the folder."""
RAN = "ran"
"""The file that a pickled object writes when it is loaded."""

_DEEP, _HUGE = "@deep", "@huge"  # placeholders for values that Python does not write
_MARK = re.compile(rf'"{_DEEP}(\d+)"')
_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63, 2**64, 10**40, _HUGE),
    *(0.5, -0.5, 1e308, float("inf"), float("-inf"), float("nan"), 1e-320),
    *("", "x", "0", "-1", "nan", "1e400", "99999999999999999999", f"../{OUTSIDE}", "\x00", "\ud800", "[1"),
    *([], {}, [[]], [None], {"x": 1}, ["x"] * 50),
)


def pick(rng: Rng, things: Any) -> Any:
    """Return one of some values of any types."""
    return things[int(rng.integers(len(things)))]


def changed_json(value: Any, rng: Rng) -> bytes:
    """Return a JSON value with something in it changed, as text; `value` is changed in place."""
    holder = {"root": value}
    for _ in range(1 if rng.random() < 0.7 else 2):
        _change_value(holder, rng)
    return json_text(holder["root"]) if "root" in holder else b""


def json_text(value: Any) -> bytes:
    """Return JSON text; placeholders in it become lists and objects nested too deep for Python, and huge numbers."""
    text = json.dumps(value).replace(f'"{_HUGE}"', "9" * 5000)
    return _MARK.sub(_nested, text).encode("utf-8", "surrogatepass")


def _nested(mark: re.Match[str]) -> str:
    n = int(mark.group(1))
    return "[" * n + "]" * n if n % 2 else '{"a":' * n + "1" + "}" * n


def _change_value(holder: dict[str, Any], rng: Rng) -> None:
    places = list(_places(holder))
    container, key = places[int(rng.integers(len(places)))]
    ways = (_replace, _replace, _remove, _swap, _nest, _grow, _tweak, _tweak, _exchange_lists, _retype)
    pick(rng, ways)(container, key, places, rng)


def _places(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every nested container with each of its keys."""
    stack = [root]
    while stack:
        here = stack.pop()
        keys = list(here) if isinstance(here, dict) else range(len(here))
        for key in keys:
            yield here, key
            if isinstance(here[key], dict | list):
                stack.append(here[key])


def _replace(container: Any, key: Any, places: Any, rng: Rng) -> None:
    container[key] = pick(rng, _ODD_VALUES)


def _remove(container: Any, key: Any, places: Any, rng: Rng) -> None:
    if "root" not in container:
        del container[key]


def _swap(container: Any, key: Any, places: Any, rng: Rng) -> None:
    """Swap two values: neighbours, or any two of which neither contains the other."""
    keys = list(container) if isinstance(container, dict) else range(len(container))
    other = pick(rng, keys)
    container[key], container[other] = container[other], container[key]


def _nest(container: Any, key: Any, places: Any, rng: Rng) -> None:
    container[key] = f"{_DEEP}{int(10 ** rng.uniform(1, 5.3))}"


def _grow(container: Any, key: Any, places: Any, rng: Rng) -> None:
    """Make a list, text or number absurdly long or large."""
    found = container[key]
    times = int(10 ** rng.uniform(0.3, 4))
    if isinstance(found, list | str) and 0 < len(found) * times < 2_000_000:
        container[key] = found * times
    elif isinstance(found, int | float) and not isinstance(found, bool):
        container[key] = found * 10**9 + 7


def _tweak(container: Any, key: Any, places: Any, rng: Rng) -> None:
    """Change an entry of a list of numbers: to its own index, to one before it, beyond the end, to NaN."""
    lists = [here for here, _ in places if isinstance(here, list) and here and isinstance(here[0], int | float)]
    here = pick(rng, lists or [[0]])
    place = int(rng.integers(len(here)))
    here[place] = pick(rng, (place, place - 1, 0, -1, -2, len(here), len(here) + 1000, 2**31 - 1, float("nan"), 1e39))


def _exchange_lists(container: Any, key: Any, places: Any, rng: Rng) -> None:
    """Swap two lists of an object that have the same length, such as left and right children."""
    tables = [here for here, _ in places if isinstance(here, dict)]
    here = pick(rng, tables)
    names = [name for name, entry in here.items() if isinstance(entry, list)]
    if len(names) > 1:
        a, b = pick(rng, names), pick(rng, names)
        here[a], here[b] = here[b], here[a]


def _retype(container: Any, key: Any, places: Any, rng: Rng) -> None:
    """Wrap a value, or write it as text."""
    found = container[key]
    container[key] = pick(rng, ([found], {"x": found}, str(found)[:1000], [found, found]))


def changed_array(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    """Return an array with an entry, its type or its shape changed."""
    way = rng.random()
    if way < 0.6 and array.size:
        return _changed_entries(array, rng)
    if way < 0.75:
        return _changed_type(array, rng)
    return _changed_shape(array, rng)


def _changed_entries(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    array = array.copy()
    if array.dtype.names:
        field = pick(rng, array.dtype.names)
        array[field] = _changed_entries(array[field], rng)
        return array
    flat = array.reshape(-1)
    for place in rng.integers(len(flat), size=int(rng.integers(1, 4))):
        if array.dtype.kind == "f":
            flat[place] = pick(rng, (np.nan, np.inf, -np.inf, 0.0, 1e308, 1e-320, -1.0))
        elif array.dtype.kind in "iu":
            odd = (place, place - 1, place + 1, 0, -1, -2, len(flat), len(flat) + 1000, 2**31 - 1, -(2**31))
            flat[place] = np.array(int(pick(rng, odd))).astype(array.dtype)
        elif array.dtype.kind == "b":
            flat[place] = not flat[place]
        else:
            flat[place] = pick(rng, flat)
    return flat.reshape(array.shape)


def _changed_type(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    kinds = ("f4", "f8", "i4", ">i4", ">f8", "i8", "u1", "?", "U8", "S8", "M8[s]", "c16", "f2", "u8", "V8", "O")
    try:
        with np.errstate(all="ignore"):
            return array.astype(pick(rng, kinds))
    except (TypeError, ValueError):
        return array.astype("S16") if not array.dtype.names else array[:0]


def _changed_shape(array: NDArray[Any], rng: Rng) -> NDArray[Any]:
    n = len(array) if array.ndim else 1
    ways = (
        lambda: array.reshape((*array.shape, 1)),
        lambda: array.ravel()[:1].reshape(()) if array.size else array,
        lambda: array[: int(rng.integers(n + 1))] if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array[:0] if array.ndim else array,
        lambda: array[::-1] if array.ndim else array,
        lambda: np.asfortranarray(np.stack([array, array])),
        lambda: np.resize(array, int(10 ** rng.uniform(1, 6))),
        lambda: array[rng.permutation(n)] if array.ndim else array,
    )
    changed: NDArray[Any] = pick(rng, ways)()
    return changed


def changed_arrays(arrays: dict[str, NDArray[Any]], rng: Rng) -> dict[str, NDArray[Any]]:
    """Return named arrays with one changed, removed, added, or two swapped."""
    names, way = list(arrays), rng.random()
    one, other = pick(rng, names), pick(rng, names)
    if way < 0.7:
        return {**arrays, one: changed_array(arrays[one], rng)}
    if way < 0.85:
        return {**arrays, one: arrays[other], other: arrays[one]}
    if way < 0.93:
        return {name: array for name, array in arrays.items() if name != one}
    return {**arrays, pick(rng, ("more", f"../{OUTSIDE}", "values", "support", "base", "tree_weight")): arrays[one]}


def npy(array: NDArray[Any]) -> bytes:
    """Return an array as .npy; objects are pickled, for readers that must refuse them."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), allow_pickle=True)
    return stream.getvalue()


class Touch:
    """An object that, when it is unpickled, writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


def changed_zip(data: bytes, rng: Rng, folder: Path) -> bytes:
    """Return a zip in which an entry is a bomb, a pickle, a path outside of the archive, or has wrong sizes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(info.filename, archive.read(info)) for info in archive.infolist()]
    place = int(rng.integers(len(entries)))
    name = entries[place][0]
    ways = ("pickle", "name", "name", "twice", "lie", "object", "huge shape", "empty")
    way = pick(rng, ("bomb", "bombs") if rng.random() < 0.03 else ways)  # bombs are slow to write and to read
    packed = [_packed(name, content) for name, content in entries]
    if way in ("bomb", "bombs"):
        bomb = {**_bomb(int(pick(rng, (63 * 2**20, 2**27, 3 * 2**27)))), "name": name}
        packed[place] = bomb
        packed += [{**bomb, "name": f"{k}.npy"} for k in range(40)] if way == "bombs" else []
    elif way == "pickle":
        return pickle.dumps(Touch(folder / RAN))
    elif way == "object":
        packed[place] = _packed(name, npy(np.array([Touch(folder / RAN)], object)))
    elif way == "name":
        odd = (
            f"../{OUTSIDE}",
            f"/{OUTSIDE}",
            f"..\\{OUTSIDE}",
            "n" * 10_000,
            "a\x00b",
            "",
            ".",
            "header.npy",
            "\u202e.npy",
        )
        packed[place]["name"] = pick(rng, odd)
    elif way == "twice":
        packed.append(packed[place])
    elif way == "lie":
        packed[place][pick(rng, ("size", "crc", "packed_size"))] = int(pick(rng, (0, 1, 2**31, 2**32 - 1)))
    elif way == "huge shape":
        head = npy(np.zeros(0))[:128].replace(b"(0,)", b"(%d,)" % 10 ** int(rng.integers(6, 18)))
        packed[place] = _packed(name, head)
    else:
        packed[place] = _packed(name, b"")
    return zip_of(packed)


def _packed(name: str, content: bytes) -> dict[str, Any]:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = packer.compress(content) + packer.flush()
    return {"name": name, "body": body, "packed_size": len(body), "size": len(content), "crc": zlib.crc32(content)}


@lru_cache
def _bomb(size: int) -> dict[str, Any]:
    """Return an entry that unpacks to an array of `size` zeros."""
    head = npy(np.zeros(0, np.int32))[:128]
    head = head.replace(b"(0,), }" + b" " * 10, b"(%d,), }" % (size // 4) + b" " * (11 - len(str(size // 4))))
    return _packed("bomb", head + bytes(size))


def zip_of(entries: list[dict[str, Any]]) -> bytes:
    """Return a zip of compressed entries with the given sizes."""
    parts, listed, at = [], [], 0
    for entry in entries:
        name = entry["name"].encode()
        sizes = struct.pack("<III", entry["crc"], entry["packed_size"], entry["size"])
        shared = struct.pack("<HHHHH", 20, 0x800, 8, 0, 0x21) + sizes
        local = b"PK\3\4" + shared + struct.pack("<HH", len(name), 0) + name + entry["body"]
        parts.append(local)
        listed.append(b"PK\1\2\x14\0" + shared + struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, at) + name)
        at += len(local)
    index = b"".join(listed)
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(index), at, 0)
    return b"".join([*parts, index, end])
