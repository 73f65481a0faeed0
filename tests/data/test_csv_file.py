"""CSV files: with and without pyarrow the same values, and the same files are refused."""

import builtins
import csv
import io

import numpy as np
import pytest

from secateur.data import csv_file
from secateur.data.csv_file import read_csv
from secateur.errors import DamagedFileError


@pytest.fixture(params=["pyarrow", "csv"])
def reader(request, monkeypatch):
    """Return the reader with pyarrow, which may not leave the work to the csv module, and without."""
    if request.param == "pyarrow":
        monkeypatch.setattr(csv_file, "_read_plain", None)
        return read_csv
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    return read_csv


@pytest.fixture
def write(tmp_path):
    def written(text):
        (tmp_path / "rows.csv").write_bytes(text.encode())
        return tmp_path / "rows.csv"

    return written


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n"one, two",1\n,2\n"with ""quotes""",5\n"",6\n',
        'a,b\r\n"two\r\nlines",1\r\nx"y,2',
        '"a","b ""c"""\r1,2\r3,4\r',
        "a\n0.1\n0.30000000000000004\n5e-324\n1.7976931348623157e308\n-.5e-3\n123456789012345678901234567890\n",
        "a,b\n 7 ,inf\n\t3,-Infinity\n1.,.5\n",
        "a,b\n1,\x00\n2,\u0663\n",
    ],
)
def test_cells_are_those_of_the_csv_module_and_numbers_those_of_python(reader, write, text):
    names, *rows = csv.reader(io.StringIO(text, newline=""))
    columns = reader(write(text))
    assert list(columns) == names
    for column, cells in zip(columns.values(), zip(*rows, strict=True), strict=True):
        expected = cells if column.dtype == object else [float(cell) for cell in cells]
        assert column.tolist() == list(expected)
    assert columns[names[-1]].dtype == (object if "\x00" in text else np.float64)


def test_missing_values_of_quoted_and_plain_cells(reader, write):
    columns = reader(write('a,b\n1,x\nNA,\n"?",NA\n"",y\n-nan,z\n'))
    np.testing.assert_array_equal(columns["a"], [1.0, *[np.nan] * 4])
    assert columns["b"].tolist() == ["x", "", "NA", "y", "z"]


def test_random_numbers_are_read_bit_for_bit(reader, write):
    numbers = np.random.default_rng(0).integers(0, 2**64, 2000, np.uint64).view(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    column = reader(write("a\n" + "\n".join(map(repr, numbers.tolist()))))["a"]
    assert column.tobytes() == numbers.tobytes()


@pytest.mark.parametrize("cell", ["+1", "1e400", "NAN", "nan(1)", "1_000", "text", " NA "])
def test_a_late_cell_that_pyarrow_reads_otherwise_decides_like_an_early_one(cell, write):
    late = read_csv(write("a\n" + "1\n" * 150 + cell))["a"]
    early = read_csv(write(f"a\n{cell}\n" + "1\n" * 150))["a"]
    assert late.dtype == early.dtype
    np.testing.assert_array_equal(late, np.roll(early, -1))


@pytest.mark.parametrize("text", ['a,b\n"x"y,1\n', 'a,b\n1,"x\n2,y\n', 'a,b\n1,"x""', '\ufeff"a"b,c\n1,2\n'])
def test_malformed_quotes_are_refused(write, text):
    """pyarrow would read `"x"y` as `xy`, and the rest of a file after an open quote as one cell."""
    with pytest.raises(DamagedFileError, match=r"cannot be read as .*(expected after|unexpected end)"):
        read_csv(write(text))


def test_ragged_row_is_found_by_line(write):
    for text in ('a,b\n"1\n1",2\n\n3\n4,5\n', 'a,b\n"1\n1",2\n\n' + "1,2\n" * 200 + "3\n"):
        line = text.count("\n") - text.endswith("5\n")
        with pytest.raises(DamagedFileError, match=rf"Line {line} of .* has 1 fields, but the first line names 2"):
            read_csv(write(text))


def test_text_after_chunks_of_numbers_makes_the_whole_column_text(write, monkeypatch):
    monkeypatch.setattr(csv_file, "_CHUNK_ROWS", 3)
    monkeypatch.setattr(csv_file, "_GUESSED_ROWS", 3)
    columns = read_csv(write("a,b\n" + "".join(f"{i},{'x' if i == 7 else i}\n" for i in range(8))))
    assert columns["a"].tolist() == list(range(8))
    assert columns["b"].tolist() == ["0", "1", "2", "3", "4", "5", "6", "x"]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_are_noticed(reader, write, delimiter):
    rows = [["a", "b c", 'd "e"'], ["1", "x", "0.5"], ["2", "y, z", "1.5"], ["3", f"u{delimiter}v", ""]]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    columns = reader(write(text.getvalue()))
    assert list(columns) == rows[0]
    assert columns["a"].tolist() == [1.0, 2.0, 3.0]
    assert columns["b c"].tolist() == ["x", "y, z", f"u{delimiter}v"]
    assert columns['d "e"'][:2].tolist() == [0.5, 1.5]


def test_a_header_with_commas_is_split_at_commas(reader, write):
    assert list(reader(write("a;b,c\n1,2\n"))) == ["a;b", "c"]
    assert list(reader(write('"a;b"\n1\n'))) == ["a;b"]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_malformed_quotes_between_other_delimiters_are_refused(write, delimiter):
    with pytest.raises(DamagedFileError, match="cannot be read as"):
        read_csv(write(f'a{delimiter}b\n"x"y{delimiter}1\n'))


def test_a_ragged_row_names_the_delimiter(write):
    with pytest.raises(DamagedFileError, match="the delimiter, here ';', need quotes"):
        read_csv(write("a;b\n1;2;3\n"))
