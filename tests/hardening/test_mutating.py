"""Check the tools that damage files: crashes are reported, and files are changed as intended."""

import json
import zipfile

import numpy as np
import pytest
from tests.hardening.checks import mutated_inputs
from tests.hardening.mutating import __main__ as worker
from tests.hardening.mutating.kind import GOOD, SAME, Kind
from tests.hardening.mutating.shapes import RAN, Touch, _packed, changed_json, npy, zip_of


def test_a_process_that_hangs_is_noticed_and_the_rest_is_tried(tmp_path, monkeypatch):
    monkeypatch.setattr(mutated_inputs, "_LOOK", 0.01)
    monkeypatch.setattr(mutated_inputs, "_SILENT", -1)
    found = mutated_inputs.outcomes(tmp_path, ["data .csv:0:2"])
    assert [(number, how) for _, number, how, *_ in found] == [(0, "hang"), (1, "hang")]


def test_a_process_that_dies_is_noticed_and_the_rest_is_tried(tmp_path, monkeypatch):
    monkeypatch.setitem(mutated_inputs._ENVIRONMENT, "PYTHONHASHSEED", "no number")
    found = mutated_inputs.outcomes(tmp_path, ["data .csv:0:2"])
    assert [(number, how) for _, number, how, *_ in found] == [(0, "crash"), (1, "crash")]


def outcome(tmp_path, read, judge=lambda *_: SAME):
    file = tmp_path / "work" / "file"
    file.parent.mkdir()
    file.write_bytes(b"x")
    return worker._outcome(Kind("", (), lambda *_: None, read, judge), file, None)


def refuse(error):
    def read(file):
        raise error

    return read


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (ValueError("It is damaged. Save it again."), "refused"),
        (FileNotFoundError("There is no file x. Check the name."), "refused"),
        (ValueError("could not broadcast"), "ValueError"),
        (KeyError("left"), "KeyError"),
        (MemoryError(), "MemoryError"),
        (RecursionError("too deep."), "RecursionError"),
    ],
)
def test_only_errors_in_words_count_as_refusals(tmp_path, error, how):
    assert outcome(tmp_path, refuse(error))[0] == how


def test_slow_refusals_growth_and_differences_are_not_good(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "SECONDS", -1.0)
    assert outcome(tmp_path, refuse(ValueError("It is damaged. Save it again.")))[0] == "slow"
    (tmp_path / "a").mkdir()
    monkeypatch.setattr(worker, "MEGABYTES", 50.0)
    assert outcome(tmp_path / "a", lambda file: np.ones(10**7))[0] == "large"
    (tmp_path / "b").mkdir()
    assert outcome(tmp_path / "b", lambda file: 1, lambda *_: "other numbers")[:2] == ("disagree", "other numbers")
    assert not {"slow", "large", "disagree"} & set(GOOD)


def test_code_that_ran_and_files_elsewhere_are_seen(tmp_path):
    def unpickles(file):
        Touch(file.parent / RAN).__reduce__()[0](file.parent / RAN)

    assert outcome(tmp_path, unpickles)[0] == "ran code"
    (tmp_path / "a").mkdir()
    assert outcome(tmp_path / "a", lambda file: (file.parent.parent / "escaped").touch())[0] == "wrote elsewhere"


def test_our_zips_are_zips_and_deep_json_is_deep(tmp_path):
    content = npy(np.arange(3))
    (tmp_path / "z.npz").write_bytes(zip_of([_packed("a.npy", content)]))
    assert np.load(tmp_path / "z.npz")["a"].tolist() == [0, 1, 2]
    assert zipfile.ZipFile(tmp_path / "z.npz").testzip() is None
    texts = [changed_json({"a": [1, 2], "b": {"c": "d"}}, np.random.default_rng(k)) for k in range(300)]
    assert max(text.count(b"[") for text in texts) > 50_000
    assert sum(_is_json(text) for text in texts) > 200


def _is_json(text):
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def test_every_kind_has_mutations():
    assert set(worker._kinds(["all"])) == set(mutated_inputs.KINDS)
