"""Load data sets as numeric arrays from a folder, installed packages, a formula, or OpenML."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
_SUFFIXES = (".csv", ".csv.gz", ".parquet")

Task = Literal["classification", "regression"]
Arrays = tuple[Any, Any]


class DataNotFoundError(LookupError):
    """Raise if none of the sources of a data set has it."""


@dataclass(frozen=True, eq=False)
class Data:
    """Rows and targets as numbers.

    Attributes
    ----------
    name : str
    task : "classification" or "regression"
    X : (n_rows, n_features) float64
    y : (n_rows,)
        Class codes, or float64.
    source : str
        The source it was loaded from.
    """

    name: str
    task: Task
    X: NDArray[np.float64]
    y: NDArray[Any]
    source: str

    def sample(self, n_rows: int, seed: int) -> "Data":
        """Return at most `n_rows` rows, drawn without replacement."""
        rows = np.random.default_rng(seed).permutation(len(self.y))[:n_rows]
        return replace(self, X=self.X[rows], y=self.y[rows])


@dataclass(frozen=True)
class DataSet:
    """A data set and its sources; a file of datasets/ exposes one as `DATA`.

    Attributes
    ----------
    name : str
    task : "classification" or "regression"
    shared : str, optional
        File name without suffix in the shared folder; the target is the last column.
    packaged : tuple of "module:function", optional
        Functions of installed packages that return a mapping with `data` and `target`; the rows of several are stacked.
    make : callable, optional
        Returns (X, y), for synthetic data.
    openml : int, optional
        The number of the data set on OpenML.
    """

    name: str
    task: Task
    shared: str | None = None
    packaged: tuple[str, ...] = ()
    make: Callable[[], Arrays] | None = None
    openml: int | None = None


def load(data_set: DataSet, *, shared: Path = SHARED, fetch: Callable[..., Any] | None = None) -> Data:
    """Return a data set from the first source that has it.

    `shared` is the folder of data files, `fetch` replaces `sklearn.datasets.fetch_openml`.

    Raises
    ------
    DataNotFoundError
        If no source has it; the message lists the sources tried.
    """
    tried = []
    for source in (_from_folder, _from_packages, _from_formula, _from_openml):
        found, where = source(data_set, shared, fetch)
        if found is not None:
            X, y = found
            return Data(data_set.name, data_set.task, _as_matrix(X), _as_target(y, data_set.task), where)
        tried.append(where)
    raise DataNotFoundError(
        f"The data set {data_set.name!r} was not found: {'; '.join(tried)}. "
        f"Put {data_set.shared or data_set.name}.csv into {shared}, or run with a network connection."
    )


def _from_folder(data_set: DataSet, shared: Path, fetch: Any) -> tuple[Arrays | None, str]:
    import pandas

    for suffix in _SUFFIXES:
        file = shared / f"{data_set.shared}{suffix}"
        if data_set.shared and file.is_file():
            frame = pandas.read_parquet(file) if suffix == ".parquet" else pandas.read_csv(file)
            return (frame.iloc[:, :-1], frame.iloc[:, -1]), f"file {file.name}"
    return None, f"no file for it in {shared}"


def _from_packages(data_set: DataSet, shared: Path, fetch: Any) -> tuple[Arrays | None, str]:
    if not data_set.packaged:
        return None, "no package is known to carry it"
    parts = []
    for source in data_set.packaged:
        module, function = source.split(":")
        try:
            parts.append(getattr(import_module(module), function)())
        except ImportError:
            return None, f"the package {module.split('.')[0]} is not installed"
    X = np.concatenate([np.asarray(part["data"]) for part in parts])
    return (X, np.concatenate([np.asarray(part["target"]) for part in parts])), " + ".join(data_set.packaged)


def _from_formula(data_set: DataSet, shared: Path, fetch: Any) -> tuple[Arrays | None, str]:
    if data_set.make is None:
        return None, "no formula makes it"
    return data_set.make(), "made by formula"


def _from_openml(data_set: DataSet, shared: Path, fetch: Any) -> tuple[Arrays | None, str]:
    if data_set.openml is None:
        return None, "no OpenML number is known"
    if fetch is None:
        from sklearn.datasets import fetch_openml

        fetch = fetch_openml
    try:
        found = fetch(data_id=data_set.openml, as_frame=True)
    except OSError as error:  # what urllib raises without a network
        return None, f"OpenML {data_set.openml} cannot be reached ({error})"
    return (found["data"], found["target"]), f"OpenML {data_set.openml}"


def _as_matrix(X: Any) -> NDArray[np.float64]:
    """Return float64, text columns as codes in sorted order, missing values as NaN."""
    import pandas

    frame = pandas.DataFrame(X)
    columns = []
    for _, column in frame.items():
        if not pandas.api.types.is_numeric_dtype(column):
            codes = column.astype("category").cat.codes.astype(float)
            column = codes.where(codes >= 0)
        columns.append(column.to_numpy(np.float64, na_value=np.nan))
    return np.ascontiguousarray(np.column_stack(columns))


def _as_target(y: Any, task: Task) -> NDArray[Any]:
    y = np.asarray(y).ravel()
    return np.unique(y, return_inverse=True)[1] if task == "classification" else y.astype(np.float64)
