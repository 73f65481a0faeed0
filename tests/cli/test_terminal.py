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

from secateur.cli._errors_and_interrupts import reports_errors
from secateur.cli.progress import Bar, StepProgress, format_duration

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


def test_errors_on_a_terminal_are_coloured_unless_no_color_is_set(tmp_path):
    code, written = on_a_terminal("inspect", tmp_path / "gone.skops")
    assert code == 1
    assert "reading gone.skops" in written
    assert f"{ESCAPE}[31mError: There is no file" in written
    code, written = on_a_terminal("inspect", tmp_path / "gone.skops", NO_COLOR="1")
    assert "reading gone.skops" in written
    assert "Error: There is no file" in written
    assert ESCAPE not in written


def test_force_color_does_not_show_progress_in_a_pipe(tmp_path):
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


def test_a_broken_pipe_ends_the_program_silently():
    program = subprocess.Popen(
        [*PROGRAM, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    assert program.wait(timeout=60) == 141


def test_a_broken_pipe_ends_a_command_silently(made, monkeypatch):
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
    """A clock that a test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_remaining_time_is_extrapolated_from_the_completed_parts():
    clock = Clock()
    step = StepProgress("pruning", clock)
    assert (step.fraction, step.remaining) == (None, None)
    clock.now = 4.0
    step.update(2, 10)
    assert (step.fraction, step.elapsed, step.remaining) == (0.2, 4.0, 16.0)
    clock.now = 5.0
    assert step.remaining == 15.0
    clock.now = 14.0  # the next update was due after four seconds, six seconds ago
    assert step.remaining == (4.0 + 6.0) * 8 / 2 - 4.0
    step.update(10, 10)
    assert (step.fraction, step.remaining) == (1.0, None)


def test_updates_of_many_parts_at_once_do_not_inflate_the_remaining_time():
    clock = Clock()
    step = StepProgress("pruning", clock)
    for k in range(1, 5):
        clock.now = float(k)
        step.update(100 * k, 1000)
    clock.now = 4.9
    assert step.remaining == pytest.approx(6.0 - 0.9)


def test_the_line_names_the_step_and_fits_the_terminal():
    clock = Clock()
    bar = Bar(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), "reading rows.csv", clock)
    clock.now = 3.0
    assert bar.text(79).startswith("reading rows.csv ╌")
    assert bar.text(79).endswith("3 s")
    bar.update(0, 4, "pruning")
    clock.now = 5.0
    bar.update(1, 4, "pruning")
    assert bar.text(79) == f"pruning {'━' * 7}{'╌' * 23} 25%, 2 s, about 6 s left"
    for width in range(1, 100):
        assert len(bar.text(width)) <= width
    assert "━" not in bar.text(35)


def test_repeated_steps_are_numbered():
    bar = Bar(io.StringIO(), "pruning", Clock())
    for update in [(2, 9, "pruning"), (9, 9, "pruning"), (1, 9, "pruning")]:
        bar.update(*update)
    assert bar.text(100).startswith("pruning, run 2 ")
    bar.update(1, 5, "trying on other rows")
    bar.update(1, 9, "pruning")
    assert bar.text(100).startswith("pruning, run 3 (1 of 5 folds done) ")


def test_a_bar_without_unicode_is_drawn_in_ascii():
    bar = Bar(io.TextIOWrapper(io.BytesIO(), encoding="ascii"), "pruning", Clock())
    bar.update(1, 2, "pruning")
    assert bar.text(60).isascii()


def test_messages_are_printed_above_the_line_which_is_erased():
    stream = io.StringIO()
    bar = Bar(stream, "pruning", Clock())
    with bar.shown(), bar.hidden():
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
def test_durations_are_formatted(seconds, words):
    assert format_duration(seconds) == words


@pytest.mark.parametrize(
    ("args", "steps"),
    [
        (("path",), ["pruning"]),
        (("path", "--solver", "weakest_link", "--validation", "0.3"), ["evaluating"]),
        (("prune", "--max-nodes", 100), ["pruning", "trying on other rows"]),
    ],
    ids=str,
)
def test_long_steps_report_progress(args, steps, here, watched):
    told = watched()
    out = here / ("p.npz" if args[0] == "path" else "s.skops")
    call(args[0], here / "forest.skops", here / "rows.csv", "--target", "y", *args[1:], "--out", out)
    assert {what for _, _, what in told} == set(steps)
    assert all(0 <= done <= total for done, total, _ in told)
    assert {"reading forest.skops", "reading rows.csv", "pruning"} <= set(told.blocks)


def test_a_warning_is_printed_once_per_command(capsys):
    @reports_errors
    def warn_twice(quiet, debug):
        for _ in range(2):
            warnings.warn("the same", UserWarning, stacklevel=1)

    for _ in range(2):
        warn_twice(quiet=False, debug=False)
    assert capsys.readouterr().err == "Warning: the same\n" * 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full is Linux")
def test_a_full_stdout_is_reported_with_the_file_written(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "s.skops")
    words = [*PROGRAM, *map(str, args), "--solver", "weakest_link"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        told = f"Error: Cannot print the results: no space left on device; {here / 's.skops'} was written. Redirect"
        assert (done.returncode, done.stderr.startswith(told)) == (1, True), done.stderr
        done = subprocess.run([*PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        assert done.returncode == 1
        assert done.stderr == "Error: Cannot print to stdout: No space left on device. Redirect the output.\n"


def test_the_program_works_without_stdout_and_stderr(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "s.skops")
    words = " ".join(shlex.quote(str(word)) for word in (*PROGRAM, *args, "--solver", "weakest_link"))
    done = subprocess.run(["sh", "-c", f"{words} >&- 2>&-"], env=environment())
    assert done.returncode == 0
    assert (here / "s.skops").exists()
