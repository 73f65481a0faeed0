"""`secateur demo`: what it says is what it did."""

import json

from sklearn.datasets import load_breast_cancer
from tests.cli.runner import call, numbers_of

import secateur as sc
from secateur.cli._demo import print_demo
from secateur.files.models import load_model


def test_demo_writes_a_model_that_predicts_what_it_says(tmp_path):
    output = call("demo", "--out", tmp_path / "d").stdout
    small = load_model(tmp_path / "d" / "small.skops")
    forest = sc.as_forest(small)
    shown = numbers_of(output)
    assert forest.n_nodes <= 500
    assert [shown["nodes"][1], shown["leaves"][1]] == [str(forest.n_nodes), str(forest.n_leaves)]
    assert set(small.predict(load_breast_cancer(as_frame=True).data)) == {"benign", "malignant"}
    assert "sc.prune(model, X_prune, y_prune, max_nodes=500)" in output


def test_demo_does_not_overwrite_unless_forced(tmp_path):
    (tmp_path / "small.skops").write_text("precious")
    assert "would be overwritten" in call("demo", "--out", tmp_path, code=1).stderr
    assert (tmp_path / "small.skops").read_text() == "precious"
    assert call("demo", "--out", tmp_path, "--force", "--quiet").output == ""
    assert load_model(tmp_path / "small.skops").n_features_in_ == 30


def test_demo_json_has_the_numbers_shown(tmp_path, capsys):
    facts = json.loads(call("demo", "--out", tmp_path, "--json", "--quiet").stdout)
    small = load_model(tmp_path / "small.skops")
    assert facts["file"] == str(tmp_path / "small.skops")
    assert facts["after"]["nodes"] == sc.as_forest(small).n_nodes
    assert sum(facts["test"]["rows"].values()) == len(load_breast_cancer().data)
    print_demo(facts)
    shown = capsys.readouterr().out
    for share in facts["test"]["accuracy"].values():
        assert f"{share:.1%}" in shown
