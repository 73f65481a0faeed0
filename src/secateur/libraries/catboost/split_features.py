"""Read the split conditions of CatBoost's trees as features and thresholds.

A numeric condition is a column and a border: a row fulfils it if `x > border`. All other conditions (one category, a
categorical statistic, a feature computed from a text or an embedding) refer to features that are not columns of the
user's data. Each such hidden feature gets a column after the user's columns. Its value is the number of the feature's
borders that a row exceeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from secateur._util.text import quoted
from secateur.errors import UnsupportedModelError
from secateur.libraries.catboost.flatbuffer import FlatTable, damaged

# Field numbers in the table of trees, counted from 0.
_CATS, _FLOATS, _ONE_HOTS, _CTRS, _TEXTS, _ESTIMATED, _EMBEDDINGS = 4, 5, 6, 7, 12, 13, 18
_AS_TRUE = 2
_CTR_TYPES = ("Borders", "Buckets", "BinarizedTargetMeanValue", "FloatTargetMeanValue", "Counter", "FeatureFreq")


@dataclass(frozen=True, eq=False)
class SplitConditions:
    """Hold all split conditions of a model, in CatBoost's order, and the columns they refer to.

    Attributes
    ----------
    column : (n_conditions,) int32
        The user's column, or a hidden column after these.
    threshold : (n_conditions,) float64
        A row fulfils the condition if `x > threshold`.
    missing_is_false : (n_conditions,) bool
        Whether a missing value does not fulfil the condition.
    names : tuple of str
        The names of all columns; that of a hidden column describes its feature.
    n_columns : int
        Number of the user's columns.
    numeric : tuple of int
        The user's numeric columns.
    """

    column: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_is_false: NDArray[np.bool_]
    names: tuple[str, ...]
    n_columns: int
    numeric: tuple[int, ...]

    @property
    def hidden(self) -> NDArray[np.intp]:
        """The conditions on hidden columns."""
        return np.flatnonzero(self.column >= self.n_columns)


def read_conditions(trees: FlatTable) -> SplitConditions:
    """Return the split conditions of a model from its table of trees."""
    columns = {kind: _columns(trees, kind) for kind in (_FLOATS, _CATS, _TEXTS, _EMBEDDINGS)}
    listed = [flat for kind in columns.values() for flat, _ in kind.values()]
    n_columns = len(listed)
    if sorted(listed) != list(range(n_columns)):
        raise damaged("its features do not refer to each column exactly once")
    found = _Collected(n_columns)
    for feature in trees.tables(_FLOATS):
        found.add_numeric(feature.number(2, "i", -1), feature.vector(3, "<f4"), feature.number(5, "b") != _AS_TRUE)
    for feature in trees.tables(_ESTIMATED):
        found.add_hidden(_estimated_name(feature, columns), len(feature.vector(3, "<f4")))
    for feature in trees.tables(_ONE_HOTS):
        name = _name(columns[_CATS], feature.number(0, "i", -1))
        for value in feature.vector(1, "<i4").tolist():
            found.add_hidden(f"{name} is category {value & 0xFFFFFFFF:08x}", 1)
    for feature in trees.tables(_CTRS):
        found.add_hidden(_ctr_name(feature, columns), len(feature.vector(1, "<f4")))
    names = [str(i) for i in range(n_columns)]
    for kind in columns.values():
        for flat, name in kind.values():
            names[flat] = name
    return SplitConditions(
        column=np.concatenate([np.empty(0, np.int32), *found.column]),
        threshold=np.concatenate([np.empty(0), *found.threshold]),
        missing_is_false=np.concatenate([np.empty(0, bool), *found.missing_is_false]),
        names=(*names, *_distinct(found.names)),
        n_columns=n_columns,
        numeric=tuple(sorted(flat for flat, _ in columns[_FLOATS].values())),
    )


@dataclass
class _Collected:
    """Collect split conditions feature by feature."""

    n_columns: int
    column: list[NDArray[np.int32]] = field(default_factory=list)
    threshold: list[NDArray[np.float64]] = field(default_factory=list)
    missing_is_false: list[NDArray[np.bool_]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add_numeric(self, column: int, borders: NDArray[np.float32], missing_is_false: bool) -> None:
        if not (np.diff(borders) > 0).all() or np.isnan(borders).any():
            raise damaged(f"the borders of column {column} are not increasing")
        self._add(column, borders.astype(np.float64), missing_is_false)

    def add_hidden(self, name: str, n_borders: int) -> None:
        self._add(self.n_columns + len(self.names), np.arange(n_borders, dtype=np.float64) + np.float64(0.5), True)
        self.names.append(name)

    def _add(self, column: int, threshold: NDArray[np.float64], missing_is_false: bool) -> None:
        self.column.append(np.full(len(threshold), column, np.int32))
        self.threshold.append(threshold)
        self.missing_is_false.append(np.full(len(threshold), missing_is_false))


def _columns(trees: FlatTable, kind: int) -> dict[int, tuple[int, str]]:
    """Return the column and name of each feature of a kind, keyed by its index within the kind."""
    index, flat, name = (1, 2, 4) if kind == _FLOATS else (0, 1, 2)
    found = {}
    for feature in trees.tables(kind):
        column = int(feature.number(flat, "i", -1))
        found[int(feature.number(index, "i", -1))] = (column, feature.text(name) or str(column))
    if len(found) != len(trees.tables(kind)) or min(found, default=0) < 0:
        raise damaged("two of its features have the same index")
    return found


def _name(columns: dict[int, tuple[int, str]], index: int) -> str:
    if index not in columns:
        raise damaged(f"it uses feature {index}, which it does not list")
    return columns[index][1]


def _estimated_name(feature: FlatTable, columns: dict[int, dict[int, tuple[int, str]]]) -> str:
    embedding = feature.number(4, "b") == 1
    name = _name(columns[_EMBEDDINGS if embedding else _TEXTS], feature.number(0, "i", -1))
    return f"{'embedding' if embedding else 'text'}({name}) {feature.number(2, 'i', -1)}"


def _ctr_name(feature: FlatTable, columns: dict[int, dict[int, tuple[int, str]]]) -> str:
    """Return the name of a categorical statistic: the features it combines, its kind and its prior."""
    ctr = feature.table(0)
    base = ctr.table(0) if ctr else None
    combined = base.table(0) if base else None
    if ctr is None or base is None or combined is None:
        raise damaged("a categorical statistic does not list its features")
    parts = [_name(columns[_CATS], i) for i in combined.vector(0, "<i4").tolist()]
    for index, border in combined.vector(1, "<i4,<f4").tolist():
        parts.append(f"{_name(columns[_FLOATS], index)}>{border:.4g}")
    for index, value in combined.vector(2, "<i4,<i4").tolist():
        parts.append(f"{_name(columns[_CATS], index)}={value & 0xFFFFFFFF:08x}")
    kind = int(base.number(1, "b"))
    if not 0 <= kind < len(_CTR_TYPES):
        raise damaged(f"it has a categorical statistic of the unknown type {kind}")
    prior = f"{ctr.number(2, 'f'):g}/{ctr.number(3, 'f', 1.0):g}"
    return f"ctr({', '.join(parts)}) {_CTR_TYPES[kind]} {ctr.number(1, 'i')} prior {prior}"


def _distinct(names: list[str]) -> list[str]:
    """Return the names, with a counter appended to repeated ones."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


def source_column(feature: str, names: Sequence[str]) -> int:
    """Return the column from which a hidden feature is derived.

    Raises
    ------
    UnsupportedModelError
        If it may be derived from several columns.
    """
    sources = [k for k, name in enumerate(names) if feature.startswith(_derived_prefixes(name))]
    if len(sources) != 1 or any(character in names[sources[0]] for character in ",>="):
        raise UnsupportedModelError(
            f"The model uses the feature {quoted([feature])}, which may be derived from several columns. Buying "
            "columns one at a time requires features derived from one column. Train with max_ctr_complexity=1 and "
            "column names without commas, > and =."
        )
    return sources[0]


def _derived_prefixes(name: str) -> tuple[str, ...]:
    """Return the prefixes of the names of features that CatBoost derives from one column."""
    return (f"{name} is category ", f"ctr({name}) ", f"text({name}) ", f"embedding({name}) ")
