"""Run the demo: train a forest on a scikit-learn data set, prune it, and evaluate it on a test set."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from secateur.cli._output import write_report
from secateur.cli._tables_and_json import before_after, print_written
from secateur.cli._terminal import current_run, stdout
from secateur.cli.progress import progress_bar

MAX_NODES = 500

_SNIPPET = f"""\
import secateur as sc
small = sc.prune(model, X_prune, y_prune, max_nodes={MAX_NODES})
small.predict(X_test)"""


@dataclass(frozen=True)
class _Split:
    """Training, pruning and test sets."""

    X_train: Any
    X_prune: Any
    X_test: Any
    y_train: Any
    y_prune: Any
    y_test: Any


def run_demo(folder: Path, *, force: bool) -> dict[str, Any]:
    """Train a forest, prune it, write the model and a report, and return the results as plain values."""
    with progress_bar("training a random forest") as progress:
        from secateur.files.atomic import check_free
        from secateur.selection.choice import choose_point
        from secateur.selection.evaluated_path import evaluated_path

        file = folder / ("small.skops" if find_spec("skops") else "small.joblib")
        page = folder / "report.html"
        blocking = next((parent for parent in (folder, *folder.parents) if parent.is_file()), None)
        if blocking is not None:
            raise NotADirectoryError(
                f"{blocking} is a file. The demo needs a folder for its output. Use another --out."
            )
        if folder.exists():
            check_free(file, force=force)
            check_free(page, force=force)
        split = _load()
        model = _train(split)
        options: dict[str, Any] = {"max_nodes": MAX_NODES, "saved_as": file.suffix, "progress": progress}
        path = evaluated_path(model, split.X_prune, split.y_prune, **options)
        chosen = choose_point(path, max_nodes=MAX_NODES)
        fewer_trees = evaluated_path(model, split.X_prune, split.y_prune, solver="fewer_trees")
    folder.mkdir(parents=True, exist_ok=True)
    current_run().start_writing(file)
    chosen.save(file, force=force)
    rows = {"X": split.X_test, "y": split.y_test}
    write_report(
        path, page, force, {"chosen": _SNIPPET}, point=chosen.point, baselines={"fewer trees": fewer_trees}, **rows
    )
    test = _test(split, model, chosen.to_model())
    return {**chosen.summary(), "test": test, "file": str(file), "report": str(page)}


def _load() -> _Split:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer(as_frame=True) if find_spec("pandas") else load_breast_cancer()
    X, y = data.data, data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    X_train, X_prune, y_train, y_prune = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    return _Split(X_train, X_prune, X_test, y_train, y_prune, y_test)


def _train(split: _Split) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0).fit(split.X_train, split.y_train)


def _test(split: _Split, model: Any, small: Any) -> dict[str, Any]:
    """Return the test accuracy of both models, and the fraction of predictions that differ."""
    predictions = [m.predict(split.X_test) for m in (model, small)]
    before, after = (float((predicted == split.y_test).mean()) for predicted in predictions)
    return {
        "accuracy": {"before": before, "after": after},
        "changed": float((predictions[0] != predictions[1]).mean()),
        "rows": {"trained_on": len(split.X_train), "pruned_by": len(split.X_prune), "tested_on": len(split.X_test)},
    }


def print_demo(facts: Mapping[str, Any]) -> None:
    """Print the results of `run_demo`: sizes before and after pruning, and the test accuracy."""
    test, rows = facts["test"], facts["test"]["rows"]
    table = before_after(facts)
    table.add_row("test accuracy", *(f"{accuracy:.1%}" for accuracy in test["accuracy"].values()))
    table.add_row("predictions changed", "", f"{test['changed']:.1%}")
    console = stdout()
    console.print("Random forest, breast cancer data of scikit-learn", style="bold")
    console.print(table)
    console.print(
        f"A forest of {facts['before']['trees']} trees was trained on {rows['trained_on']} rows. secateur pruned it to "
        f"at most {MAX_NODES} nodes with {rows['pruned_by']} other rows. Accuracy and changed predictions were "
        f"measured on {rows['tested_on']} test rows that neither step used."
    )
    for line in ("", "The same in Python:", ""):
        console.print(line)
    for line in _SNIPPET.splitlines():
        console.print(line, style="cyan")
    console.print()
    print_written(Path(facts["file"]))
    print_written(Path(facts["report"]))
    console.print("Open the report in a browser to see all prunings, the trade-off curve and the trees.")
