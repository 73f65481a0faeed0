"""Every example runs and says something."""

import runpy
import sys
from pathlib import Path

import pytest
from tests.cases.spark import session as one_session

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.stem for e in EXAMPLES])
def test_the_example_runs(example, capsys, monkeypatch, tmp_path):
    if example.stem.startswith("spark"):
        one_session()
        monkeypatch.setattr(sys, "argv", [example.name, (tmp_path / "out").as_uri(), "--rows-made", "2000"])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
