"""Latency is measured on the models' own predictions, in turns, and described by statistics that can be recomputed."""

import gc
import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import secateur as sc
from secateur.errors import InvalidInputError, UnsupportedModelError
from secateur.files.models import save_model
from secateur.reporting._timing import time_in_turns

X = np.random.default_rng(0).normal(size=(150, 3))
Y = X[:, 0] + X[:, 1]


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the benchmark by one that only moves in a call."""

    class Clock:
        now = 0.0

    found = Clock()
    monkeypatch.setattr("secateur.reporting._timing.perf_counter", lambda: found.now)
    return found


def taking(clock, durations, log=None, name=None):
    """Return a function whose calls take the given durations in turn, after an untimed one, and are recorded."""
    remaining = iter([0.0, *durations])

    def call(argument):
        if log is not None:
            log.append((name, argument))
        clock.now += next(remaining)

    return call


def forest():
    return RandomForestRegressor(3, random_state=0).fit(X, Y)


def slowed(clock, durations):
    """Return a fitted model whose predictions take the given durations in turn: n_rows → durations."""
    model = forest()
    remaining = {n_rows: iter(listed) for n_rows, listed in durations.items()}

    def predict(rows):
        # The first call with each kind of rows, and the one that tries the batch, are not timed.
        clock.now += next(remaining[len(rows)])

    model.predict = predict
    return model


def recorded(model, method="predict"):
    """Return the rows of all calls of a model's method from now on."""
    rows, original = [], getattr(model, method)

    def call(X):
        rows.append(X)
        return original(X)

    setattr(model, method, call)
    return rows


def test_durations_are_those_of_the_single_calls(clock):
    calls = [taking(clock, [1.0, 2.0, 3.0]), taking(clock, [10.0, 20.0, 30.0])]
    assert time_in_turns(calls, ["rows"], 60.0).tolist() == [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]


def test_rounds_end_after_the_seconds_and_there_is_at_least_one(clock):
    assert len(time_in_turns([taking(clock, [2.0] * 9)], ["rows"], 10.0)) == 5
    assert len(time_in_turns([taking(clock, [99.0] * 9)], ["rows"], 10.0)) == 1


def test_every_round_calls_each_function_once_with_the_same_rows_in_changing_order(clock):
    log = []
    names = ("a", "b", "c")
    time_in_turns([taking(clock, [1.0] * 20, log, name) for name in names], ["first", "second"], 60.0)
    assert log[:3] == [(name, "first") for name in names]  # untimed
    rounds = [log[k : k + 3] for k in range(3, len(log), 3)]
    assert len(rounds) == 20
    for k, called in enumerate(rounds):
        assert sorted(name for name, _ in called) == list(names)
        assert {rows for _, rows in called} == {("first", "second")[k % 2]}
    assert {name for name, _ in (called[0] for called in rounds)} == set(names)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_paused_and_then_as_before(clock, enabled):
    seen = []

    def call(argument):
        seen.append(gc.isenabled())
        clock.now += 1.0
        if len(seen) > 3:
            raise ValueError("the fourth call")

    try:
        if not enabled:
            gc.disable()
        with pytest.raises(ValueError, match="fourth"):
            time_in_turns([call], ["rows"], 10.0)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert seen[1:] == [False, False, False]


def test_statistics_are_those_of_the_durations_per_row(clock):
    single = np.arange(1.0, 21.0)
    batch = np.arange(41.0, 61.0)
    before = slowed(clock, {1: [0.0, *single], 50: [0.0, 0.0, *batch]})
    after = slowed(clock, {1: [0.0, *(single / 4)], 50: [0.0, 0.0, *(batch / 2)]})
    # Rounds 1.25, 2.5, … of single rows and 61.5, 63, … of the batch: 20 single rounds take 262.5 seconds.
    result = sc.benchmark({"before": before, "after": after}, X, batch_size=50, seconds=262.5)
    for model, by in zip(result.models, (1, 4), strict=True):
        assert (model.one_row.rows, model.one_row.repeats) == (1, 20)
        assert model.one_row.median == pytest.approx(np.median(single) / by * 1e6)
        assert model.one_row.q05 == pytest.approx(np.quantile(single, 0.05) / by * 1e6)
        assert model.one_row.q95 == pytest.approx(np.quantile(single, 0.95) / by * 1e6)
        # Ten blocks of two calls, whose medians are 1.5, 3.5, …, 19.5.
        assert model.one_row.noise == pytest.approx(18 / 10.5)
    repeats = result.models[0].batch.repeats
    assert result.models[1].batch.median == pytest.approx(np.median(batch[:repeats]) / 2 / 50 * 1e6)
    assert result.noise == pytest.approx(18 / 10.5)
    ratio = result.models[1].one_row.ratio
    assert (ratio.against, ratio.within_noise) == ("before", False)
    assert (ratio.ratio, ratio.lowest, ratio.highest) == pytest.approx((0.25, 0.25, 0.25))
    assert result.models[0].one_row.ratio is None


