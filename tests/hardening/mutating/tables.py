"""Define data files and price lists: the content must be that of csv, pandas or pyarrow, or be refused."""

import csv
import gzip
import io
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tests.hardening.mutating.kind import ANOTHER, SAME, Kind
from tests.hardening.mutating.shapes import Rng, pick

from secateur.costs.price_file import read_prices
from secateur.data.tables import Table, read_table

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"),
)
_ODD_CELLS = (
    *(
        "",
        " ",
        "nan",
        "NA",
        "inf",
        "-Infinity",
        "1e400",
        "1_000",
        "0x10",
        "\uff11\uff12",
        "٣",
        "\u22121",
        "1,5",
        "1.5.2",
        "1d5",
        "1e",
        "+1",
    ),
    *(
        " 7 ",
        "\t3",
        "TRUE",
        "false",
        "?",
        "1.#IND",
        "None",
        "=1+1",
        "a\x1fb",
        "\x1f",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\ufeff1",
    ),
    *(
        '"',
        'a"b',
        "a,b",
        "two\nlines",
        "two\rlines",
        "'",
        "\\",
        ";",
        "1e-400",
        "9" * 400,
        "x" * 10_000,
        "x" * 200_000,
        "12\x85",
    ),
)


def _rows() -> list[list[str]]:
    rng = np.random.default_rng(0)
    rows = [["size", "kind", "weight", "count", "flag", "target"]]
    for k in range(25):
        numbers = [f"{number:.6g}" for number in rng.normal(size=3)]
        rows.append(
            [
                numbers[0],
                str(rng.choice(["ash", "birch, dry", ""])),
                numbers[1],
                str(k % 7),
                str(k % 2 == 0),
                "01"[k % 2],
            ]
        )
    rows[4][2] = "NA"
    return rows


def _prices() -> list[list[str]]:
    rows = [["feature", "cost", "group", "discount_cost"]]
    for k in range(12):
        cost, group = k * 0.5 + 1, ("lab", "scan", "")[k % 3]
        rows.append(
            [f"feature {k}" if k % 4 else str(1234567 + k), f"{cost:g}", group, f"{cost - 0.5:g}" if group else "0"]
        )
    return rows


def _text(rows: list[list[str]], **options: Any) -> bytes:
    stream = io.StringIO()
    csv.writer(stream, **{"lineterminator": "\n", **options}).writerows(rows)
    return stream.getvalue().encode("utf-8", "surrogatepass")


def _changed(rows: list[list[str]], rng: Rng) -> bytes:
    """Return the text of a table with a cell, a row, a column, or its formatting changed."""
    line, other = (int(k) for k in rng.integers(len(rows), size=2))
    column, to = (int(k) for k in rng.integers(len(rows[0]), size=2))
    way = rng.random()
    if way < 0.45:
        for _ in range(int(rng.integers(1, 4))):
            rows[int(rng.integers(len(rows)))][int(rng.integers(len(rows[0])))] = pick(rng, _ODD_CELLS)
    elif way < 0.52:
        rows[line][column], rows[other][to] = rows[other][to], rows[line][column]
    elif way < 0.58:
        pick(rng, (rows[line].clear, rows[line].pop, lambda: rows[line].append("1"), lambda: rows.append(rows[line])))()
    elif way < 0.62:
        rows[0][column] = rows[0][to]
    elif way < 0.66:
        rows[:] = [row * int(10 ** rng.uniform(0.3, 2.5)) for row in rows]
        rows[0] = [f"c{k}" for k in range(len(rows[0]))]
    elif way < 0.7:
        rows += rows[1:] * int(10 ** rng.uniform(0, 2.5))
    elif way < 0.75:
        cells = ("", "nan", "1", "?", "1_0", "true")
        for row in rows[1:]:
            row[column] = pick(rng, cells)
    return _written(rows, rng)


def _written(rows: list[list[str]], rng: Rng) -> bytes:
    """Return the text of a table, sometimes with other separators, line ends or encodings."""
    way = rng.random()
    if way < 0.6:
        return _text(rows)
    if way < 0.75:
        return _text(rows, lineterminator=pick(rng, ("\r\n", "\r", "\n\n", "\n \n", "\x85", "")))
    if way < 0.85:
        return _text(
            rows, **pick(rng, ({"delimiter": ";"}, {"delimiter": "\t"}, {"quoting": csv.QUOTE_ALL}, {"quotechar": "'"}))
        )
    text = _text(rows).decode("utf-8", "replace")
    return text.encode(pick(rng, ("utf-8-sig", "utf-16", "utf-16-le", "utf-7", "cp037")), "replace")


def _write_csv(file: Path) -> None:
    file.write_bytes(_text(_rows()))


def _write_gzip(file: Path) -> None:
    file.write_bytes(gzip.compress(_text(_rows()), mtime=0))


def _change_csv(source: Path, target: Path, rng: Rng) -> None:
    target.write_bytes(_changed(_rows(), rng))


