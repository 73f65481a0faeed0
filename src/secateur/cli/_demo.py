"""Run the demo: train a forest on a scikit-learn data set, prune it, and evaluate it on test rows."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from secateur.cli._output import write_report
from secateur.cli._tables_and_json import before_after, print_written
from secateur.cli._terminal import current_run, stdout
from secateur.cli.progress import progress_bar

N_TREES, TEST_SHARE, MAX_LOSS_INCREASE = 500, 0.3, 0.1

_CODE = f"""\
import secateur as sc
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

data = load_breast_cancer(as_frame={bool(find_spec("pandas"))})
y = data.target_names[data.target]
X_train, X_test, y_train, y_test = train_test_split(data.data, y, test_size={TEST_SHARE}, stratify=y, random_state=0)
forest = RandomForestClassifier({N_TREES}, random_state=0).fit(X_train, y_train)
pruned = sc.prune(forest, X_train, y_train, max_loss_increase={MAX_LOSS_INCREASE}, return_pruned=True)
"""


def run_demo(folder: Path, *, force: bool) -> dict[str, Any]:
    """Train a forest, prune it, write both and a report, and return the results as plain values."""
    with progress_bar("training a random forest") as progress:
        from secateur.api import prune_point
        from secateur.files.atomic import check_free
        from secateur.files.models import save_model

        suffix = ".skops" if find_spec("skops") else ".joblib"
        files = [folder / f"forest{suffix}", folder / f"small{suffix}", folder / "report.html"]
        blocking = next((parent for parent in (folder, *folder.parents) if parent.is_file()), None)
        if blocking is not None:
            raise NotADirectoryError(
                f"{blocking} is a file. The demo needs a folder for its output. Use another --out."
            )
        for file in files if folder.exists() else ():
            check_free(file, force=force)
        X_train, X_test, y_train, y_test = _load()
        forest = _train(X_train, y_train)
        limits: dict[str, Any] = {"max_loss_increase": MAX_LOSS_INCREASE}
        chosen = prune_point(
            forest, X_train, y_train, saved_as=suffix, progress=progress or False, curve=True, **limits
        )
    original, small, page = files
    folder.mkdir(parents=True, exist_ok=True)
    current_run().start_writing(small)
    save_model(forest, original, force=force)
    chosen.save(small, force=force)
    path = chosen.path
    assert path is not None
    code = {"python": f"{_CODE}small = pruned.path[{{point}}].to_model()"}
    facts = write_report(path, page, force, code, X=X_test, y=y_test, point=chosen.point)
    timed = facts["measured"]["timed"].index(chosen.point)
    return {
        **facts["summary"],
        "latency": facts["measured"]["latency"]["models"][timed],
        "latency_before": facts["measured"]["latency"]["models"][0],
        "noisy": facts["measured"]["latency"]["noisy"],
        "test": _test(forest, chosen.model, X_test, y_test),
        "trained_on": len(X_train),
        "original": str(original),
        "file": str(small),
        "report": str(page),
    }


def _load() -> Any:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    data = load_breast_cancer(as_frame=bool(find_spec("pandas")))
    y = data.target_names[data.target]
    return train_test_split(data.data, y, test_size=TEST_SHARE, stratify=y, random_state=0)


def _train(X: Any, y: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(N_TREES, random_state=0).fit(X, y)


def _test(forest: Any, small: Any, X: Any, y: Any) -> dict[str, Any]:
    """Return the accuracy of both models on the test rows, and their difference, with standard errors."""
    right = [np.asarray(model.predict(X) == y, np.float64) for model in (forest, small)]
    measured = {"before": right[0], "after": right[1], "difference": right[1] - right[0]}
    accuracy = {
        name: {"mean": float(rows.mean()), "standard_error": float(rows.std(ddof=1) / np.sqrt(len(rows)))}
        for name, rows in measured.items()
    }
    return {"rows": len(y), "accuracy": accuracy}


def print_demo(facts: Mapping[str, Any]) -> None:
    """Print the results of `run_demo`: sizes, times, losses and test accuracy, before and after pruning."""
    test, rows, loss = facts["test"], facts["rows"], facts["loss"]
    table = before_after(facts)
    times = facts["latency_before"], facts["latency"]
    for key, label in (("one_row", "µs to predict one row"), ("batch", f"µs per row in a batch of {test['rows']}")):
        ratio = times[1][key]["ratio"]
        left = "unclear" if ratio is None or ratio["within_noise"] else f"{ratio['ratio']:.0%}"
        table.add_row(label, *(f"{time[key]['median']:,.4g}" for time in times), left)
    after = f"{loss['after']:.4g} ± {loss['standard_error']:.2g}"
    table.add_row(f"loss on validation rows ({loss['name']})", f"{loss['before']:.4g}", after)
    table.add_row("predictions changed on validation rows", "", f"{facts['changed']:.1%}")
    accuracy = [test["accuracy"][name] for name in ("before", "after")]
    table.add_row("accuracy on test rows", *(f"{one['mean']:.1%} ± {one['standard_error']:.1%}" for one in accuracy))
    factor = {name: facts["before"][name] / facts["after"][name] for name in ("nodes", "bytes")}
    difference = test["accuracy"]["difference"]
    console = stdout()
    console.print("Random forest, breast cancer data of scikit-learn", style="bold")
    console.print(table)
    console.print(
        f"{factor['nodes']:.0f} times fewer nodes and {factor['bytes']:.0f} times fewer bytes; the accuracy on test "
        f"rows differs by {100 * difference['mean']:+.1f} ± {100 * difference['standard_error']:.1f} percentage points."
    )
    console.print(
        f"A forest of {facts['before']['trees']} trees was trained on {facts['trained_on']} rows, and pruned by the "
        f"same rows to the smallest one found whose loss increases by at most {MAX_LOSS_INCREASE:.0%}. The validation "
        f"rows are these {rows['chosen_on_rows']} rows: {rows['chosen_on']}. Accuracy and times were measured on "
        f"{test['rows']} test rows that neither step used. Standard errors follow ±."
    )
    if facts["noisy"]:
        console.print("The machine was busy, so that times may be far from those of an idle one.")
    for line in ("", "The same in Python:", ""):
        console.print(line)
    for line in _CODE.splitlines():
        console.print(line, style="cyan", soft_wrap=True)
    console.print()
    for name in ("original", "file", "report"):
        print_written(Path(facts[name]))
    console.print("Open the report in a browser to see all prunings, the trade-off curve and the trees.")