@pytest.mark.parametrize(
    ("after", "within"),
    [
        ([0.9] * 20, False),
        ([0.9] * 18 + [1.1] * 2, True),  # the last of ten blocks disagrees
        ([1.0] * 20, True),
        ([0.1] * 5, True),  # fewer than six blocks
        ([0.1] * 6, False),
    ],
)
def test_a_difference_is_beyond_the_noise_only_if_all_of_at_least_six_blocks_agree(clock, after, within):
    n = len(after)
    models = {
        "before": slowed(clock, {1: [0.0, *[1.0] * n], 50: [0.0, 0.0, *[1.0] * n]}),
        "after": slowed(clock, {1: [0.0, *after], 50: [0.0, 0.0, *after]}),
    }
    result = sc.benchmark(models, X, batch_size=50, seconds=n + sum(after) - 1e-6)
    for latency in (result.models[1].one_row, result.models[1].batch):
        assert latency.repeats == n
        assert latency.ratio.within_noise is within
    assert str(result).count("within the noise") == 2 * within


@pytest.mark.parametrize(
    ("single", "noise", "noisy"),
    [
        ([1.0, 1.1] * 10, 0.0, False),
        ([1.0] * 10 + [1.3] * 10, 0.3 / 1.15, True),  # the load changed
        ([1.0, 2.1] * 10, 0.0, True),  # steady load interrupts every other call
    ],
)
def test_a_busy_machine_is_noticed_by_changes_and_by_wide_quantiles(clock, single, noise, noisy):
    model = slowed(clock, {1: [0.0, *single], 50: [0.0, 0.0, *[1.0] * 99]})
    result = sc.benchmark(model, X, batch_size=50, seconds=2 * sum(single) - 1e-6)
    assert result.models[0].one_row.repeats == 20
    assert (result.noise, result.noisy) == (pytest.approx(noise, abs=1e-9), noisy)
    assert result.summary()["noisy"] is noisy
    assert ("The machine was busy" in str(result)) is noisy


def test_calls_pass_exactly_one_row_or_the_batch_of_the_type_given():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = RandomForestRegressor(3, random_state=0).fit(frame, Y)
    calls = recorded(model)
    result = sc.benchmark(model, frame, batch_size=40, seconds=0.2)
    assert {type(rows) for rows in calls} == {pd.DataFrame}
    assert {len(rows) for rows in calls} == {1, 40}
    latency = result.models[0]
    # One more with a row to warm up; two more with the batch: one to try it, one to warm up.
    assert sum(len(rows) == 1 for rows in calls) == latency.one_row.repeats + 1
    assert sum(len(rows) == 40 for rows in calls) == latency.batch.repeats + 2
    singles = [rows for rows in calls if len(rows) == 1][1:]
    for k, row in enumerate(singles):
        pd.testing.assert_frame_equal(row, frame.iloc[k % 40 : k % 40 + 1])


def test_a_method_is_timed_by_its_name():
    model = RandomForestClassifier(3, random_state=0).fit(X, Y > 0)
    calls = recorded(model, "predict_proba")
    result = sc.benchmark(model, X, method="predict_proba", seconds=0.02)
    assert result.method == "predict_proba"
    assert len(calls) == result.models[0].one_row.repeats + result.models[0].batch.repeats + 3


