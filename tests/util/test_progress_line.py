"""The line of progress: where it is shown, when, and what it says."""

import io
import re
import sys
import threading
import time
import types

import numba
import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

import secateur as sc
from secateur import kernels
from secateur._util import progress_line as module
from secateur._util.progress_line import progress_line
from secateur.kernels._jit import kernel


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def screen(monkeypatch):
    """Replace stderr by a terminal, on which the line appears at once, or by something else."""

    def replaced(*, terminal=True, delay=0.0):
        monkeypatch.setattr(module, "DELAY", delay)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys, "stderr", Screen(terminal))
        return sys.stderr

    return replaced


def shown(stream):
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", stream.getvalue())


def work(progress=None):
    with progress_line(progress, "reading rows") as report:
        if report is not None:
            for step in ("pruning", "validating", "pruning"):
                for done in (1, 2):
                    report(done, 4, step)
                time.sleep(0.15)


def test_a_terminal_shows_steps_a_bar_and_the_share_done(screen):
    stream = screen()
    work()
    for part in ("reading rows", "pruning", "validating", "pruning, run 2 (2 of 4 folds done)", "━", "50%"):
        assert part in shown(stream), part
    assert stream.getvalue().endswith("\x1b[2K"), "the line is erased at the end"


def test_nothing_is_shown_before_the_delay_or_where_nobody_looks(screen, monkeypatch):
    for given in ({"delay": 5.0}, {"terminal": False}):
        stream = screen(**given)
        work()
        assert stream.getvalue() == ""
    stream = screen()
    work(False)
    monkeypatch.setenv("TERM", "dumb")
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert stream.getvalue() == ""


def test_true_forces_the_line_and_a_function_replaces_it(screen):
    stream = screen(terminal=False)
    work(True)
    assert "validating" in shown(stream)
    stream, calls = screen(), []
    work(lambda *call: calls.append(call))
    assert stream.getvalue() == ""
    assert calls[0] == (1, 4, "pruning")


def test_a_notebook_shows_the_line_without_widgets(screen, monkeypatch):
    stream = screen(terminal=False)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    work()
    assert "pruning" in shown(stream)
    assert "\r" in stream.getvalue()


def test_only_the_outermost_line_is_shown(screen):
    screen()
    with progress_line(None, "outer") as outer, progress_line(None, "inner") as inner:
        assert outer is not None
        assert inner is None
    with progress_line(None, "next") as report:
        assert report is not None


def test_pruning_shows_its_steps(screen):
    X, y = load_wine(return_X_y=True)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    stream = screen()
    sc.prune(model, X, y, max_nodes=60, validation="cv")
    assert "training clones" in shown(stream)
    stream = screen()
    sc.prune(model, X, y, max_nodes=60, validation="cv", progress=False)
    assert stream.getvalue() == ""


def test_a_line_says_that_kernels_are_being_compiled(screen, monkeypatch):
    stream = screen()
    monkeypatch.setattr(kernels, "are_compiling", lambda: True)
    work()
    assert "compiling kernels (once per machine)" in shown(stream)


def test_kernels_are_being_compiled_only_if_they_are_not_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def seen():
        """Return whether a new kernel was compiled, as another thread sees it, and how long that took."""
        states, ended = [], threading.Event()

        def watch():
            while not ended.wait(0.001):
                states.append(kernels.are_compiling())

        watcher = threading.Thread(target=watch)
        watcher.start()
        kernel(kernels.count_rows.py_func)(np.zeros(3, np.uint8), 2)
        ended.set()
        watcher.join()
        return any(states)

    assert seen()
    assert not seen()
    assert not kernels.are_compiling()
