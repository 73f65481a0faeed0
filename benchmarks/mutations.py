"""Model files that were damaged: what is done to them, and what comes of reading them.

A damaged file must give a clear error, or a model of which the library and secateur say the same. Run as
`python -m benchmarks.mutations FOLDER KIND FIRST STOP` it tries some of them and tells a line of JSON of each; the one
that ends the process, or that it never tells of, is the one that was worse.
"""

import json
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from secateur.decision import Decision
from secateur.forest import Forest
from secateur.io import adapt
from secateur.io.adapter import Adapter
from secateur.io.files import load_model, save_model
from secateur.path import Pruned

GOOD = ("refused", "same", "another model")
"""A clear error; a model that predicts as before; a model that predicts otherwise, in the library as here."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_ODD = (
    b"0",
    b"-1",
    b"1",
    b"2147483647",
    b"-2147483648",
    b"4294967296",
    b"1e400",
    b"-1e400",
    b"nan",
    b"0.5",
    b"1e-40",
    b"",
)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the beginning."""
    return data[: int(rng.integers(len(data)))]


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it with a few bits turned."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it with four bytes replaced by a small, a negative or a huge whole number."""
    place = int(rng.integers(max(len(data) - 4, 1)))
    number = int(rng.choice([0, 1, -1, 2, 255, 2**31 - 1, -(2**31), int(rng.integers(1000))]))
    return data[:place] + number.to_bytes(4, "little", signed=True) + data[place + 4 :]


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it without some bytes in the middle."""
    start, stop = sorted(int(place) for place in rng.integers(len(data) + 1, size=2))
    return data[:start] + data[min(stop, start + int(rng.integers(1, 200))) :]


def repeat(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it with a piece doubled."""
    start = int(rng.integers(len(data)))
    stop = start + int(rng.integers(1, 200))
    return data[:stop] + data[start:stop] + data[stop:]


def change_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it with a few written numbers replaced by others, odd ones among them."""
    for _ in range(int(rng.integers(1, 4))):
        found = list(_NUMBER.finditer(data))
        if not found:
            return flip(data, rng)
        chosen = found[int(rng.integers(len(found)))]
        other = found[int(rng.integers(len(found)))].group() if rng.random() < 0.5 else bytes(rng.choice(_ODD))
        data = data[: chosen.start()] + other + data[chosen.end() :]
    return data


def swap_pieces(data: bytes, rng: np.random.Generator) -> bytes:
    """Return it with two lines, or two pieces between commas, exchanged."""
    separator = b"\n" if data.count(b"\n") > 3 and rng.random() < 0.7 else b","
    pieces = data.split(separator)
    a, b = (int(place) for place in rng.integers(len(pieces), size=2))
    pieces[a], pieces[b] = pieces[b], pieces[a]
    return separator.join(pieces)


_DAMAGES: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    truncate,
    flip,
    overwrite,
    cut_out,
    repeat,
    change_number,
    change_number,
    swap_pieces,
)


def damaged(source: Path, number: int, target: Path) -> None:
    """Write to `target` what mutation `number` makes of a file, or of one file of a folder."""
    rng = np.random.default_rng([number, 7])
    damage = _DAMAGES[int(rng.integers(len(_DAMAGES)))]
    if source.is_file():
        target.write_bytes(damage(source.read_bytes(), rng))
        return
    shutil.copytree(source, target, dirs_exist_ok=True)
    files = sorted(file for file in target.rglob("*") if file.is_file() and file.stat().st_size)
    victim = files[int(rng.integers(len(files)))]
    if rng.random() < 0.05:
        victim.unlink()
    else:
        victim.write_bytes(damage(victim.read_bytes(), rng))


def outcomes(source: Path, numbers: range, folder: Path) -> Iterator[tuple[int, str, str]]:
    """Yield for every mutation its number, how it ended, and what was said."""
    rows = _rows(adapt(load_model(source)).forest)
    before = _ours(adapt(load_model(source)), rows)
    for number in numbers:
        target = folder / f"{number}{source.suffix}"
        damaged(source, number, target)
        try:
            yield number, *_outcome(target, rows, before)
        finally:
            shutil.rmtree(target) if target.is_dir() else target.unlink()


def _outcome(file: Path, rows: Any, before: Any) -> tuple[str, str]:
    """Return how reading a file ends."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            adapter = adapt(load_model(file))
            forest = adapter.forest
        except (ValueError, FileNotFoundError) as error:
            return "refused", str(error)
        except Exception as error:  # not what a user can be expected to understand
            return type(error).__name__, str(error)
        try:
            return _compare(file, adapter, forest, rows, before)
        except Exception as error:  # a model was read that cannot predict, or not be written
            return type(error).__name__, f"later: {error}"


def _compare(file: Path, adapter: Adapter, forest: Forest, rows: Any, before: Any) -> tuple[str, str]:
    """Return whether library and secateur agree on a model, also after writing it again."""
    if forest.n_features != rows.shape[1]:
        if forest.n_features > 10_000:
            return "another model", "with too many features to try it"
        rows = _rows(forest)
    ours = _ours(adapter, rows)
    theirs = native_sums(adapter, rows)
    if theirs is not None and not _alike(ours, theirs):
        return "disagree", f"{adapter.library} says {np.ravel(theirs)[:3]}, secateur {np.ravel(ours)[:3]}"
    copy = adapter.write(Decision(np.ones(forest.n_nodes, bool)))
    written = file.with_name(f"again{file.suffix}")
    save_model(copy, written, force=True)
    if not _alike(_ours(adapt(load_model(written)), rows), ours):
        return "disagree", "after writing it again"
    return ("same" if ours.shape == before.shape and _alike(ours, before) else "another model"), ""


def _rows(forest: Forest) -> Any:
    """Return rows between, at and beyond the thresholds, some values missing."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, forest.n_features))
    split = np.flatnonzero(forest.is_split)
    for v in split[:200]:
        rows[int(rng.integers(60)), forest.feature[v]] = forest.threshold[v]
    rows[rng.random(rows.shape) < 0.05] = np.nan
    return rows


def _ours(adapter: Adapter, rows: Any) -> Any:
    everything = Decision(np.ones(adapter.forest.n_nodes, bool))
    return Pruned(adapter, everything, 0, {}, "", {}).raw(rows)


def native_sums(adapter: Adapter, rows: Any) -> Any:
    """Return the sums by the library itself; None where that would take a JVM."""
    model = adapter.model
    if adapter.library == "xgboost":
        import xgboost

        names = {"feature_names": model.feature_names, "feature_types": model.feature_types}
        return model.predict(xgboost.DMatrix(rows, **names), output_margin=True).reshape(len(rows), -1)
    if adapter.library == "lightgbm":
        return model.predict(rows, raw_score=True, num_threads=1).reshape(len(rows), -1) / adapter.forest.divisor
    if adapter.library == "catboost":
        return np.reshape(model._predict(rows, "RawFormulaVal", 0, 0, 1, None, "predict"), (len(rows), -1))
    return None


def _alike(a: Any, b: Any) -> bool:
    """Return whether two predictions agree, up to the precision of what is compared."""
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)


def main(folder: Path, kind: str, first: int, stop: int) -> None:
    """Try some mutations of the model `kind` in the folder and tell how each ended."""
    source = next(folder.glob(f"{kind}*"))
    work = folder / f"work-{kind}-{first}"
    work.mkdir(exist_ok=True)
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may tell of what they read
        for number, how, said in outcomes(source, range(first, stop), work):
            print(json.dumps([number, how, said[:200]]), file=told, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
