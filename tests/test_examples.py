"""Every example runs and prints something; every plot example draws a picture."""

import runpy
import sys
from pathlib import Path

import pytest
from tests.cases.spark import session as one_session

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
PLOTS = [example for example in EXAMPLES if example.stem.startswith("plot_")]
OTHERS = [example for example in EXAMPLES if example not in PLOTS]
NIGHTLY = {"prune_one_of_each", "grid_search_over_size", "small_forest_on_wide_data", "spark_submit_prune"}
"""Examples that take seconds."""


def params(examples):
    marks = {example: [pytest.mark.nightly] if example.stem in NIGHTLY else [] for example in examples}
    return [pytest.param(example, id=example.stem, marks=marks[example]) for example in examples]


@pytest.mark.parametrize("example", params(OTHERS))
def test_the_example_runs(example, capsys, monkeypatch, tmp_path):
    if example.stem.startswith("spark"):
        one_session()
        monkeypatch.setattr(sys, "argv", [example.name, (tmp_path / "out").as_uri(), "--rows-made", "2000"])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("example", params(PLOTS))
def test_the_example_draws(example):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    try:
        names = runpy.run_path(str(example), run_name="__main__")
        axes = [ax for number in pyplot.get_fignums() for ax in pyplot.figure(number).axes]
        assert axes
        assert all(ax.has_data() for ax in axes)
        assert any(ax.get_title() for ax in axes)
        first_line, _, rest = names["__doc__"].partition("\n")
        assert first_line
        assert rest.strip()
    finally:
        pyplot.close("all")
