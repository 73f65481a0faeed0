"""Data files: the same rows from every format, as the model was trained on them."""

import builtins
import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cases import case

import secateur as sc
from secateur.data.tables import read_table


def write(folder, text, name="rows.csv"):
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


def table_of(folder, text):
    return read_table(write(folder, text))


@pytest.fixture
def no_pandas(monkeypatch):
    original = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("pandas", "pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


def test_numbers_become_float_and_the_rest_stays_text(tmp_path):
    table = table_of(tmp_path, "a,b,c\n1,x,2.5\n-3e2,7,inf\n")
    assert table.columns["a"].dtype == np.float64
    assert table.columns["a"].tolist() == [1.0, -300.0]
    assert table.columns["b"].tolist() == ["x", "7"]
    assert table.columns["c"].tolist() == [2.5, np.inf]
    assert len(table) == 2


@pytest.mark.parametrize("mark", ["", "NA", "nan", "NaN", "?", " ", "null"])
def test_missing_marks_among_numbers_are_nan(mark, tmp_path):
    column = table_of(tmp_path, f"a,b\n1,0\n{mark},0\n2,0\n").columns["a"]
    np.testing.assert_array_equal(column, [1.0, np.nan, 2.0])


def test_text_reads_as_pandas_reads_it(tmp_path):
    file = write(tmp_path, 'a,b\n"one, two",1\n,2\n?,3\nNA,4\n"with ""quotes""",5\n')
    X, _ = read_table(file).split(None)
    pd.testing.assert_frame_equal(X, pd.read_csv(file), check_dtype=False)


def test_formats_give_the_same_rows(tmp_path):
    text = "a,b,flag,y\n1,x,True,0\n2.5,,False,1\n,z,True,1\n"
    pd.read_csv(write(tmp_path, text)).to_parquet(tmp_path / "rows.parquet")
    write(tmp_path, text, "rows.csv.gz")
    first, y = read_table(tmp_path / "rows.csv").split("y")
    assert first["flag"].tolist() == [1.0, 0.0, 1.0]
    for name in ("rows.csv.gz", "rows.parquet"):
        X, other = read_table(tmp_path / name).split("y")
        pd.testing.assert_frame_equal(X, first)
        assert other.dtype == y.dtype
        assert other.tolist() == y.tolist() == [0, 1, 1]


def test_parquet_types_become_numbers_or_text(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "category": pd.Categorical(["u", "v", None]),
            "when": pd.to_datetime(["2024-01-01", "2024-01-02", None]),
            "small": np.array([1, 2, 3], np.int8),
        }
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    columns = read_table(tmp_path / "rows.parquet").columns
    np.testing.assert_array_equal(columns["whole"], [1.0, np.nan, 3.0])
    assert columns["category"].tolist() == ["u", "v", ""]
    assert columns["when"].dtype == object
    assert columns["small"].tolist() == [1.0, 2.0, 3.0]


def test_columns_are_picked_by_the_names_of_the_model_and_extra_ones_ignored(tmp_path):
    table = table_of(tmp_path, "id,b,y,a\nr1,1,0,2\nr2,3,1,4\n")
    X, y = table.split("y", ["a", "b"])
    assert list(X.columns) == ["a", "b"]
    assert X.to_numpy().tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert y.tolist() == [0, 1]


def test_without_names_all_columns_but_target_and_dropped_ones_in_file_order(tmp_path):
    table = table_of(tmp_path, "b,y,w,a\n1,0,9,2\n3,1,9,4\n")
    X, _ = table.split("y", drop=["w"])
    assert isinstance(X, np.ndarray)
    assert X.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert table.split(None)[1] is None
    assert table.split(None)[0].shape == (2, 4)


def test_missing_columns_are_named_with_the_nearest(tmp_path):
    table = table_of(tmp_path, "age,y\n1,0\n")
    with pytest.raises(ValueError, match=r"no column 'height', 'weight'; it has 'age', 'y'"):
        table.split("y", ["height", "weight", "age"])
    with pytest.raises(ValueError, match=r"no column 'ages'; it has 'age'\."):
        table.split("ages")


def test_a_table_without_features_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no column besides the target"):
        table_of(tmp_path, "y\n1\n").split("y")


def test_numbers_refuses_a_text_column(tmp_path):
    table = table_of(tmp_path, "w,a\nheavy,1\n")
    with pytest.raises(ValueError, match=r"'w'.*contains text such as 'heavy'"):
        table.numbers("w")
    assert table.numbers("a").tolist() == [1.0]


def test_take_returns_the_given_rows(tmp_path):
    table = table_of(tmp_path, "a,b\n1,x\n2,y\n3,z\n").take(np.array([0, 2]))
    assert table.columns["a"].tolist() == [1.0, 3.0]
    assert table.columns["b"].tolist() == ["x", "z"]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["0", "1", "1"], [0, 1, 1]),
        (["1.0", "2.0", "1.0"], [1.0, 2.0, 1.0]),
        (["0.5", "1", "0.5"], [0.5, 1.0, 0.5]),
        (["no", "yes", "no"], ["no", "yes", "no"]),
        (["0", "1", "0"], ["0", "1", "0"]),
        (["True", "False", "True"], [True, False, True]),
        (["True", "False", "True"], ["True", "False", "True"]),
        (["-1", "1", "-1"], [-1, 1, -1]),
    ],
)
def test_labels_match_the_classes_of_the_model(texts, labels, tmp_path):
    """Labels read from a file are those the model was trained with: int, float, bool or str."""
    labels = np.array(labels)
    X = np.arange(3.0)[:, None]
    model = (
        DecisionTreeRegressor().fit(X, labels)
        if labels.dtype == float and 0.5 in labels
        else DecisionTreeClassifier().fit(X, labels)
    )
    table = table_of(tmp_path, "a,y\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    _, y = table.split("y", classes=getattr(model, "classes_", None))
    assert (y == labels).all()
    path = sc.prune_path(model, X, y)
    assert path.table["risk"][0] == 0


def test_whole_labels_are_integers(tmp_path):
    assert table_of(tmp_path, "a,y\n0,1.0\n0,2.0\n").split("y")[1].dtype == np.int64
    assert table_of(tmp_path, "a,y\n0,1\n0,\n").split("y")[1].dtype == np.float64


def test_categories_of_a_frame_are_found_again_in_a_file(tmp_path):
    fitted = case("hist boosting classifier, categories")
    assert isinstance(fitted.model, HistGradientBoostingClassifier)
    for name in ("rows.csv", "rows.parquet"):
        frame = fitted.X_new.assign(y=0)
        frame.to_csv(tmp_path / name, index=False) if name == "rows.csv" else frame.to_parquet(tmp_path / name)
        X, _ = read_table(tmp_path / name).split("y", fitted.model.feature_names_in_)
        np.testing.assert_array_equal(fitted.model.predict_proba(X), fitted.model.predict_proba(fitted.X_new))


@pytest.mark.usefixtures("no_pandas")
def test_text_without_pandas_names_the_extra_and_numbers_need_none(tmp_path):
    table = table_of(tmp_path, "a,b\n1,x\n")
    with pytest.raises(ImportError, match=r"'b'.*secateur\[pandas\]"):
        table.split(None)
    assert table.split(None, ["a"])[0].tolist() == [[1.0]]


@pytest.mark.usefixtures("no_pandas")
def test_parquet_without_pyarrow_names_the_extra(tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r"secateur\[parquet\]"):
        read_table(tmp_path / "rows.parquet")


def test_blank_lines_and_a_byte_order_mark_do_not_count(tmp_path):
    table = table_of(tmp_path, "\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n\r\n")
    assert list(table.columns) == ["a", "b"]
    assert table.columns["b"].tolist() == [2.0, 4.0]


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_file_is_refused(text, tmp_path):
    with pytest.raises(ValueError, match="is empty, but a data file needs a line of column names"):
        table_of(tmp_path, text)


def test_a_header_without_rows_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no rows"):
        table_of(tmp_path, "a,b\n\n")


def test_repeated_column_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match="several columns named 'a'"):
        table_of(tmp_path, "a,b,a\n1,2,3\n")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", b"a,b\n\xff\xfe\x00,1\n"),
        ("rows.csv", b'a,b\n"1,2\n'),
        ("rows.csv.gz", b"not gzip"),
        ("rows.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 1000, mtime=0)[:30]),
        ("rows.parquet", b"PAR1 not really"),
        ("rows.parquet", b""),
    ],
)
def test_a_damaged_file_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as .*Save"):
        read_table(tmp_path / name)


