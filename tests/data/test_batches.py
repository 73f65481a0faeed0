"""Rows read in batches give the same results as rows in memory, and are never in memory as a whole."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, make_friedman1
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import secateur as sc
from secateur.data import batches
from secateur.data.rows import read_sample
from secateur.errors import TrainingRowsWarning
from secateur.libraries import adapt

FRIEDMAN = make_friedman1(600, noise=1.0, random_state=0)


@pytest.fixture
def small_parts(monkeypatch):
    """Make parts so small that there are many, the last one smaller."""
    monkeypatch.setattr(batches, "_VALUES_PER_BATCH", 700)


@pytest.fixture
def mapped(tmp_path):
    """Return the rows as a memory map."""
    np.save(tmp_path / "rows.npy", FRIEDMAN[0])
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


def write_parquet(file, X, y):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = [f"x{i}" for i in range(X.shape[1])]
    parquet.write_table(pa.table([*map(pa.array, X.T), pa.array(y)], names=[*names, "y"]), file, row_group_size=100)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(
    "model", [RandomForestRegressor(20, random_state=0), GradientBoostingRegressor(random_state=0)]
)
def test_a_memory_map_gives_what_the_matrix_gives(mapped, model):
    X, y = FRIEDMAN
    model.fit(X[:300], y[:300])
    assert len(list(batches.parts_of(mapped))) == 9
    from_map = sc.prune(model, mapped[300:], y[300:], max_nodes=200)
    from_matrix = sc.prune(model, X[300:], y[300:], max_nodes=200)
    np.testing.assert_array_equal(from_map.predict(X), from_matrix.predict(X))


@pytest.mark.usefixtures("small_parts")
def test_an_initial_model_starts_the_sums_in_every_part(mapped):
    X, y = FRIEDMAN
    model = GradientBoostingRegressor(n_estimators=10, init=LinearRegression(), random_state=0).fit(X, y)
    whole, parts = (read_sample(adapt(model), rows, y) for rows in (X, mapped))
    np.testing.assert_array_equal(whole.leaves, parts.leaves)
    np.testing.assert_allclose(whole.offset, parts.offset, rtol=1e-14)


@pytest.mark.usefixtures("small_parts")
def test_a_parquet_file_is_read_part_by_part(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    write_parquet(tmp_path / "rows.parquet", X[1::2], y[1::2])
    rows, target = sc.read_batches(tmp_path / "rows.parquet", target="y")
    assert rows.shape == X[1::2].shape
    parts = list(rows.parts())
    assert len(parts) > 5
    np.testing.assert_array_equal(np.concatenate(parts), X[1::2])
    path = sc.prune_path(model, rows, target).evaluate(rows, target)
    other = sc.prune_path(model, X[1::2], y[1::2]).evaluate(X[1::2], y[1::2])
    for name, column in other.table.items():
        np.testing.assert_array_equal(path.table[name], column, err_msg=name)
    small = sc.prune(model, rows, target, max_nodes=100)
    assert sc.as_forest(small).n_nodes <= 100


def test_training_rows_in_batches_are_held_out_with_a_warning(tmp_path):
    X, y = FRIEDMAN
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    write_parquet(tmp_path / "rows.parquet", X, y)
    rows, target = sc.read_batches(tmp_path / "rows.parquet", target="y")
    with pytest.warns(TrainingRowsWarning, match="trained on"):
        sc.prune(model, rows, target, max_nodes=100)
    with pytest.raises(ValueError, match="read in batches"):
        sc.prune(model, rows, target, max_nodes=100, validation="cv")


def test_files_that_cannot_be_read_in_batches_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "rows.parquet"
    parquet.write_table(pa.table({"x": [1.0], "colour": ["red"], "y": [0.5]}), file)
    with pytest.raises(ValueError, match=r"'colour' of .* are not numeric"):
        sc.read_batches(file, target="y")
    with pytest.raises(ValueError, match="no column 'z'"):
        sc.read_batches(file, target="z", features=["x"])
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sc.read_batches(tmp_path / "none.parquet", target="y")
    file.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        sc.read_batches(file, target="y")


def test_batches_with_another_number_of_rows_are_refused():
    X, y = FRIEDMAN
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    for parts in ([X[:300]], [X, X]):
        with pytest.raises(ValueError, match="600 rows, but its batches have"):
            sc.prune_path(model, sc.Batches(X.shape, lambda parts=parts: iter(parts)), y)


@pytest.mark.usefixtures("small_parts")
def test_a_parquet_file_is_never_in_memory_as_a_whole(tmp_path):
    pa = pytest.importorskip("pyarrow")
    X, y = np.random.default_rng(0).random((20_000, 10)), np.zeros(20_000)
    write_parquet(tmp_path / "rows.parquet", X, y)
    rows, _ = sc.read_batches(tmp_path / "rows.parquet", target="y")
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in rows.parts()]
    assert max(held) < X.nbytes / 10
