"""Define saved paths as a kind of file: each point read must be the pruning the file describes."""

from pathlib import Path
from typing import Any

import numpy as np
from tests.hardening.mutating.changes import change_archive
from tests.hardening.mutating.judging import alike, rows_for
from tests.hardening.mutating.kind import ANOTHER, SAME, Kind
from tests.hardening.mutating.plain_reading import archive, forest_sums

import secateur as sc
from secateur.path import Path as PruningPath


def _make(solver: str, *, evaluated: bool) -> Any:
    def make(file: Path) -> None:
        from sklearn.ensemble import RandomForestRegressor

        X = np.random.default_rng(0).normal(size=(150, 4))
        y = X[:, 0] + X[:, 1] * X[:, 2]
        model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X[:80], y[:80])
        path = sc.prune_path(model, X[80:], y[80:], solver=solver)
        (path.evaluate(X[:80], y[:80]) if evaluated else path).save(file)

    return make


def _read(file: Path) -> PruningPath:
    return PruningPath.load(file)


def _judge(path: PruningPath, file: Path, sound: PruningPath) -> str:
    """Return whether all points predict as stored in the file; all other methods of the path must work."""
    header, arrays = archive(file)
    rows = rows_for(path.forest)[:12]
    same = len(path) == len(sound) and path.forest.n_features == sound.forest.n_features
    for point in sorted({0, 1 % len(path), len(path) // 2, len(path) - 1}):
        ours = path[point].raw(rows)
        theirs = forest_sums(header, arrays, rows, **_changes(header, arrays, point))
        if theirs is not None and not alike(ours, theirs):
            return f"point {point}: the file says {theirs.ravel()[:3]}, secateur {ours.ravel()[:3]}"
        same = same and alike(ours, sound[point].raw(rows))
    for name in header["columns"]:
        if not np.array_equal(
            path.table[name], arrays[f"table.{name}"], equal_nan=arrays[f"table.{name}"].dtype.kind == "f"
        ):
            return f"the column {name} differs"
    path.select()
    for text in (path._repr_html_(), repr(path), path[0].summary(), path[-1]._repr_html_()):
        assert text
    again = PruningPath.load(path.save(file.with_name("again.npz"), force=True))
    if not alike(again[-1].raw(rows), path[-1].raw(rows)):
        return "another path after writing it again"
    return SAME if same else ANOTHER


def _changes(header: Any, arrays: Any, point: int) -> dict[str, Any]:
    """Return the keep mask and the changes of a point as stored in the file."""
    n_points, n_nodes = header["n_points"], len(arrays["forest.right"])
    if "masks.removed_at" in arrays:
        keeps = [arrays["masks.removed_at"] > k for k in range(n_points)]
    else:
        keeps = [np.unpackbits(bits, count=n_nodes).astype(bool) for bits in arrays["masks.bits"]]
    changes: dict[str, Any] = {"keep": keeps[point]}
    if "values" in arrays:
        first = sum(int(keep.sum()) for keep in keeps[:point])
        value = arrays["forest.value"].copy()
        value[keeps[point]] = arrays["values"][first : first + int(keeps[point].sum())]
        changes["value"] = value
    for name in ("tree_weight", "base"):
        if name in arrays:
            changes[name] = arrays[name][point]
    return changes


PATHS = {
    "path .npz": Kind(
        ".npz",
        (
            _make("weakest_link", evaluated=True),
            _make("block_descent", evaluated=True),
            _make("fewer_trees", evaluated=False),
        ),
        change_archive,
        _read,
        _judge,
    )
}
