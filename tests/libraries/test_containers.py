"""Test that rows in arrays, frames and Arrow tables are read as the same numbers."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestRegressor

import secateur as sc
from secateur.libraries import adapt


@pytest.fixture(scope="module")
def frame():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::7, 1] = np.nan
    return pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.fixture(scope="module")
def model(frame):
    return RandomForestRegressor(3, random_state=0).fit(frame, np.arange(60.0))


@pytest.mark.parametrize("kind", [pa.table, pa.RecordBatch.from_pandas])
def test_arrow_tables_are_read_and_their_names_checked(kind, frame, model):
    rows = adapt(model).rows(kind(frame))
    assert np.array_equal(rows, frame.to_numpy(np.float32), equal_nan=True)
    with pytest.raises(ValueError, match="the same names in another order"):
        adapt(model).rows(kind(frame[["b", "a", "c"]]))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_missing_values_of_pandas_become_nan(backend, frame, model):
    nullable = frame.convert_dtypes(dtype_backend=backend)
    assert nullable["b"].isna().any()
    assert np.array_equal(adapt(model).rows(nullable), frame.to_numpy(np.float32), equal_nan=True)


def test_a_column_named_column_names_is_a_column():
    frame = pd.DataFrame(np.eye(4), columns=["column_names", "schema", "columns", "b"])
    model = RandomForestRegressor(2, random_state=0).fit(frame, np.arange(4.0))
    assert len(sc.prune_path(model, frame, np.arange(4.0)))


def test_catboost_reads_categories_of_arrow_tables_and_frames_alike(frame):
    from catboost import CatBoostRegressor

    colours = frame.assign(d=pd.Categorical(np.random.default_rng(1).choice(["red", "green", "blue"], 60)))
    y = np.arange(60.0) + 50 * (colours["d"] == "red")
    model = CatBoostRegressor(4, depth=3, cat_features=["d"], silent=True, thread_count=1, allow_writing_files=False)
    adapter = adapt(model.fit(colours, y))
    assert np.array_equal(adapter.rows(pa.table(colours)), adapter.rows(colours), equal_nan=True)
