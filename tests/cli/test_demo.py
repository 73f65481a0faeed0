"""`secateur demo`: what it says is what it did."""

from sklearn.datasets import load_breast_cancer
from tests.cli.runner import call, numbers_of

import secateur as sc
from secateur.io.files import load_model


def test_demo_writes_a_model_that_predicts_what_it_says(tmp_path):
    output = call("demo", "--out", tmp_path / "d").stdout
    small = load_model(tmp_path / "d" / "small.skops")
    forest = sc.as_forest(small)
    shown = numbers_of(output)
    assert forest.n_nodes <= 500
    assert [shown["nodes"][1], shown["leaves"][1]] == [str(forest.n_nodes), str(forest.n_leaves)]
    assert set(small.predict(load_breast_cancer().data)) == {0, 1}
    assert "sc.prune(model, X_prune, y_prune, max_nodes=500)" in output


def test_demo_does_not_overwrite_unless_forced(tmp_path):
    call("demo", "--out", tmp_path)
    assert "would be overwritten" in call("demo", "--out", tmp_path, code=1).stderr
    call("demo", "--out", tmp_path, "--force")
