"""python -m tests.fingerprints [--against REVISION]: fingerprint what users get, and compare with another revision.

For a change that must not change results: paths, choices and predictions of every solver on every kind of model, the
JSON of the command line, and stored files read and written again are hashed bit by bit. The other revision runs its own
copy of this module in a work tree of its own.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.cases import FOR_SOLVERS, adapter_of, case
from tests.cases.kinds import one_of_each_kind
from tests.contracts.test_solvers import ALL_SOLVERS, rows_for, some_points
from tests.hardening.solving import fingerprint
from typer.testing import CliRunner

import secateur as sc
from secateur.cli import app
from secateur.files.models import save_model

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "tests" / "models"
SOLVERS_AT_THE_COMMAND_LINE = ("auto", "weakest_link", "block_descent", "max_heap", "fewer_trees")


def fingerprints() -> dict[str, str]:
    """Return by name what tells results apart."""
    warnings.simplefilter("ignore")
    found = dict(paths()) | dict(choices()) | dict(command_line()) | dict(stored_files())
    return dict(sorted(found.items()))


def paths() -> Iterator[tuple[str, str]]:
    """Yield the path of every solver on every kind of model with the native models' predictions, or the refusal."""
    for name in one_of_each_kind(FOR_SOLVERS):
        fitted, adapter = case(name), adapter_of(name)
        for solver in ALL_SOLVERS:
            rows = rows_for(solver, fitted)
            try:
                path = sc.prune_path(adapter, rows, fitted.y, solver=solver, sample_weight=fitted.sample_weight)
            except ValueError:
                yield f"path: {name}: {solver!r}", "refused"
                continue
            path = path.evaluate(fitted.X_new[: len(fitted.X)], fitted.y)
            predictions = [path[int(point)].predict(fitted.X_new) for point in some_points(path)]
            yield f"path: {name}: {solver!r}", fingerprint(path) + digest(predictions) + native(name, path, fitted)


def native(name: str, path: Any, fitted: Any) -> str:
    """Return a digest of what the written model predicts; Spark would have to be started for its own."""
    if name.startswith("spark_"):
        return ""
    return digest(list(fitted.predictions(path[len(path) // 2].to_model(), fitted.X_new).values()))


def choices() -> Iterator[tuple[str, str]]:
    """Yield what `prune` chooses, by default and within half of the nodes."""
    for name in one_of_each_kind(FOR_SOLVERS):
        fitted, adapter = case(name), adapter_of(name)
        for limits in ({"max_loss_increase": 0.05}, {"max_nodes": max(adapter.forest.n_nodes // 2, 1)}):
            try:
                small = sc.prune(adapter, fitted.X, fitted.y, sample_weight=fitted.sample_weight, **limits)
            except ValueError:
                yield f"prune: {name}: {[*limits]}", "refused"
                continue
            forest = sc.as_forest(small)
            yield f"prune: {name}: {[*limits]}", digest([forest.right, forest.threshold, forest.value, forest.base])


def command_line() -> Iterator[tuple[str, str]]:
    """Yield the JSON of commands on a model and rows in files."""
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import RandomForestRegressor

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        model = RandomForestRegressor(10, random_state=0).fit(X[::2].to_numpy(), y[::2])
        save_model(sc.as_forest(model), here / "m.secateur")
        X[1::2].assign(y=y[1::2]).to_csv(here / "rows.csv", index=False)
        given = [here / "m.secateur", here / "rows.csv", "--target", "y", "--json", "--quiet", "--out"]
        for solver in SOLVERS_AT_THE_COMMAND_LINE:
            out = here / f"{solver}.secateur"
            yield f"cli: prune {solver}", run("prune", *given, out, "--solver", solver, "--max-nodes", 300)
            yield f"cli: path {solver}", run("path", *given, here / f"{solver}.npz", "--solver", solver)
            chosen = here / f"{solver}-selected.secateur"
            wanted = ["--max-nodes", 300, "--json", "--quiet", "--out", chosen]
            yield f"cli: select {solver}", run("select", here / f"{solver}.npz", *wanted)
        yield "cli: inspect", run("inspect", here / "m.secateur", "--json")


def run(*words: Any) -> str:
    """Return a digest of what a command prints as JSON, with file names cut to their last part."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code != 0:
        raise RuntimeError(f"secateur {' '.join(map(str, words))}: {result.output}")
    return hashlib.sha256(json.dumps(plain(json.loads(result.stdout)), sort_keys=True).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Return JSON without what differs between two runs: folders and times."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if "seconds" not in key and "time" not in key}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value.rpartition("/")[2] if isinstance(value, str) else value


def stored_files() -> Iterator[tuple[str, str]]:
    """Yield what is read from the files that earlier versions have written, and what is written of it."""
    with tempfile.TemporaryDirectory() as folder:
        for file in sorted(MODELS.glob("*.npz")):
            path = sc.Path.load(file)
            again = sc.Path.load(path.save(Path(folder) / file.name))
            yield f"file: {file.name}", fingerprint(path) + fingerprint(again)
        for file in sorted(MODELS.glob("*.secateur")):
            forest = sc.as_forest(file)
            again = sc.as_forest(save_model(forest, Path(folder) / file.name))
            yield (
                f"file: {file.name}",
                "".join(
                    digest(
                        [f.right, f.feature, f.threshold, f.value, f.weight, f.tree_weight, f.base, f.categories.code]
                    )
                    for f in (forest, again)
                ),
            )


def digest(arrays: Any) -> str:
    """Return a hash of arrays, bit by bit; lists of them are followed."""
    seen = hashlib.sha256()
    for array in arrays:
        if isinstance(array, list):
            seen.update(digest(array).encode())
            continue
        array = np.asarray(array)
        seen.update(str(array.shape).encode())
        text = array.dtype.kind in "OUS"
        seen.update(str(array.tolist()).encode() if text else np.ascontiguousarray(array).tobytes())
    return seen.hexdigest()


def of_revision(revision: str) -> dict[str, str]:
    """Return the fingerprints of another revision, taken in a work tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(
            ["git", "worktree", "add", "--detach", tree, revision], cwd=ROOT, check=True, capture_output=True
        )
        try:
            out = Path(folder) / "found.json"
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
            command = [sys.executable, "-m", "tests.fingerprints", "--out", out]
            subprocess.run(command, cwd=tree, env=environment, check=True)
            found: dict[str, str] = json.loads(out.read_text())
            return found
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def main() -> int:
    """Print or compare fingerprints; return 1 if some differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", help="a revision, or a .json file that --out has written")
    parser.add_argument("--out", type=Path, help="a file for the fingerprints")
    given = parser.parse_args()
    found = fingerprints()
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n")
    if not given.against:
        return 0
    stored = Path(given.against)
    other = json.loads(stored.read_text()) if stored.suffix == ".json" else of_revision(given.against)
    differ = sorted(name for name in found.keys() | other.keys() if found.get(name) != other.get(name))
    sys.stdout.write("".join(f"differs: {name}\n" for name in differ))
    sys.stdout.write(f"{len(found)} fingerprints, {len(differ)} differ\n")
    return min(len(differ), 1)


if __name__ == "__main__":
    sys.exit(main())
