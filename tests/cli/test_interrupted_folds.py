"""Ctrl-C while a path is judged by others like it: the rounds done until then are kept."""

import json

import pytest
from tests.cli.runner import call

import secateur as sc
from secateur.files.models import load_model


@pytest.fixture
def prune(here):
    """Return a function that prunes and returns the summary and stderr."""

    def run(*args, code):
        files = (here / "forest.skops", here / "train.csv", "--target", "y", "--out", here / "s.skops", "--json")
        done = call("prune", *files, "--force", *args, code=code)
        summary = json.loads(done.stdout)
        assert sc.as_forest(load_model(here / "s.skops")).n_nodes == summary["after"]["nodes"]
        return summary, done.stderr

    return run


@pytest.mark.parametrize("limits", [(), ("--max-nodes", 100)], ids=str)
def test_rounds_done_until_the_interruption_judge(prune, watched, limits):
    watched(("validating", 2))
    summary, message = prune("--validation", "cv", *limits, code=130)
    assert summary["interrupted"]
    assert summary["rows"]["chosen_on"].endswith("with refitted clones, 2 of 5 rounds")
    assert summary["rows"]["chosen_on_rows"] == 100
    assert "evaluated on 2 of 5 folds" in message


def test_the_pruning_of_some_rows_is_chosen_from_if_it_is_interrupted(prune, watched):
    steps = watched(("pruning", 10))
    summary, message = prune("--validation", "0.3", "--max-nodes", 100, code=130)
    assert len([what for _, _, what in steps if what == "pruning"]) == 10  # nothing was started on all rows
    assert summary["rows"]["made_on"] == 175
    assert summary["after"]["nodes"] <= 100
    assert "points found so far" in message
