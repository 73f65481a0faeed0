"""Colours, progress, quiet and pipes, with real terminals and real pipes."""

import io
import json
import os
import shlex
import subprocess
import warnings

import pytest
from tests.cli.runner import call
from tests.cli.shell import PROGRAM, environment, in_a_pipe, on_a_terminal

from secateur.cli._errors_and_interrupts import runs
from secateur.cli.progress import Bar, Pace, in_words

ESCAPE = "\x1b"


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=str,
)
def test_help_on_a_terminal(environment, coloured):
    code, written = on_a_terminal("prune", "--help", **environment)
    assert code == 0
    assert "Write a smaller copy of a model." in written
    assert (ESCAPE in written) == coloured


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"GITHUB_ACTIONS": "true"}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
    ids=str,
)
def test_help_in_a_pipe(environment, coloured):
    done = in_a_pipe("prune", "--help", **environment)
    assert done.returncode == 0
    assert (ESCAPE in done.stdout) == coloured
    assert done.stderr == ""


def test_errors_and_progress_on_a_terminal_are_coloured_unless_told_not_to(tmp_path):
    code, written = on_a_terminal("inspect", tmp_path / "gone.skops")
    assert code == 1
    assert "reading gone.skops" in written
    assert f"{ESCAPE}[31mError: There is no file" in written
    code, written = on_a_terminal("inspect", tmp_path / "gone.skops", NO_COLOR="1")
    assert "reading gone.skops" in written
    assert "Error: There is no file" in written
    assert ESCAPE not in written


def test_a_forced_colour_does_not_bring_progress_into_a_pipe(tmp_path):
    done = in_a_pipe("inspect", tmp_path / "gone.skops", FORCE_COLOR="1")
    assert done.stderr.startswith(f"{ESCAPE}[31mError: There is no file")
    assert "reading" not in done.stderr


def test_quiet_shows_no_progress_on_a_terminal(tmp_path):
    _, written = on_a_terminal("inspect", tmp_path / "gone.skops", "--quiet", NO_COLOR="1")
    assert written.startswith("Error: There is no file")


def test_wrong_usage_has_no_escape_codes_with_no_color():
    code, written = on_a_terminal("prune", NO_COLOR="1")
    assert code == 2
    assert "Usage" in written
    assert ESCAPE not in written