def test_unknown_suffix_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"\.csv, \.csv\.gz, \.parquet"):
        read_table(write(tmp_path, "a\n1\n", "rows.xlsx"))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        read_table(tmp_path / "gone.csv")


def test_control_characters_in_text_are_kept(tmp_path):
    table = table_of(tmp_path, "a,b\n1,x\x1fy\n2,z\n")
    assert table.columns["b"].tolist() == ["x\x1fy", "z"]
    assert table.columns["a"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("text", ["1_000", "\uff11\uff12", "\u0663", "7\x1f", "7\x85"])
def test_what_pandas_takes_for_text_is_no_number(tmp_path, text):
    assert table_of(tmp_path, f"a\n1\n{text}\n").columns["a"].tolist() == ["1", text]


def test_the_marks_of_old_windows_for_missing_are_known(tmp_path):
    np.testing.assert_array_equal(table_of(tmp_path, "a\n1\n1.#IND\n-1.#QNAN\n").columns["a"], [1.0, np.nan, np.nan])


def test_columns_of_names_stay_text(tmp_path):
    file = write(tmp_path, "feature,cost\n0012,1\n1234567,2\n")
    assert read_table(file, text=["feature"]).columns["feature"].tolist() == ["0012", "1234567"]
    pd.DataFrame({"feature": [12, 1234567], "group": [3.0, np.nan]}).to_parquet(tmp_path / "p.parquet")
    table = read_table(tmp_path / "p.parquet", text=["feature", "group"])
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        "feature": ["12", "1234567"],
        "group": ["3", ""],
    }


