"""`secateur check` prints what files are and sets the exit code; one bad file does not hide the others."""

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
from tests.cli.runner import call

MODELS = Path(__file__).parents[1] / "models"
GOOD = MODELS / "lightgbm-4.7.0-binary.txt"


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Be in a folder with a valid, a damaged, an evil and an unknown file."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(GOOD, "good.txt")
    Path("bad.txt").write_text(GOOD.read_text().replace("left_child=", "left_child=9", 1))
    Path("evil.pkl").write_bytes(pickle.dumps(Evil()))
    Path("other.h5").write_bytes(b"x")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["good.txt"], 0),
        (["good.txt", "bad.txt"], 1),
        (["evil.pkl"], 1),
        (["good.txt", "missing.txt"], 2),
        (["other.h5"], 2),
        (["missing.txt", "bad.txt"], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_file(names, code, files):
    call("check", *names, code=code)
    assert not Path("ran").exists()


def test_without_files_the_usage_is_wrong(files):
    call("check", code=2)


def test_json_has_a_report_for_each_file_and_counts(files):
    facts = json.loads(call("check", "good.txt", "evil.pkl", "missing.txt", "--json", code=1).stdout)
    assert facts["counts"] == {"ok": 1, "runs code": 1, "unreadable": 1}
    good, evil, missing = facts["files"]
    assert (good["file"], good["trees"], good["problem"]) == ("good.txt", 4, None)
    assert evil["unknown"] == ["posix.system"]
    assert missing["problem"].endswith("Check the name.")


def test_the_table_shows_the_same(files):
    output = call("check", "good.txt", "bad.txt", "evil.pkl", code=1).stdout
    assert "good.txt: ok" in output
    assert "objective          binary sigmoid:0.8" in output
    assert "bad.txt: damaged" in output
    assert "A left_child points to a node that does not exist" in output
    assert "code: posix.system" in output
    assert output.rstrip().endswith("1 ok, 1 damaged, 1 runs code")


def test_quiet_leaves_only_the_exit_code(files):
    assert call("check", "bad.txt", "--quiet", code=1).output == ""


def test_escape_codes_in_names_are_not_printed(files):
    Path("evil.pkl").write_bytes(b"c\x1b[31mos\nsystem\n.")
    output = call("check", "evil.pkl", code=1).stdout
    assert "\x1b" not in output
    assert "\\x1b[31mos.system" in output


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_without_permission_is_unreadable(files):
    Path("good.txt").chmod(0)
    assert "good.txt: unreadable" in call("check", "good.txt", code=2).stdout