def test_a_pipe_nobody_reads_ends_the_program_quietly():
    program = subprocess.Popen(
        [*PROGRAM, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    assert program.wait(timeout=60) == 141


def test_a_pipe_nobody_reads_ends_a_command_quietly(made, monkeypatch):
    def closed(self, *args, **kwargs):
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", closed)
    monkeypatch.setattr("rich.console.Console.out", closed)
    assert call("inspect", made / "forest.skops", code=141).stderr == ""
    assert call("inspect", made / "forest.skops", "--json", code=141).stderr == ""


# quiet


@pytest.mark.parametrize("command", ["inspect", "prune", "path", "select", "serve-cost"])
def test_quiet_prints_nothing_but_json(command, paths, tmp_path):
    model, rows, out = paths / "forest.skops", paths / "rows.csv", tmp_path / "out"
    args = {
        "inspect": (model, rows),
        "prune": (model, rows, "--target", "y", "--max-nodes", 100, "--force", "--out", out.with_suffix(".skops")),
        "path": (model, rows, "--target", "y", "--solver", "weakest_link", "--force", "--out", out.with_suffix(".npz")),
        "select": (paths / "plain.npz", "--force", "--out", out.with_suffix(".skops")),
        "serve-cost": (model, rows, "--target", "y"),
    }[command]
    assert call(command, *args, "-q").output == ""
    assert json.loads(call(command, *args, "--quiet", "--json").stdout)


def test_quiet_keeps_warnings(here):
    args = ("prune", here / "forest.skops", here / "train.csv", "--target", "y", "--validation", "none", "-q")
    done = call(*args, "--solver", "weakest_link", "--out", here / "s.skops")
    assert done.stdout == ""
    assert done.stderr.startswith("Warning: X looks like the rows the model was trained on")


# progress


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_what_is_left_is_told_by_the_pace_so_far():
    clock = Clock()
    pace = Pace("pruning", clock)
    assert (pace.share, pace.left) == (None, None)
    clock.now = 4.0
    pace.move(2, 10)
    assert (pace.share, pace.elapsed, pace.left) == (0.2, 4.0, 16.0)
    clock.now = 5.0
    assert pace.left == 15.0
    clock.now = 14.0  # after four seconds news were due, and six more have gone
    assert pace.left == (4.0 + 6.0) * 8 / 2 - 4.0
    pace.move(10, 10)
    assert (pace.share, pace.left) == (1.0, None)


def test_many_parts_at_once_do_not_make_the_rest_seem_long():
    clock = Clock()
    pace = Pace("pruning", clock)
    for k in range(1, 5):
        clock.now = float(k)
        pace.move(100 * k, 1000)
    clock.now = 4.9
    assert pace.left == pytest.approx(6.0 - 0.9)


def test_the_line_names_the_step_and_fits_the_terminal():
    clock = Clock()
    bar = Bar(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), "reading rows.csv", clock)
    clock.now = 3.0
    assert bar.text(79).startswith("reading rows.csv ╌")
    assert bar.text(79).endswith("3 s")
    bar.move(0, 4, "pruning")
    clock.now = 5.0
    bar.move(1, 4, "pruning")
    assert bar.text(79) == f"pruning {'━' * 7}{'╌' * 23} 25%, 2 s, about 6 s left"
    for width in range(1, 100):
        assert len(bar.text(width)) <= width
    assert "━" not in bar.text(35)


def test_prunings_that_follow_each_other_are_counted():
    bar = Bar(io.StringIO(), "pruning", Clock())
    for step in [(2, 9, "pruning"), (9, 9, "pruning"), (1, 9, "pruning")]:
        bar.move(*step)
    assert bar.text(100).startswith("pruning, run 2 ")
    bar.move(1, 5, "trying on other rows")
    bar.move(1, 9, "pruning")
    assert bar.text(100).startswith("pruning, run 3 (1 of 5 rounds done) ")


def test_a_bar_without_unicode_is_drawn_in_ascii():
    bar = Bar(io.TextIOWrapper(io.BytesIO(), encoding="ascii"), "pruning", Clock())
    bar.move(1, 2, "pruning")
    assert bar.text(60).isascii()


def test_messages_are_printed_above_the_line_and_nothing_of_it_stays():
    stream = io.StringIO()
    bar = Bar(stream, "pruning", Clock())
    with bar.shown(), bar.away():
        stream.write("a message\n")
    shown = []
    for line in stream.getvalue().split("\n"):
        told = ""
        for part in line.split("\r"):
            told = part + told[len(part) :]
        shown.append(told.strip())
    assert shown == ["a message", ""]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (-1, "0 s")],
)
def test_times_in_words(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("args", "steps"),
    [
        (("path",), ["pruning"]),
        (("path", "--solver", "weakest_link", "--validation", "0.3"), ["evaluating"]),
        (("prune", "--max-nodes", 100), ["pruning", "trying on other rows"]),
    ],
    ids=str,
)
def test_long_steps_tell_how_far_they_are(args, steps, here, watched):
    told = watched()
    out = here / ("p.npz" if args[0] == "path" else "s.skops")
    call(args[0], here / "forest.skops", here / "rows.csv", "--target", "y", *args[1:], "--out", out)
    assert {what for _, _, what in told} == set(steps)
    assert all(0 <= done <= total for done, total, _ in told)
    assert {"reading forest.skops", "reading rows.csv", "pruning"} <= set(told.blocks)


def test_a_warning_is_said_once_for_a_command(capsys):
    @runs
    def warn_twice(quiet, debug):
        for _ in range(2):
            warnings.warn("the same", UserWarning, stacklevel=1)

    for _ in range(2):
        warn_twice(quiet=False, debug=False)
    assert capsys.readouterr().err == "Warning: the same\n" * 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is Linux")
def test_results_that_cannot_be_printed_are_told_with_what_was_written(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "s.skops")
    words = [*PROGRAM, *map(str, args), "--solver", "weakest_link"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        told = f"Error: Results cannot be printed: no space left on device; {here / 's.skops'} was written. Print"
        assert (done.returncode, done.stderr.startswith(told)) == (1, True), done.stderr
        done = subprocess.run([*PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        assert done.returncode == 1
        assert done.stderr == "Error: This cannot be printed: No space left on device. Print it elsewhere.\n"


def test_a_program_without_stdout_and_stderr_does_its_work(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "s.skops")
    words = " ".join(shlex.quote(str(word)) for word in (*PROGRAM, *args, "--solver", "weakest_link"))
    done = subprocess.run(["sh", "-c", f"{words} >&- 2>&-"], env=environment())
    assert done.returncode == 0
    assert (here / "s.skops").exists()
