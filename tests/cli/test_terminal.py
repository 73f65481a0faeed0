"""Colours, progress, quiet and pipes, with real terminals and real pipes."""

import io
import json
import os
import re
import shlex
import subprocess
import time
import warnings
from contextlib import redirect_stderr

import pytest
from tests.cli.runner import call
from tests.cli.shell import PROGRAM, environment, in_a_pipe, on_a_terminal

from secateur.cli._errors_and_interrupts import reports_errors
from secateur.cli._terminal import print_message
from secateur.cli.progress import progress_bar

ESCAPE = "\x1b"
CURSOR_CODE = re.compile(r"\x1b\[(\?25[lh]|[12][AK])")


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
    assert ESCAPE not in CURSOR_CODE.sub("", written)


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


class Terminal(io.StringIO):
    """A terminal in memory."""

    def isatty(self):
        return True

    def lines(self):
        """Return all that was drawn, without the codes that move the cursor."""
        return [line.strip() for line in CURSOR_CODE.sub("", self.getvalue()).replace("\r", "\n").splitlines()]


@pytest.fixture
def terminal(monkeypatch):
    """Return a terminal, 100 columns wide and without colours."""
    for name, value in {"NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    return Terminal()


def test_the_line_names_the_step_its_percentage_and_times(terminal):
    with redirect_stderr(terminal), progress_bar("pruning") as update:
        for done in range(4):
            update(done, 4, "pruning")
            time.sleep(0.05)
    assert re.fullmatch(r"pruning ━+╸? +75% 0:00:0\d 0:00:0\d left", terminal.lines()[-2]), terminal.lines()


def test_the_length_of_a_step_may_be_unknown(terminal):
    with redirect_stderr(terminal), progress_bar("reading rows.csv"):
        pass
    assert re.fullmatch(r"reading rows.csv [━ ]+ 0:00:0\d", terminal.lines()[-2]), terminal.lines()


@pytest.mark.parametrize("width", [1, 10, 40, 80])
def test_the_line_fits_the_terminal(width, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    with redirect_stderr(terminal), progress_bar("reading " + "x" * 100) as update:
        update(1, 2, "pruning " + "y" * 100)
    assert max(map(len, terminal.lines())) <= width


def test_repeated_steps_are_numbered(terminal):
    with redirect_stderr(terminal), progress_bar("pruning") as update:
        for calls in [(2, 9, "pruning"), (9, 9, "pruning"), (1, 9, "pruning")]:
            update(*calls)
        update(1, 5, "validating")
        update(1, 9, "pruning")
    drawn = re.sub("[━╸]", "", "\n".join(terminal.lines()))
    assert re.search(r"^pruning, run 2 ", drawn, re.MULTILINE)
    assert re.search(r"^validating \(1 of 5 folds done\) ", drawn, re.MULTILINE)
    assert re.search(r"^pruning, run 3 \(1 of 5 folds done\) +11% ", drawn, re.MULTILINE)


def test_messages_are_printed_above_the_line_which_is_erased(terminal):
    with redirect_stderr(terminal), progress_bar("pruning"):
        print_message("a [red]message[/red]", "red")
    before, after = terminal.getvalue().split("a [red]message[/red]\n")
    assert before.endswith("\r\x1b[2K")
    assert after.startswith("pruning")
    assert after.endswith("\x1b[1A\x1b[2K")


def test_names_of_files_cannot_control_the_terminal(terminal):
    with redirect_stderr(terminal), progress_bar("reading [bold]\x1b[31m\u202erows.csv"):
        pass
    assert r"reading [bold]\x1b[31m\u202erows.csv" in terminal.getvalue()
    assert all(line.isprintable() for line in terminal.lines())


def test_the_computation_continues_when_the_terminal_is_closed(terminal):
    with redirect_stderr(terminal), progress_bar("pruning") as update:
        terminal.close()
        update(1, 2, "pruning")
        update(1, 2, "evaluating")
        print_message("a message", "red")


@pytest.mark.parametrize(
    ("args", "steps"),
    [
        (("path",), ["pruning"]),
        (("path", "--solver", "weakest_link", "--validation", "0.3"), ["evaluating"]),
        (("prune", "--max-nodes", 100), ["pruning", "validating"]),
    ],
    ids=str,
)
def test_long_steps_report_progress(args, steps, here, watched):
    reported = watched()
    out = here / ("p.npz" if args[0] == "path" else "s.skops")
    call(args[0], here / "forest.skops", here / "rows.csv", "--target", "y", *args[1:], "--out", out)
    assert {what for _, _, what in reported} == set(steps)
    assert all(0 <= done <= total for done, total, _ in reported)
    assert {"reading forest.skops", "reading rows.csv", "pruning"} <= set(reported.blocks)


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
        message = f"Error: Cannot print the results: no space left on device; {here / 's.skops'} was written. Redirect"
        assert (done.returncode, done.stderr.startswith(message)) == (1, True), done.stderr
        done = subprocess.run([*PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, env=environment())
        assert done.returncode == 1
        assert done.stderr == "Error: Cannot print to stdout: No space left on device. Redirect the output.\n"


def test_the_program_works_without_stdout_and_stderr(here):
    args = ("prune", here / "forest.skops", here / "rows.csv", "--target", "y", "--out", here / "s.skops")
    words = " ".join(shlex.quote(str(word)) for word in (*PROGRAM, *args, "--solver", "weakest_link"))
    done = subprocess.run(["sh", "-c", f"{words} >&- 2>&-"], env=environment())
    assert done.returncode == 0
    assert (here / "s.skops").exists()