def _change_gzip(source: Path, target: Path, rng: Rng) -> None:
    if rng.random() < 0.02:
        target.write_bytes(_gzip_bomb(int(pick(rng, (2**19, 2**28)))))
    else:
        packed = gzip.compress(_changed(_rows(), rng), mtime=0)
        target.write_bytes(packed * int(pick(rng, (1, 1, 1, 2))) + pick(rng, (b"", b"", b"x", bytes(8))))


@lru_cache(2)
def _gzip_bomb(size: int) -> bytes:
    return gzip.compress(b"a,b\n" + b"0,0\n" * (size // 4), mtime=0)


def _judge_csv(table: Table, file: Path, sound: Table) -> str:
    """Return how the columns compare with the cells csv finds, and the numbers with those pandas finds."""
    data = file.read_bytes()
    text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode("utf-8-sig")
    text = _with_commas(text)
    names, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if names != list(table.columns) or any(len(row) != len(names) for row in rows) or len(rows) != len(table):
        return f"csv finds {len(rows)} rows of {len(names)} columns, secateur {len(table)} of {len(table.columns)}"
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        wrong = _differs(table.columns[name], list(cells))
        if wrong:
            return f"column {name[:40]!r}: {wrong}"
    return _compared(table, sound) if "\x00" in text else _as_pandas(table, text) or _compared(table, sound)


def _with_commas(text: str) -> str:
    """Return the text with commas as delimiters, if its first line has one column by commas and more by others."""
    columns = {d: len(next(csv.reader(io.StringIO(text, newline=""), delimiter=d), [])) for d in ",;\t"}
    delimiter = max(columns, key=lambda one: columns[one])
    if columns[","] > 1 or delimiter == ",":
        return text
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return stream.getvalue()


def _differs(column: NDArray[Any], cells: list[str]) -> str | None:
    """Return how a column differs from its cells: numbers where all are numbers or missing, else the text itself."""
    known = [cell if _NUMBER.fullmatch(cell.strip(" \t")) else None for cell in cells]
    numeric = all(
        number is not None or cell.strip(" \t") in _MISSING for number, cell in zip(known, cells, strict=True)
    )
    if not numeric:
        same = column.dtype == object and column.tolist() == cells
        return None if same else f"text such as {next(c for c in cells if c not in known)[:40]!r} was read otherwise"
    numbers = [np.nan if number is None else float(number) for number in known]
    if column.dtype != np.float64:
        return f"numbers such as {cells[0][:40]!r} were read as text"
    return None if np.array_equal(column, numbers, equal_nan=True) else "other numbers"


def _as_pandas(table: Table, text: str) -> str | None:
    """Return where pandas finds other numbers; columns that it reads as text are compared in another function."""
    try:
        theirs = pd.read_csv(io.StringIO(text, newline=""), float_precision="round_trip", low_memory=False)
    except (ValueError, pd.errors.ParserError):
        return None
    if theirs.shape != (len(table), len(table.columns)):
        return None  # pandas reads the first column of longer rows as an index, and skips blank lines
    for ours, name in zip(table.columns.values(), theirs.columns, strict=True):
        numbers = theirs[name]
        if ours.dtype == object and numbers.dtype.kind in "iuf":
            return f"pandas finds numbers in {name[:40]!r}, secateur text"
        if (
            ours.dtype != object
            and numbers.dtype.kind in "iuf"
            and not np.allclose(ours, numbers, rtol=1e-15, atol=0, equal_nan=True)
        ):
            return f"pandas finds other numbers in {name[:40]!r}"
    return None


def _compared(table: Table, sound: Table) -> str:
    if list(table.columns) != list(sound.columns) or len(table) != len(sound):
        return ANOTHER
    pairs = ((table.columns[name], sound.columns[name]) for name in sound.columns)
    same = all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)
    return SAME if same else ANOTHER


def _table() -> pa.Table:
    frame = pd.DataFrame(_rows()[1:], columns=_rows()[0])
    numbers = {name: pd.to_numeric(frame[name]) for name in ("size", "count", "target")}
    return pa.Table.from_pandas(frame.assign(**numbers, weight=pd.to_numeric(frame["weight"].replace("NA", None))))


def _write_parquet(file: Path) -> None:
    pq.write_table(_table(), file)


def _change_parquet(source: Path, target: Path, rng: Rng) -> None:
    """Change the type of a column, names, rows, or how the file is written; or repeat a value very often."""
    table, way = _table(), rng.random()
    place = int(rng.integers(table.num_columns))
    if way < 0.03:
        target.write_bytes(_parquet_bomb(int(pick(rng, (2 * 10**6, 10**8)))))
        return
    if way < 0.55:
        table = table.set_column(place, table.column_names[place], _odd_column(table.num_rows, rng))
    elif way < 0.65:
        names = list(table.column_names)
        names[place] = pick(rng, ("", names[0], "\x1b[31m", "a\x00b", "x" * 10_000, "a.b", "\u202e"))
        table = table.rename_columns(names)
    elif way < 0.75:
        table = pick(rng, (table.slice(0, 0), table.select([]), table.select([place]), pa.concat_tables([table] * 300)))
    elif way < 0.85:
        table = table.replace_schema_metadata(
            {"pandas": pick(rng, (b"{", b"[" * 100_000, b"\xff", b"{}")), "ARROW:schema": b"x"}
        )
    options = pick(
        rng, ({}, {"compression": "zstd"}, {"compression": "gzip"}, {"row_group_size": 3}, {"version": "1.0"})
    )
    try:
        pq.write_table(table, target, **options)
    except (pa.ArrowException, ValueError, OSError):  # a type that Parquet does not have
        pq.write_table(_table(), target, **options)


def _odd_column(n: int, rng: Rng) -> pa.Array:
    whole = pa.array(rng.integers(0, 100, n))
    deep = pa.array([1] * n)
    for _ in range(int(rng.integers(1, 60))):
        deep = pa.ListArray.from_arrays(pa.array(range(n + 1), pa.int32()), deep)
    odd = (
        lambda: whole.cast(
            pick(rng, ("int8", "uint64", "float", "halffloat", "double", pa.decimal128(20, 3), "bool", "string"))
        ),
        lambda: pa.array([2**63 - 1, -(2**63)] + [2**53 + 1] * (n - 2)),
        lambda: pa.array([float("nan"), float("inf"), 5e-324] + [None] * (n - 3), pa.float64()),
        lambda: pa.array([b"\xff\xfe"] * n),
        lambda: pa.array(["a\x1fb", "\x00", "x" * 10_000] + [None] * (n - 3)),
        lambda: pa.array(["1", "2", "x"] + ["3"] * (n - 3)).dictionary_encode(),
        lambda: (
            whole.cast(pick(rng, ("date32", "timestamp[ns]", "duration[s]", "time64[us]")), safe=False)
            if rng.random() < 0.5
            else whole.cast("int32").cast("date32")
        ),
        lambda: pa.nulls(n),
        lambda: deep,
        lambda: pa.StructArray.from_arrays([whole, whole], ["a", "b"]),
        lambda: pa.array([[("k", 1)]] * n, pa.map_("string", "int64")),
    )
    try:
        return pick(rng, odd)()
    except pa.ArrowException:
        return pa.nulls(n)


@lru_cache(2)
def _parquet_bomb(n_rows: int) -> bytes:
    """Return a file of a few kilobytes that repeats one value many times."""
    group = min(n_rows, 10**6)
    rows, stream = (
        pa.table({"x": pa.DictionaryArray.from_arrays(np.zeros(group, np.int8), pa.array([1.5]))}),
        io.BytesIO(),
    )
    with pq.ParquetWriter(stream, rows.schema) as writer:
        for _ in range(n_rows // group):
            writer.write_table(rows)
    return stream.getvalue()


def _judge_parquet(table: Table, file: Path, sound: Table) -> str:
    """Return how the columns compare with the values of pyarrow."""
    found = pq.read_table(file)
    if found.column_names != list(table.columns) or found.num_rows != len(table):
        return f"pyarrow finds {found.num_rows} rows of {found.num_columns} columns"
    if found.num_rows > 10**5:
        return ANOTHER
    for name, column in table.columns.items():
        values = found.column(name).to_pylist()
        if column.dtype == np.float64:
            numbers = [np.nan if value is None else float(value) for value in values]
            same = np.array_equal(column, numbers, equal_nan=True)
        else:
            same = column.tolist() == ["" if value is None else str(value) for value in values]
        if not same:
            return f"column {name[:40]!r} differs"
    return _compared(table, sound)


def _write_prices(file: Path) -> None:
    file.write_bytes(_text(_prices()))


def _change_prices(source: Path, target: Path, rng: Rng) -> None:
    target.write_bytes(_changed(_prices(), rng))


def _judge_prices(found: Any, file: Path, sound: Any) -> str:
    """Return how prices and groups compare with those computed line by line."""
    names, *rows = [row for row in csv.reader(io.StringIO(file.read_text("utf-8-sig"), newline="")) if row]
    lines = [dict(zip(names, row, strict=True)) for row in rows]
    prices, groups = {}, {}
    for line in lines:
        group = line["group"] if {"group", "discount_cost"} <= set(names) else ""
        price = float(line["discount_cost"] if group else line["cost"])
        prices[line["feature"]] = price
        if group:
            shared = groups.setdefault(group, (round(float(line["cost"]) - price, 9), []))
            shared[1].append(line["feature"])
    if (prices, groups) != found:
        wrong = next((name for name in prices if prices[name] != found[0].get(name)), "a group")
        return f"{wrong[:40]!r} has another price, or name, in the file"
    return SAME if found == sound else ANOTHER


TABLES = {
    "prices .csv": Kind(".csv", (_write_prices,), _change_prices, read_prices, _judge_prices),
    "data .csv": Kind(".csv", (_write_csv,), _change_csv, read_table, _judge_csv),
    "data .csv.gz": Kind(".csv.gz", (_write_gzip,), _change_gzip, read_table, _judge_csv),
    "data .parquet": Kind(".parquet", (_write_parquet,), _change_parquet, read_table, _judge_parquet),
}
