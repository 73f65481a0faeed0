"""The main job on data that ships with scikit-learn: train, prune, and measure on rows nobody has seen."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from secateur.cli.show import before_after, print_written
from secateur.cli.terminal import progress_bar, stdout

MAX_NODES = 500

_SNIPPET = f"""\
import secateur as sc
small = sc.prune(model, X_prune, y_prune, max_nodes={MAX_NODES})
small.predict(X_test)"""


@dataclass(frozen=True)
class _Parts:
    """Rows for training, for pruning, and for the test."""

    X_train: Any
    X_prune: Any
    X_test: Any
    y_train: Any
    y_prune: Any
    y_test: Any


def run_demo(folder: Path, *, force: bool) -> Path:
    """Train a forest, prune it, print what that did, and return the file of the pruned model."""
    from secateur.api import prune_point
    from secateur.io.replace import check_free

    file = folder / ("small.skops" if find_spec("skops") else "small.joblib")
    folder.mkdir(parents=True, exist_ok=True)
    check_free(file, force=force)
    with progress_bar("training a random forest") as progress:
        parts = _load()
        model = _train(parts)
        chosen = prune_point(model, parts.X_prune, parts.y_prune, max_nodes=MAX_NODES, progress=progress)
    small = chosen.to_model()
    _print(parts, model, small, chosen.summary())
    chosen.save(file, force=force)
    print_written(file)
    return file


def _load() -> _Parts:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    X_train, X_prune, y_train, y_prune = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    return _Parts(X_train, X_prune, X_test, y_train, y_prune, y_test)


def _train(parts: _Parts) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0).fit(parts.X_train, parts.y_train)


def _print(parts: _Parts, model: Any, small: Any, summary: dict[str, Any]) -> None:
    """Print before and after, with the accuracy on the test rows measured here."""
    n_test, n_trees = len(parts.X_test), summary["before"]["trees"]
    table = before_after(summary["before"], summary["after"])
    accuracy = [f"{m.score(parts.X_test, parts.y_test):.1%}" for m in (model, small)]
    table.add_row("test accuracy", *accuracy)
    changed = (model.predict(parts.X_test) != small.predict(parts.X_test)).mean()
    table.add_row("predictions changed", "", f"{changed:.1%}")
    console = stdout()
    console.print("A random forest for the breast cancer data of scikit-learn", style="bold")
    console.print(table)
    console.print(
        f"A forest of {n_trees} trees was trained on {len(parts.X_train)} rows. secateur was allowed {MAX_NODES} "
        f"nodes and pruned and chose by {len(parts.X_prune)} other rows. Accuracy and changed "
        f"predictions were then measured on {n_test} rows that neither step has seen."
    )
    console.print("\nThe same in Python:\n")
    console.print(_SNIPPET, style="cyan", markup=False)
    console.print()