def memory_map(folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


CONTAINERS = {
    "list": lambda _: X.tolist(),
    "sparse": lambda _: csc_matrix(X),
    "one row": lambda _: X[:1],
    "batches": lambda _: sc.Batches(X.shape, lambda: iter([X[:20], X[20:]])),
    "frame": lambda _: pd.DataFrame(X, index=np.arange(150) / 7),
    "polars": lambda _: pytest.importorskip("polars").DataFrame(dict(zip("abc", X.T, strict=True))),
    "arrow": lambda _: pytest.importorskip("pyarrow").table(dict(zip("abc", X.T, strict=True))),
    "memory map": memory_map,
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_rows_may_be_in_any_container(kind, tmp_path):
    rows = CONTAINERS[kind](tmp_path)
    (latency,) = sc.benchmark(forest(), rows, batch_size=30, seconds=0.01).models
    assert latency.engine == "sklearn"
    assert (latency.one_row.rows, latency.batch.rows) == (1, {"one row": 1, "batches": 20}.get(kind, 30))


def test_models_forests_files_and_prunings_are_timed_side_by_side(tmp_path):
    model = forest()
    path = sc.prune_path(model, X, Y, solver="weakest_link")
    save_model(sc.as_forest(model), tmp_path / "forest.secateur")
    save_model(model, tmp_path / "forest.pkl")
    given = {"model": model, "forest": sc.as_forest(model), "file": tmp_path / "forest.secateur", "point": path[-1]}
    result = sc.benchmark(given | {"pickle": tmp_path / "forest.pkl"}, X, seconds=0.01, trust=True)
    found = {latency.name: latency.engine for latency in result.models}
    assert found == {
        "model": "sklearn",
        "forest": "secateur",
        "file": "secateur",
        "point": "sklearn",
        "pickle": "sklearn",
    }


def test_a_pruning_of_a_forest_is_the_one_timed(monkeypatch):
    path = sc.prune_path(sc.as_forest(forest()), X, Y, solver="weakest_link")
    point, timed = path[-1], []
    monkeypatch.setattr(sc.Pruned, "predict", lambda pruned, rows: timed.append(pruned))
    sc.benchmark(point, X, seconds=0.01)
    assert {id(pruned) for pruned in timed} == {id(point)}


def test_the_summary_is_plain_json_and_the_text_shows_it():
    models = {"before": forest(), "after": DecisionTreeRegressor(max_depth=2).fit(X, Y)}
    result = sc.benchmark(models, X, seconds=0.02)
    summary = result.summary()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert set(summary) == {"method", "unit", "noise", "noisy", "models"}
    for model in summary["models"]:
        assert set(model) == {"name", "engine", "one_row", "batch"}
        for key in ("one_row", "batch"):
            assert set(model[key]) == {"rows", "repeats", "median", "q05", "q95", "noise", "ratio"}
    assert summary["models"][0]["batch"]["ratio"] is None
    ratio = summary["models"][1]["batch"]["ratio"]
    assert set(ratio) == {"against", "ratio", "lowest", "highest", "within_noise"}
    lines = str(result).splitlines()
    assert lines[0] == "predict, microseconds per row"
    assert [line.split()[0] for line in lines[2:8]] == ["one", "before", "after", "150", "before", "after"]
    assert lines[-1] == "Predicted by sklearn."
    assert ("The machine was busy" in str(result)) is result.noisy
    assert repr(result) == str(result)


@pytest.mark.parametrize(
    ("models", "rows", "options", "message"),
    [
        (None, X[:0], {}, "X has no rows"),
        (None, X[:, :2], {}, "has shape .*trained on 3 features"),
        ({}, X, {}, "dict of models is empty"),
        (None, X, {"method": "fit"}, "method='fit' is unknown. The methods are predict"),
        (None, X, {"batch_size": 0}, "batch_size is 0"),
        (None, X, {"seconds": 0}, "seconds is 0"),
        (None, X, {"seconds": float("nan")}, "seconds is nan"),
    ],
)
def test_arguments_that_cannot_be_are_refused(models, rows, options, message):
    with pytest.raises(InvalidInputError, match=message):
        sc.benchmark(forest() if models is None else models, rows, **options)


def test_models_without_trees_or_without_the_method_are_refused():
    with pytest.raises(UnsupportedModelError, match="not a model of a supported library"):
        sc.benchmark(object(), X)
    with pytest.raises(UnsupportedModelError, match="has no probabilities"):
        sc.benchmark(forest(), X, method="predict_proba")
