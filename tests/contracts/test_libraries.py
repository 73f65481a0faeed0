"""What every model we read must satisfy: the native library is the oracle, and equal means bit for bit."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from tests.cases import ALL_RECIPES, FILES, adapter_of, case
from tests.hardening.mutating.judging import native_sums
from tests.strategies import everything, raised_keep, random_keep

from secateur import Decision, subforest
from secateur.decision import check_keep
from secateur.forest import check_forest
from secateur.io import LIBRARIES, adapt
from secateur.io.files import load_model
from secateur.path import Pruned
from secateur.routing import raw_scores, route

cases = pytest.mark.parametrize("name", list(ALL_RECIPES))
NOT_IN_FILES = {
    "xgboost_regressor_missing": "what stands for a missing value is the wrapper's affair",
    "catboost embedding": "files with embeddings cannot be verified and are refused",
}
OWN_FILES = {
    "sklearn": [".joblib"],
    "xgboost": [".json", ".ubj"],
    "lightgbm": [".txt"],
    "catboost": [".cbm", ".json"],
    "pyspark": [""],
}


def pruned_by(adapter, decision):
    return Pruned(adapter, decision, 0, {}, "", {})


def questions(forest):
    """Return what each split looks at, by name where features have names: a library may drop some no split needs."""
    names = forest.feature_names
    return [names[f] if names and f >= 0 else f for f in forest.feature.tolist()]


def test_every_library_has_cases():
    assert {adapter_of(next(iter(file.RECIPES))).library for file in FILES} == set(LIBRARIES)


@cases
def test_the_forest_is_valid(name):
    check_forest(adapt(case(name).model).forest)


@cases
def test_our_evaluation_is_the_library_s(name):
    adapter, X = adapter_of(name), case(name).X_new
    ours = pruned_by(adapter, everything(adapter.forest))
    for method, expected in case(name).ask(adapter.model, X).items():
        assert case(name).same(getattr(ours, method)(X), expected), method


@cases
def test_with_nothing_pruned_the_model_predicts_the_same(name):
    adapter, X = adapter_of(name), case(name).X_new
    copied = adapter.write(everything(adapter.forest))
    assert type(copied) is type(adapter.model)
    assert copied is not adapter.model
    expected = case(name).ask(adapter.model, X)
    for method, found in case(name).ask(copied, X).items():
        assert case(name).same(found, expected[method]), method


@cases
@pytest.mark.parametrize("seed", range(4))
def test_after_any_cut_the_native_model_predicts_what_we_do(name, seed):
    adapter, X = adapter_of(name), case(name).X_new
    keep = random_keep(np.random.default_rng(seed), adapter.forest)
    check_keep(adapter.forest, keep)
    ours = pruned_by(adapter, Decision(keep))
    native = ours.to_model()
    for method, expected in case(name).ask(native, X).items():
        assert case(name).same(getattr(ours, method)(X), expected), method


@cases
def test_after_raising_the_native_model_predicts_what_we_do(name):
    adapter, X = adapter_of(name), case(name).X_new
    decision = Decision(raised_keep(np.random.default_rng(5), adapter.forest))
    ours = pruned_by(adapter, decision)
    if adapter.forest.link == "anomaly":
        with pytest.raises(ValueError, match="path lengths"):
            ours.to_model()
        return
    native = ours.to_model()
    for method, expected in case(name).ask(native, X).items():
        assert case(name).same(getattr(ours, method)(X), expected), method


@cases
def test_the_pruned_model_reads_as_the_pruned_forest(name):
    adapter = adapter_of(name)
    keep = random_keep(np.random.default_rng(9), adapter.forest, p_cut=0.2)
    keep[adapter.forest.root] = True  # a grid of boosted trees fills gaps with leaves that say 0
    for v in np.flatnonzero(adapter.forest.is_split):
        keep[v + 1] = keep[adapter.forest.right[v]] = keep[v] and keep[v + 1]
    decision = Decision(keep)
    expected = subforest(adapter.forest, decision)
    again = adapt(adapter.write(decision)).forest
    assert np.array_equal(again.right, expected.right)
    assert questions(again) == questions(expected)
    leaf = ~expected.is_split
    assert np.array_equal(again.value[leaf], expected.value[leaf])
    assert again.divisor == expected.divisor


@cases
def test_the_model_itself_stays_as_it_was(name):
    model, serialise = case(name).model, case(name).serialise
    before = serialise(model)
    adapter = adapt(model)
    adapter.write(Decision(random_keep(np.random.default_rng(1), adapter.forest)))
    assert serialise(model) == before


@cases
def test_changing_the_pruned_model_does_not_change_the_original(name):
    model, X = case(name).model, case(name).X_new
    before = case(name).ask(model, X)
    small = adapt(model).write(everything(adapt(model).forest))
    for attribute in ("classes_", "estimators_", "estimator_weights_"):
        value = getattr(small, attribute, None)
        if isinstance(value, np.ndarray) and value.dtype != object:
            value[:] = value[::-1].copy()
        elif isinstance(value, list):
            value.clear()
    for method, found in case(name).ask(model, X).items():
        assert case(name).same(found, before[method]), method


@cases
def test_pickling_the_pruned_model_changes_nothing(name):
    adapter, X = adapter_of(name), case(name).X_new
    native = adapter.write(Decision(random_keep(np.random.default_rng(2), adapter.forest)))
    again = pickle.loads(pickle.dumps(native))
    expected = case(name).ask(native, X)
    for method, found in case(name).ask(again, X).items():
        assert case(name).same(found, expected[method]), method


@pytest.mark.parametrize("name", [name for name in ALL_RECIPES if name not in NOT_IN_FILES])
def test_a_pruned_model_saved_in_a_file_of_its_library_and_loaded_again_predicts_what_we_do(name, tmp_path):
    adapter, X = adapter_of(name), case(name).X_new
    ours = pruned_by(adapter, Decision(random_keep(np.random.default_rng(6), adapter.forest)))
    for suffix in OWN_FILES[adapter.library]:
        again = adapt(load_model(ours.save(tmp_path / f"small{suffix}"), trust=True))
        exact = suffix != ".json" or adapter.library != "catboost"  # CatBoost's own reader loses the last digit
        read, expected = pruned_by(again, everything(again.forest)).raw(X), ours.raw(X)
        if again.forest.addition != ours.forest.addition:  # the file is of a Booster, which adds otherwise
            forest = replace(ours.forest, addition=again.forest.addition)
            expected = raw_scores(forest, route(forest, adapter.rows(X)))
        assert case(name).same(read, expected) if exact else np.allclose(read, expected, rtol=1e-13, atol=1e-13)
        native = native_sums(again, X) if isinstance(X, np.ndarray) and "dart" not in name else None
        if native is not None:
            assert np.allclose(native, read, rtol=1e-13 if native.dtype == np.float64 else 0, atol=1e-13)


@cases
def test_rows_and_targets_are_encoded_for_the_forest(name):
    adapter, c = adapter_of(name), case(name)
    rows = adapter.rows(c.X)
    assert rows.flags.c_contiguous
    assert rows.dtype == adapter.forest.input_dtype
    assert route(adapter.forest, rows).shape == (adapter.forest.n_trees, len(c.X))
    if adapter.supervised:
        y = adapter.target(c.y)
        assert y.shape[0] == len(c.X)
        for k, n_classes in enumerate(adapter.forest.n_classes):
            assert set(np.unique(y[:, k])) <= set(range(n_classes))
