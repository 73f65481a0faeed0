import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import case
from tests.strategies import damaged, random_forest, random_rows, slow_scores

import secateur as sc
from secateur import Decision, subforest
from secateur.costs import NodeCost
from secateur.data.rows import LocalRows
from secateur.forest.routing import route
from secateur.losses import SquaredError
from secateur.path import PackedMasks, Path
from secateur.path.build import trace_path
from secateur.problem import Problem


@pytest.fixture(scope="module")
def path():
    c = case("tree classifier, missing values")
    return sc.prune_path(c.model, c.X, c.y)


def test_an_existing_file_is_not_overwritten_unasked(path, tmp_path):
    file = path.save(tmp_path / "p.npz")
    with pytest.raises(FileExistsError, match="force=True"):
        path.save(file)
    path.save(file, force=True)
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(path, tmp_path, monkeypatch):
    file = path.save(tmp_path / "p.npz")
    before = file.read_bytes()

    def fail(stream, **arrays):
        stream.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="disk full"):
        path.save(file, force=True)
    assert file.read_bytes() == before
    assert [f.name for f in tmp_path.iterdir()] == ["p.npz"]


def test_another_suffix_and_a_missing_folder_are_refused(path, tmp_path):
    with pytest.raises(ValueError, match=r"p\.npz"):
        path.save(tmp_path / "p.csv")
    with pytest.raises(FileNotFoundError, match="Create it first"):
        path.save(tmp_path / "nowhere" / "p.npz")


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"Path\.save"):
        Path.load(tmp_path / "none.npz")


def rewrite(file, change):
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(bytes(arrays["header"]))
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=99), "version 99.*Upgrade secateur"),
        (lambda h, a: h.update(format="other"), "not a secateur path"),
        (lambda h, a: a.pop("forest.right"), "damaged"),
        (lambda h, a: a.update({"forest.right": a["forest.right"][::-1].copy()}), "damaged.*preorder"),
        (lambda h, a: a.update({"masks.removed_at": a["masks.removed_at"][:-1]}), "damaged"),
        (lambda h, a: a.update({"table.cost": a["table.cost"][:-1]}), "damaged.*wrong length"),
        (lambda h, a: h.update(n_points=1), "damaged"),
        (lambda h, a: h["forest"].pop("link"), "damaged"),
    ],
)
def test_a_file_of_a_newer_version_or_with_parts_missing_is_refused(path, tmp_path, change, message):
    file = path.save(tmp_path / "p.npz")
    rewrite(file, change)
    with pytest.raises(ValueError, match=message):
        Path.load(file)


@given(st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_an_error_or_the_same_path_but_never_a_crash(seed):
    import tempfile
    from pathlib import Path as FilePath

    c = case("tree classifier, missing values")
    path = sc.prune_path(c.model, c.X, c.y)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        file = path.save(FilePath(folder) / "p.npz")
        file.write_bytes(damaged(rng, file.read_bytes()))
        try:
            again = Path.load(file)
        except ValueError:
            return
        assert all(np.array_equal(again.table[k], path.table[k]) for k in path.table)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(ValueError, match="cannot be read as a secateur path"):
        Path.load(tmp_path / "text.npz")
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    with pytest.raises(ValueError, match="cannot be read as a secateur path"):
        Path.load(tmp_path / "empty.npz")


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "evil.npz", header=np.array([{"format": "secateur path"}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read as a secateur path"):
        Path.load(tmp_path / "evil.npz")


def test_a_path_of_another_model_is_refused(path, tmp_path):
    file = path.save(tmp_path / "p.npz")
    with pytest.raises(ValueError, match="another model"):
        Path.load(file, case("tree classifier").model)


def test_changed_values_weights_and_base_survive_saving(tmp_path):
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=3)
    X = random_rows(rng, 20, forest.n_features)
    sample = LocalRows(route(forest, X), rng.normal(size=(20, 1)), np.ones(20))
    keeps = np.ones((2, forest.n_nodes), bool)
    keeps[1, : forest.tree_start[1]] = False
    values = [rng.normal(size=(int(k.sum()), 1)) for k in keeps]
    path = trace_path(
        Problem(forest, sample, SquaredError(), NodeCost()),
        PackedMasks.pack(keeps),
        np.array([0.0, 1.0]),
        "none",
        values=values,
        tree_weight=rng.random((2, 3)),
        base=rng.random((2, 1)),
    )
    again = Path.load(path.save(tmp_path / "p.npz"))
    for point in range(2):
        assert np.array_equal(again[point].predict(X), path[point].predict(X))
        changed = replace(subforest(forest, Decision(keeps[point])), value=values[point], base=path.base[point])
        changed = replace(changed, tree_weight=path.tree_weight[point][3 - changed.n_trees :])
        assert np.array_equal(path[point].raw(X), slow_scores(changed, X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(n_points="3"), "number of points"),
        (lambda h, a: h["facts"].pop("made_on_rows"), "made_on_rows of facts is missing"),
        (lambda h, a: h["facts"].update(loss=["x"]), "the field loss"),
        (lambda h, a: h["facts"].update(made_on_rows=True), "the field made_on_rows"),
        (lambda h, a: h["columns"].remove("cost"), "no column cost"),
        (lambda h, a: a.update({"table.cost": a["table.cost"].astype("U8")}), "'cost' of the table has dtype"),
        (lambda h, a: a.update({"table.risk": a["table.risk"] * np.nan}), "of the table contains NaN"),
        (lambda h, a: a.update({"table.n_nodes": a["table.n_nodes"][::-1].copy()}), "but the table has"),
        (lambda h, a: a["masks.removed_at"].__setitem__(3, 10**6), "points at which nodes are gone"),
        (lambda h, a: a["masks.removed_at"].__setitem__(2, 1), "is not a pruning"),
        (lambda h, a: a.update(support=np.zeros(3)), "support is an array"),
        (lambda h, a: a.update(base=np.zeros((2, 2, 2))), "base is an array"),
        (lambda h, a: a.update(values=np.zeros((1, 1))), "values for"),
    ],
)
def test_a_path_that_contradicts_itself_is_refused(path, tmp_path, change, message):
    file = path.save(tmp_path / "p.npz")
    rewrite(file, change)
    with pytest.raises(ValueError, match=message):
        Path.load(file)
