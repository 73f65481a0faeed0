"""`secateur demo`: what it says is what it did, on the terminal, in the report, in the files and in the README."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.runner import call, numbers_of

import secateur as sc
from secateur.cli._demo import print_demo
from secateur.files.models import load_model

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder and the results of one run, which overwrites a file."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "small.skops").write_text("old")
    return folder, json.loads(call("demo", "--out", folder, "--force", "--json", "--quiet").stdout)


@pytest.fixture
def shown(demo, capsys):
    print_demo(demo[1])
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def page(demo):
    """The contents of the report."""
    text = (demo[0] / "report.html").read_text()
    return json.loads(re.search(r'id="facts"[^>]*>(.*?)</script>', text, re.DOTALL)[1])


def test_the_files_have_the_sizes_shown(demo, shown):
    folder, facts = demo
    numbers = numbers_of(shown)
    for name, key, column in (("forest.skops", "before", 0), ("small.skops", "after", 1)):
        forest = sc.as_forest(load_model(folder / name))
        sizes = {"nodes": forest.n_nodes, "leaves": forest.n_leaves, "trees": forest.n_trees}
        for label, size in sizes.items():
            assert numbers[label][column] == str(size), label
        assert facts[key]["bytes"] == (folder / name).stat().st_size == int(numbers["bytes"][1 + column])
    assert facts["before"]["nodes"] > 10 * facts["after"]["nodes"]


def test_the_accuracy_is_that_of_the_files_on_rows_that_nothing_else_used(demo, shown):
    from secateur.cli._demo import _load

    folder, facts = demo
    X_train, X, y_train, y = _load()
    assert facts["trained_on"] + facts["test"]["rows"] == len(y_train) + len(y) == len(load_breast_cancer().data)
    assert not set(X_train.index) & set(X.index)
    for name, key in (("forest.skops", "before"), ("small.skops", "after")):
        right = load_model(folder / name).predict(X) == y
        accuracy = facts["test"]["accuracy"][key]
        assert accuracy["mean"] == pytest.approx(right.mean())
        assert accuracy["standard_error"] == pytest.approx(right.std(ddof=1) / np.sqrt(len(y)))
        assert f"{accuracy['mean']:.1%} ± {accuracy['standard_error']:.1%}" in shown


def test_the_report_has_the_numbers_of_the_terminal(demo, shown, page):
    _, facts = demo
    point, table = page["point"], page["table"]
    assert page["summary"] == {key: facts[key] for key in page["summary"]}
    for name, key in (("n_nodes", "nodes"), ("n_trees", "trees"), ("bytes", "bytes")):
        assert [table[name][0], table[name][point]] == [facts["before"][key], facts["after"][key]]
    assert table["changed"][point] == facts["changed"]
    assert f"{facts['changed']:.1%}" in shown
    assert table["loss"][point] == facts["loss"]["after"]
    assert page["facts"]["evaluated_on"] in " ".join(shown.split())
    assert any("mean radius" in text for text in page["features"]["names"])


def test_the_code_that_is_shown_gives_the_model(demo, shown, page):
    folder, facts = demo
    code = page["code"]["python"].replace("{point}", str(page["point"]))
    for line in code.splitlines()[:-1]:
        assert line in shown
    names = {}
    exec(code, names)
    stored = load_model(folder / "small.skops")
    assert np.array_equal(names["small"].predict_proba(names["X_test"]), stored.predict_proba(names["X_test"]))
    assert names["pruned"].row["n_nodes"] == facts["after"]["nodes"]


def test_the_pages_have_the_numbers_of_the_demo(demo):
    _, facts = demo
    before, after = (f"{facts[key]['nodes']:,}" for key in ("before", "after"))
    assert f"500 trees with {before} nodes to {after} nodes" in (ROOT / "README.md").read_text()
    steps = (ROOT / "docs/first_steps.md").read_text()
    assert f"{before} nodes become {after}" in steps
    for name in ("before", "after"):
        one = facts["test"]["accuracy"][name]
        assert f"{one['mean']:.1%} ± {one['standard_error']:.1%}" in steps


def test_demo_does_not_overwrite_unless_forced(tmp_path):
    (tmp_path / "small.skops").write_text("precious")
    assert "would be overwritten" in call("demo", "--out", tmp_path, code=1).stderr
    assert (tmp_path / "small.skops").read_text() == "precious"
