"""The command report, and the report beside a pruned model: the numbers of the API, of select and of the page."""

import json
import re
import shlex

import pandas as pd
import pytest
from tests.cli.runner import call, numbers_of

import secateur as sc
from secateur.files.models import load_model
from secateur.reporting import describe

SIZES = ("nodes", "leaves", "trees", "depth", "features")
UNLIKE = ("measured", "code", "versions", "file")  # times, and lines that the API cannot know


def dict_in(page):
    """Return the dict that a page was made from."""
    text = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page.read_text(), flags=re.S).group(1)
    return json.loads(text)


def alike(report):
    return {name: value for name, value in report.items() if name not in UNLIKE}


def test_page_json_and_table_show_the_same_dict_as_the_api(paths, tmp_path):
    args = ("report", paths / "judged.npz", "--max-nodes", 100, "--out", tmp_path / "r.html", "--force")
    report = json.loads(call(*args, "--json").stdout)
    shown = numbers_of(call(*args).stdout)
    path = sc.Path.load(paths / "judged.npz", load_model(paths / "forest.skops"))
    api = json.loads(json.dumps(describe(path, max_nodes=100)))
    assert alike(report) == alike(dict_in(tmp_path / "r.html")) == alike(api)
    assert report["file"] == str(tmp_path / "r.html")
    for name in SIZES:
        assert shown[name][:2] == [str(report["summary"][when][name]) for when in ("before", "after")]


def test_select_gets_the_point_of_the_report_again(paths, tmp_path):
    call("report", paths / "judged.npz", "--point", 7, "--out", tmp_path / "r.html")
    report = dict_in(tmp_path / "r.html")
    line = report["code"]["shell"].replace("{point}", "7").replace("FILE", str(tmp_path / "s.joblib"))
    summary = json.loads(call(*shlex.split(line)[1:], "--json").stdout)
    assert report["point"] == summary["point"] == 7
    for name in SIZES:
        assert summary["after"][name] == report["summary"]["after"][name]
    assert summary["loss"] == report["summary"]["loss"]


def test_rows_and_prices_are_measured(paths, tmp_path):
    rows = pd.read_csv(paths / "others.csv")
    pd.DataFrame({"feature": rows.columns[:-1], "cost": range(1, 9)}).to_csv(tmp_path / "prices.csv", index=False)
    args = ("report", paths / "plain.npz", "--data", paths / "others.csv", "--target", "y", "--json")
    report = json.loads(call(*args, "--costs", tmp_path / "prices.csv", "--out", tmp_path / "r.html").stdout)
    assert report["measured"]["rows"] == len(rows)
    assert len(report["measured"]["calibration"]) == len(report["measured"]["points"])
    path = sc.Path.load(paths / "plain.npz", load_model(paths / "forest.skops"))
    evaluated = path.evaluate(rows.iloc[:, :-1], rows.y)  # which the path itself was not
    assert report["table"]["loss"] == pytest.approx(evaluated.table["loss"].tolist())
    bills = report["measured"]["bills"]
    cost = sc.costs.FeatureCost(dict(zip(rows.columns[:-1], range(1, 9), strict=True)))
    assert bills["mean"][0] == pytest.approx(cost.mean_price(path.source.model, rows.iloc[:, :-1]))


def test_baselines_are_named_after_their_files(paths, tmp_path):
    args = ("report", paths / "judged.npz", "--baseline", paths / "judged.npz", "--out", tmp_path / "r.html", "--json")
    assert list(json.loads(call(*args).stdout)["baselines"]) == ["judged"]


def test_a_report_does_not_need_the_model(paths, tmp_path):
    whole = sc.Path.load(paths / "judged.npz")
    whole.with_info(model_file=str(tmp_path / "gone.skops")).save(tmp_path / "alone.npz")
    result = call("report", tmp_path / "alone.npz", "--out", tmp_path / "r.html", "--json")
    assert "gone.skops" in result.stderr
    assert "The report is written without the model" in result.stderr
    assert dict_in(tmp_path / "r.html")["table"]["n_nodes"] == whole.table["n_nodes"].tolist()


def test_prune_writes_report_and_path_of_the_choice(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--max-nodes", 120)
    files = ("--out", here / "s.skops", "--report", here / "r.html", "--save-path", here / "p.npz")
    summary = json.loads(call(*args, *files, "--json").stdout)
    report, saved = dict_in(here / "r.html"), sc.Path.load(here / "p.npz")
    assert report["point"] == summary["point"]
    assert report["summary"]["after"]["nodes"] == summary["after"]["nodes"] == saved.table["n_nodes"][report["point"]]
    again = shlex.split(report["code"]["chosen"])
    assert again == ["secateur", *map(str, args[:1]), *map(str, args[1:3]), "--out", str(here / "s.skops"), *again[6:]]
    assert "--report" not in again
    assert "--save-path" not in again
    same = json.loads(call(*again[1:], "--force", "--json").stdout)
    assert same["after"] == pytest.approx(summary["after"], rel=0.03)  # skops files differ by some bytes


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--out", "r.txt"), "must end in .html"),
        (("--out", "r.html", "--costs", "prices.csv"), "--costs was given without rows"),
        (("--out", "r.html", "--point", "3", "--max-nodes", "5"), "Leave out one of them"),
        (("--out", "r.html", "--point", "9999"), "--point 9999 does not exist"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_errors_are_raised_before_anything_is_written(paths, tmp_path, monkeypatch, more, message):
    monkeypatch.chdir(tmp_path)
    result = call("report", paths / "judged.npz", *more, code=1)
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
