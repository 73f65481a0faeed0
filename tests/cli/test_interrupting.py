"""Ctrl-C and SIGTERM: partial results are kept, and no partially written file remains."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from tests.cli.runner import call
from tests.cli.shell import on_a_terminal

import secateur as sc
from secateur.cli._errors_and_interrupts import install_sigterm_handler
from secateur.files import atomic as replace
from secateur.files.models import load_model, save_model


@pytest.fixture
def args(here):
    """Return a function that gives the arguments of a command."""

    def of(command, *others):
        out = here / {"prune": "s.skops", "path": "p.npz"}[command]
        return (command, here / "forest.skops", here / "rows.csv", "--target", "y", *others, "--out", out)

    return of


def names(folder):
    return sorted(os.listdir(folder))


def test_a_path_has_the_points_found_until_the_interruption(here, args, watched):
    whole = json.loads(call(*args("path", "--json")).stdout)
    (here / "p.npz").unlink()
    watched(("pruning", 40))
    done = call(*args("path", "--json"), code=130)
    found, saved = json.loads(done.stdout), sc.Path.load(here / "p.npz")
    assert found["interrupted"]
    assert saved.info.interrupted
    assert 1 < found["points"] == len(saved) < whole["points"]
    assert set(found["table"]["risk"][1:]) < set(whole["table"]["risk"])
    first, last = done.stderr.splitlines()
    assert first.startswith("Warning: Interrupted: the path has the ")
    assert first.endswith("press Ctrl-C again to stop immediately.")
    assert last == f"Interrupted; {here / 'p.npz'} is partial. Run again to get the complete result."
    assert not whole["interrupted"]


def test_a_model_is_chosen_from_the_points_evaluated_until_the_interruption(here, args, watched):
    others = ("--solver", "weakest_link", "--validation", here / "others.csv")
    steps = watched(("evaluating", 5))
    done = call(*args("prune", *others, "--json"), code=130)
    summary = json.loads(done.stdout)
    assert summary["interrupted"]
    assert 0 < summary["point"] < 5
    assert sc.as_forest(load_model(here / "s.skops")).n_nodes == summary["after"]["nodes"]
    assert len(steps) == 5
    assert "the 5 of " in done.stderr


@pytest.mark.parametrize("step", ["reading forest.skops", "reading rows.csv", ("evaluating", 1), "writing s.skops"])
def test_with_nothing_to_keep_nothing_is_written(step, here, args, watched):
    watched(step)
    before = names(here)
    done = call(*args("prune", "--solver", "weakest_link"), code=130)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "Interrupted; nothing was written."
    assert names(here) == before


def test_the_second_interruption_stops_the_command(here, args, watched):
    watched(("pruning", 40), "writing p.npz")
    before = names(here)
    done = call(*args("path"), code=130)
    assert done.stderr.splitlines()[-1] == "Interrupted; nothing was written."
    assert names(here) == before


def test_a_second_interrupted_pruning_stops_the_command(here, args, watched):
    """The pruning of the model is interrupted, then that of a clone, which alone would let the next clone follow."""
    names_of = (here / "rows.csv").read_text().splitlines()[0].split(",")[:-1]
    (here / "prices.csv").write_text(
        "\n".join(["feature,cost", *(f"{name},{k + 1}" for k, name in enumerate(names_of))])
    )
    steps = watched(("pruning", 30), ("pruning", 60))
    before = names(here)
    others = ("--solver", "cost_descent", "--costs", here / "prices.csv", "--regrow", "--validation", "none")
    done = call(*args("prune", *others), code=130)
    assert len(steps) == 60
    assert done.stderr.splitlines()[-1] == "Interrupted; nothing was written."
    assert names(here) == before


def test_too_few_points_for_a_choice_are_reported(here, args, watched):
    others = ("--solver", "weakest_link", "--validation", here / "others.csv", "--max-loss-increase", -0.99)
    watched(("evaluating", 3))
    before = names(here)
    last = call(*args("prune", *others), code=130).stderr.splitlines()[-1]
    start = "Interrupted; the partial result is not sufficient, and nothing was written. No point"
    assert last.startswith(start)
    assert names(here) == before


@pytest.mark.parametrize(("number", "code", "word"), [("SIGINT", 130, "Interrupted"), ("SIGTERM", 143, "Terminated")])
@pytest.mark.parametrize("command", ["prune", "path"])
def test_a_signal_while_writing_leaves_no_file(number, code, word, command, here, args, monkeypatch):
    handler = signal.getsignal(signal.SIGTERM)
    install_sigterm_handler()
    monkeypatch.setattr("secateur.files.atomic.os.fsync", lambda _: signal.raise_signal(getattr(signal, number)))
    before = names(here)
    try:
        done = call(*args(command, "--solver", "weakest_link"), code=code)
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert done.stderr == f"{word}; nothing was written.\n"
    assert names(here) == before


def test_a_signal_after_writing_reports_the_file(here, args, monkeypatch):
    monkeypatch.setattr("secateur.cli._tables_and_json.print_summary", lambda _: signal.raise_signal(signal.SIGINT))
    done = call(*args("prune", "--solver", "weakest_link"), code=130)
    assert done.stderr == f"Interrupted; {here / 's.skops'} was written.\n"
    assert (here / "s.skops").exists()


def test_a_signal_just_after_renaming_reports_the_file(here, args, monkeypatch):
    give_name = replace._rename_to

    def give_name_and_interrupt(*names, **options):
        give_name(*names, **options)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(replace, "_rename_to", give_name_and_interrupt)
    done = call(*args("prune", "--solver", "weakest_link"), code=130)
    assert done.stderr == f"Interrupted; {here / 's.skops'} was written.\n"


def test_an_error_caused_by_ctrl_c_is_reported_as_an_interruption(here, args, monkeypatch):
    def swallow(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("Error calling __set_name__") from error

    monkeypatch.setattr("secateur.selection.evaluated_path.evaluated_path", swallow)
    done = call(*args("prune"), code=130)
    assert done.stderr == "Interrupted; nothing was written.\n"


def test_ctrl_c_before_a_command_runs_exits_immediately():
    code = (
        "import secateur.cli, signal, sys\n"
        "program = sys.modules['secateur.cli.app']\n"
        "program.app = lambda **_: signal.raise_signal(signal.SIGINT)\n"
        "program.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "Interrupted; nothing was written.\n")


def test_an_interrupted_demo_leaves_no_folder(tmp_path, watched):
    watched("training a random forest")
    call("demo", "--out", tmp_path / "d", code=130)
    assert not (tmp_path / "d").exists()


@pytest.fixture(scope="module")
def long_work(tmp_path_factory):
    """Return a folder with a model that takes long to prune."""
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = X[:, 0] * X[:, 1] + rng.normal(size=3000)
    save_model(RandomForestRegressor(20, random_state=0).fit(X[:1500], y[:1500]), folder / "m.skops")
    header = ",".join([*(f"x{k}" for k in range(8)), "y"])
    np.savetxt(folder / "rows.csv", np.column_stack([X, y])[1500:], delimiter=",", header=header, comments="", fmt="%g")
    return folder


def test_control_c_at_a_terminal_keeps_the_points_found(long_work):
    args = ("path", long_work / "m.skops", long_work / "rows.csv", "--target", "y", "--out", long_work / "p.npz")
    code, written = on_a_terminal(*args, until=r"pruning \S+ +[1-9]\d*%", sends=signal.SIGINT, NO_COLOR="1")
    assert code == 130, written
    assert "left" in written
    assert "p.npz is partial. Run again" in written
    assert sc.Path.load(long_work / "p.npz").info.interrupted
    assert names(long_work) == ["m.skops", "p.npz", "rows.csv"]
    (long_work / "p.npz").unlink()


def test_sigterm_leaves_nothing(long_work):
    args = ("path", long_work / "m.skops", long_work / "rows.csv", "--target", "y", "--out", long_work / "p.npz")
    code, written = on_a_terminal(*args, until=r"pruning \S+ +[1-9]\d*%", sends=signal.SIGTERM, NO_COLOR="1")
    assert code == 143, written
    assert "Terminated; nothing was written." in written
    assert "Traceback" not in written
    assert names(long_work) == ["m.skops", "rows.csv"]