def test_files_that_unpack_to_far_more_than_their_size_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("secateur.files.size_limits.MAX_BYTES", 2**20)
    file = write(tmp_path, "a,b\n" + "0,0\n" * 2**19, "rows.csv.gz")
    with pytest.raises(ValueError, match=r"would unpack to more than.*gunzip"):
        read_table(file)
    pd.DataFrame({"a": np.zeros(10**6)}).to_parquet(tmp_path / "p.parquet")
    with pytest.raises(ValueError, match=r"would unpack to.*read_batches"):
        read_table(tmp_path / "p.parquet")


def test_texts_of_parquet_come_back_whatever_way_they_are_stored(tmp_path):
    texts = ["b", None, "a", "b"]
    frame = pd.DataFrame({"plain": texts, "category": pd.Categorical(texts), "none": [None] * 4})
    frame.to_parquet(tmp_path / "p.parquet")
    columns = read_table(tmp_path / "p.parquet").columns
    assert columns["plain"].tolist() == columns["category"].tolist() == ["b", "", "a", "b"]
    assert columns["none"].tolist() == [""] * 4


def test_parquet_names_that_are_not_utf8_are_refused(tmp_path):
    pd.DataFrame({"name": [1.0]}).to_parquet(tmp_path / "rows.parquet", index=False)
    whole = (tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "rows.parquet").write_bytes(whole.replace(b"name", b"n\xf6me"))
    with pytest.raises(ValueError, match=r"cannot be read as parquet .* Save the data again") as caught:
        read_table(tmp_path / "rows.parquet")
    assert not isinstance(caught.value, UnicodeError)
