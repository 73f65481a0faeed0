"""Forests in files: written forests are read back, and damaged files are refused."""

import io
import json
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import damaged, examples, forests, random_forest, random_rows

from secateur.errors import DamagedFileError
from secateur.files.archive import load_forest, same_forest, save_forest
from secateur.forest import Categories, Forest
from secateur.forest.routing import raw_scores, route


def saved(forest, file):
    with file.open("wb") as stream:
        save_forest(forest, stream)
    return file


@pytest.fixture
def forest():
    return random_forest(np.random.default_rng(2), n_trees=3, max_splits=6, categorical=True)


@pytest.fixture
def file(forest, tmp_path):
    return saved(forest, tmp_path / "f.secateur")


@given(forests(), st.booleans())
@examples(40)
def test_a_forest_comes_back_as_it_was(tmp_path_factory, forest, narrow):
    names = tuple(f"år {i}" for i in range(forest.n_features))
    signs = np.resize(np.array([-1, 0, 1], np.int8), forest.n_features)
    options = {"sum_dtype": "float32", "zero_is_missing": (0,), "feature_names": names, "monotone": signs}
    forest = replace(forest, **(options if narrow else {}))
    again = load_forest(saved(forest, tmp_path_factory.mktemp("a") / "f.secateur"))
    assert same_forest(again, forest)
    assert np.array_equal(again.monotone, forest.monotone)
    for field in (*fields(Forest), *fields(Categories)):
        holder = "categories" if field in fields(Categories) else None
        a, b = (getattr(f, holder) if holder else f for f in (again, forest))
        assert type(getattr(a, field.name)) is type(getattr(b, field.name))
    X = random_rows(np.random.default_rng(0), 10, forest.n_features)
    assert np.array_equal(raw_scores(again, route(again, X)), raw_scores(forest, route(forest, X)))


def rewrite(file, change):
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(bytes(arrays["header"]))
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with file.open("wb") as stream:
        np.savez(stream, **arrays)


def test_a_file_without_the_newer_facts_has_their_defaults(file, forest):
    def older(header, arrays):
        for name in ("sum_dtype", "symmetric", "zero_is_missing"):
            del header["forest"][name]

    rewrite(file, older)
    assert same_forest(load_forest(file), forest)
    assert load_forest(file).monotone is None


def test_only_files_with_constraints_have_the_version_that_stores_them(file, forest, tmp_path):
    constrained = replace(forest, monotone=np.ones(forest.n_features, np.int8))
    for version, written in ((1, file), (2, saved(constrained, tmp_path / "g.secateur"))):
        with np.load(written) as archive:
            header = json.loads(bytes(archive["header"]))
        assert header["version"] == version
        assert ("monotone" in header["forest"]) == (version == 2)


def fact(**values):
    return lambda header, arrays: header["forest"].update(values)


def array(name, change):
    return lambda header, arrays: arrays.update({f"forest.{name}": change(arrays[f"forest.{name}"])})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=3), "version 3.*Upgrade secateur"),
        (lambda h, a: h.update(version="new"), "cannot be read"),
        (lambda h, a: h.update(format="secateur path"), "not a secateur forest"),
        (lambda h, a: h.update(forest=[1]), "damaged"),
        (lambda h, a: h["forest"].pop("link"), "damaged"),
        (lambda h, a: a.pop("forest.right"), "damaged"),
        (fact(link="magic"), "damaged.*magic"),
        (fact(link=["identity"]), "damaged"),
        (fact(n_features=-1), "n_features.*integers from 0"),
        (fact(n_features=2.5), "n_features.*integers from 0"),
        (fact(n_classes=[3]), "classes"),
        (fact(aggregation="product"), "aggregation"),
        (fact(comparison=">"), "comparison"),
        (fact(input_dtype="int8"), "input_dtype"),
        (fact(sum_dtype=None), "sum_dtype"),
        (fact(symmetric=1), "symmetric"),
        (fact(unit=float("nan")), "finite"),
        (fact(divisor="1"), "damaged"),
        (fact(zero_is_missing=[99]), "zero_is_missing"),
        (fact(feature_names=["only"] * 40), "feature_names"),
        (fact(monotone=[1] * 40), "monotone .* one sign for each"),
        (fact(monotone=[2]), "monotone is .* instead of a list of -1, 0 and 1"),
        (fact(monotone=[0.5]), "monotone is .* instead of a list of -1, 0 and 1"),
        (fact(monotone=[True]), "monotone is .* instead of a list of -1, 0 and 1"),
        (fact(monotone="1"), "monotone is '1' instead of a list of -1, 0 and 1"),
        (array("right", lambda a: a[::-1].copy()), "preorder"),
        (array("right", lambda a: a.astype(np.int64)), "right has 1 axes of int64"),
        (array("value", lambda a: a[:, 0]), "value has 1 axes"),
        (array("feature", lambda a: a + 100), "feature"),
        (array("tree_start", lambda a: a[:0]), "tree_start must increase"),
        (array("tree_start", lambda a: a[:-1]), "tree_start"),
        (array("tree_weight", lambda a: a * np.inf), "tree_weight contains NaN or infinite"),
        (array("tree_weight", lambda a: a[:-1]), "tree_weight"),
        (array("threshold", lambda a: a * np.nan), "NaN"),
        (
            array("categories.row", lambda a: a + 50),
            "categories.row refers to a list .* does not exist",
        ),
        (array("categories.start", lambda a: a[::-1].copy()), "inconsistent lengths or offsets"),
        (array("categories.code", lambda a: a[::-1].copy()), "sorted"),
        (array("categories.left", lambda a: a[:-1]), "inconsistent lengths or offsets"),
        (array("categories.other_left", lambda a: a[:-1]), "inconsistent lengths or offsets"),
    ],
)
def test_inconsistent_headers_and_arrays_are_refused(file, change, message):
    rewrite(file, change)
    with pytest.raises(ValueError, match=message):
        load_forest(file)


