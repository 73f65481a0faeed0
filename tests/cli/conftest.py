"""Folders with a trained forest, rows and paths, as files."""

import contextlib
import gzip
import shutil
import signal

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from tests.cli.runner import FOREST, call

from secateur.files.models import save_model


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a folder with a trained forest and rows it has not seen; labels are text."""
    folder = tmp_path_factory.mktemp("made")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    rows = X.iloc[:, :8].assign(y=np.array(["malign", "benign"])[y])
    save_model(FOREST.fit(rows.iloc[:250, :8], rows.y[:250]), folder / "forest.skops")
    save_model(FOREST, folder / "forest.pkl")
    rows[:250].to_csv(folder / "train.csv", index=False)
    rows[250:450].to_csv(folder / "rows.csv", index=False)
    rows[450:].to_csv(folder / "others.csv", index=False)
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    rows[250:450].to_parquet(folder / "rows.parquet")
    return folder


@pytest.fixture
def here(made, tmp_path):
    """Return a copy of the folder that a test may change."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="session")
def paths(made):
    """Return the folder with two paths in it, one evaluated."""
    args = ("path", made / "forest.skops", made / "rows.csv", "--target", "y")
    call(*args, "--out", made / "plain.npz")
    call(*args, "--out", made / "judged.npz", "--validation", made / "others.csv")
    return made


class Progress(list):
    """The progress updates of a command, and the names of its blocks."""

    def __init__(self):
        super().__init__()
        self.blocks = []


@pytest.fixture
def watched(monkeypatch):
    """Return a function that records the progress of commands, and raises SIGINT at the given steps."""

    def watch(*interrupts):
        progress, remaining = Progress(), list(interrupts)

        def step(entry):
            if remaining and remaining[0] == entry:
                remaining.pop(0)
                signal.raise_signal(signal.SIGINT)

        def move(done, total, what):
            progress.append((done, total, what))
            step((what, sum(1 for _, _, name in progress if name == what)))

        @contextlib.contextmanager
        def progress_bar(what):
            progress.blocks.append(what)
            step(what)
            yield move

        commands = ("path", "prune", "report", "select", "benchmark", "serve_cost", "inspect")
        for module in (*(f"commands.{name}" for name in commands), "_output", "_demo"):
            monkeypatch.setattr(f"secateur.cli.{module}.progress_bar", progress_bar)
        return progress

    return watch