def test_other_byte_orders_and_layouts_are_read(file, forest):
    rewrite(file, array("threshold", lambda a: a.astype(">f8")))
    rewrite(file, array("value", np.asfortranarray))
    again = load_forest(file)
    assert same_forest(again, forest)
    assert again.threshold.dtype.isnative
    assert again.value.flags.c_contiguous


@given(st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_an_error_or_the_same_forest_but_never_a_crash(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees=3, categorical=True)
    file = saved(forest, tmp_path_factory.mktemp("d") / "f.secateur")
    file.write_bytes(damaged(rng, file.read_bytes()))
    try:
        again = load_forest(file)
    except ValueError:
        return
    assert same_forest(again, forest)


def npy(shape, data=b""):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue() + data


def test_an_array_larger_than_its_entry_is_refused_before_allocation(file):
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("forest.huge.npy", npy((10**15,)))
    with pytest.raises(ValueError, match="differs from its header"):
        load_forest(file)


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(file, monkeypatch):
    monkeypatch.setattr("secateur.files.size_limits.MAX_BYTES", 2**20)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("forest.zeros.npy", npy((10**6,), bytes(8 * 10**6)))
    with pytest.raises(ValueError, match="would unpack to"):
        load_forest(file)


def test_files_of_another_format_are_refused(tmp_path):
    for name, content in {"text": b"hello", "empty": b"", "zip": b"PK\x05\x06" + bytes(18)}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DamagedFileError, match="damaged or has another format"):
            load_forest(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="no file"):
        load_forest(tmp_path / "gone.secateur")


def test_pickled_objects_are_not_loaded(tmp_path):
    file = tmp_path / "evil.secateur"
    with file.open("wb") as stream:
        np.savez(stream, header=np.array([{"format": "secateur forest"}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read"):
        load_forest(file)


@pytest.mark.parametrize("name", ["aggregation", "divisor", "comparison", "link", "n_classes", "feature_names"])
def test_a_file_with_a_missing_entry_is_refused(file, name):
    rewrite(file, lambda header, arrays: header["forest"].pop(name))
    with pytest.raises(ValueError, match=f"damaged: the entry '{name}' is missing"):
        load_forest(file)


@pytest.mark.parametrize("feature", [-2, 2**31 - 1])
def test_a_leaf_with_a_feature_is_refused(file, feature):
    def change(header, arrays):
        arrays["forest.feature"][arrays["forest.right"] == -1] = feature

    rewrite(file, change)
    with pytest.raises(ValueError, match="at splits and -1 at leaves"):
        load_forest(file)


def test_highly_compressible_arrays_are_written_uncompressed(forest, tmp_path, monkeypatch):
    monkeypatch.setattr("secateur.files.size_limits.MAX_BYTES", 0)
    monkeypatch.setattr("secateur.files.size_limits.MAX_RATIO", 1)
    again = load_forest(saved(forest, tmp_path / "f.secateur"))
    assert same_forest(again, forest)
