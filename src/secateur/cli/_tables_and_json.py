"""Print the results of commands, which are dicts, as tables or as JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur.cli._terminal import stdout

if TYPE_CHECKING:
    from rich.table import Table

    from secateur.libraries.adapter import Adapter
    from secateur.path import Path as PruningPath

_SHOWN_POINTS = 20
_LONGEST_SOLVER = 100
"""Longest description of a solver, in characters, that is printed with its settings."""
_COLUMNS = {
    "n_nodes": "nodes",
    "n_leaves": "leaves",
    "n_trees": "trees",
    "depth": "depth",
    "n_features": "features",
    "cost": "cost",
    "jump": "jump",
    "origin": "found by",
    "risk": "risk",
    "loss": "loss",
    "loss_se": "±",
    "changed": "changed",
    "score": "score",
    "score_se": "± drop",
}


def describe_needs(adapter: "Adapter", data: Path, target: str | None, prices: Path | None) -> dict[str, Any]:
    """Return the mean number of features that the rows of a file need and, given prices, their mean cost."""
    from secateur.cli._inputs import check_numbers, feature_names, read_costs
    from secateur.costs import FeatureCost
    from secateur.data.tables import read_table

    table = read_table(data)
    X, _ = table.split(target, feature_names(adapter, table))
    check_numbers(adapter, X, table)
    facts = {"rows": len(table), "features_per_row": FeatureCost().mean_price(adapter, X)}
    return facts if prices is None else {**facts, "cost_per_row": read_costs(None, prices).mean_price(adapter, X)}


def bytes_of(file: Path) -> int:
    """Return the size of a file, or the total size of all files in a folder, in bytes."""
    return sum(part.stat().st_size for part in (file.rglob("*") if file.is_dir() else [file]) if part.is_file())


def describe_path(path: "PruningPath", file: Path) -> dict[str, Any]:
    """Return all points of a path, its solver and its facts as plain values."""
    table = {name: column.tolist() for name, column in path.table.items()}
    return {"file": str(file), "points": len(path), "solver": path.solver, "facts": path.info.to_json(), "table": table}


def print_json(facts: Mapping[str, Any]) -> None:
    """Print one JSON object; non-finite numbers become null."""
    # json.dumps escapes all control and non-ASCII characters except DEL.
    text = json.dumps(_plain(facts), indent=2, allow_nan=False).replace("\x7f", "\\u007f")
    console = stdout(even_if_quiet=True)
    for line in text.splitlines():
        console.out(line, highlight=False)


def print_model(facts: Mapping[str, Any]) -> None:
    """Print the result of `describe_model`, one entry per line."""
    table = grid("", "", header=False)
    classes = f" into {' and '.join(map(str, facts['classes']))} classes" if facts["classes"] else ""
    if facts["inside"]:
        table.add_row("contains", " > ".join(facts["inside"]))
    table.add_row("library", facts["library"])
    table.add_row("task", facts["task"] + classes)
    for name in ("trees", "nodes", "leaves", "depth"):
        table.add_row(name, _number(facts[name]))
    table.add_row("features used", f"{_number(facts['features_used'])} of {_number(facts['features'])}")
    for name, label in (("features_per_row", "features per row"), ("cost_per_row", "cost per row")):
        if name in facts:
            table.add_row(label, f"{_number(facts[name])} on average over {_number(facts['rows'])} rows")
    for sign, label in ((1, "non-decreasing in"), (-1, "non-increasing in")):
        features = [str(entry["feature"]) for entry in facts.get("monotone", ()) if entry["sign"] == sign]
        if features:
            table.add_row(label, ", ".join(features))
    for name, label in (("objective", "trained for"), ("range", "predicts")):
        if name in facts:
            table.add_row(label, facts[name])
    table.add_row("link", facts["link"])
    table.add_row("file size in bytes", _number(facts["bytes"]))
    console = stdout()
    console.print(facts["type"], style="bold")
    console.print(table)


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print the result of `Pruned.summary`: sizes and loss before and after pruning, and how the point was chosen."""
    console = stdout()
    console.print(summary["model"], style="bold")
    console.print(before_after(summary))
    loss, rows = summary["loss"], summary["rows"]
    if loss["after"] is None:
        console.print(
            f"The path was not evaluated on validation rows. The risk on the pruning rows is {summary['risk']:.4g} "
            f"({loss['name']})."
        )
    else:
        console.print(
            f"Loss ({loss['name']}): {loss['before']:.4g} before, {loss['after']:.4g} ± {loss['standard_error']:.2g} "
            f"after; {summary['changed']:.1%} of the predictions changed. Measured on "
            f"{_number(rows['chosen_on_rows'])} rows: {rows['chosen_on']}."
        )
    if summary["score"] is not None:
        score = summary["score"]
        console.print(
            f"Score ({score['name']}): {score['before']:.4g} before, {score['after']:.4g} after; the drop has a "
            f"standard error of {score['standard_error']:.2g}."
        )
    cost, proof = summary["cost"], summary["optimality"]
    if cost["name"] not in ("nodes", "leaves"):
        console.print(f"Cost ({cost['name']}): {_number(cost['before'])} before, {_number(cost['after'])} after.")
    if proof is not None:
        console.print(
            f"No pruning that costs at most {_number(proof['max_cost'])} has a risk below {proof['least_risk']:.4g}; "
            f"the risk of this one is {proof['risk']:.4g}."
        )
    if summary["guarantee"] is not None:
        console.print(summary["guarantee"]["text"])
    for text in (summary["promises"].get("range", ""), summary["promises"].get("constraints", "")):
        if text and not text.endswith("as before"):
            console.print(f"{text[0].upper()}{text[1:]}.")
    if summary["clone"]:
        console.print("The result is a pruned clone of the model, trained on the given rows with fewer features.")
    console.print(f"Pruned by {_short(summary['solver'])} on {_number(rows['made_on'])} rows.")


def _short(solver: str) -> str:
    """Return a solver without its settings if they are long, as after a search; `--json` has all of them."""
    return solver if len(solver) <= _LONGEST_SOLVER else solver.partition("(")[0]


def before_after(facts: Mapping[str, Any]) -> "Table":
    """Return a table of the sizes in a summary: before, after, and the remaining fraction."""
    before, after, saved_as = facts["before"], facts["after"], facts["saved_as"]
    table = grid("", "before", "after", "left")
    for name in before:
        left = _percent(after[name] / before[name]) if before[name] else ""
        label = f"bytes ({saved_as or 'saved'})" if name == "bytes" else name
        table.add_row(label, _number(before[name]), _number(after[name]), left)
    return table


def _percent(fraction: float) -> str:
    """Format a fraction in per cent, with enough digits to distinguish a small one from zero."""
    return f"{fraction:.0%}" if fraction >= 0.01 or fraction == 0 else f"{100 * fraction:.2g}%"


def print_path(path: "PruningPath", file: Path) -> None:
    """Print about twenty evenly spread points of a path."""
    import numpy as np

    shown = np.unique(np.linspace(0, len(path) - 1, _SHOWN_POINTS).round().astype(int)).tolist()
    omitted: set[str] = set()
    if path.info.cost == "nodes":
        omitted = {"cost"}
    elif {"jump", "origin"} & set(path.table):
        omitted = {"n_leaves", "depth"}
    names = [name for name in _COLUMNS if name in path.table and name not in omitted]
    table = grid("point", *(_COLUMNS[name] for name in names))
    for point in shown:
        table.add_row(str(point), *(_cell(name, path.table[name][point].item()) for name in names))
    console = stdout()
    console.print(f"{len(path)} points" + (f", {len(shown)} of them shown" if len(shown) < len(path) else ""))
    console.print(table)
    console.print(_legend(path))
    limit = "--max-nodes" if path.info.cost == "nodes" else "--max-cost"
    console.print(
        f"Pruned by {_short(path.solver)}. Choose a point with: secateur select {file} {limit} …", soft_wrap=True
    )


def print_written(file: Path) -> None:
    """Print the name of the file that was written."""
    stdout().print(f"Wrote {file}.", style="green", soft_wrap=True)


def grid(first: str, *others: str, header: bool = True) -> "Table":
    """Return an empty table: the first column to the left, numbers below a header to the right."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, show_header=header, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right" if header else "left")
    return table


def _legend(path: "PruningPath") -> str:
    info = path.info
    scope = "whole model" if info.is_ensemble_risk else "single trees"
    risk = f"Risk: {info.loss} of the {scope} on the {_number(info.made_on_rows)} pruning rows."
    if "jump" in path.table:
        risk = f"Jump: cost saved by the step to the point, as a fraction of the unpruned cost. {risk}"
    if "loss" not in path.table:
        return f"{risk} Use --validation to measure the loss of the whole model."
    rows = f"{_number(info.evaluated_rows or 0)} rows, {info.evaluated_on}"
    legend = f"{risk} Loss: {info.loss} of the whole model on {rows}, ± one standard error. Changed: predictions."
    if info.scoring is None:
        return legend
    return f"{legend} Score: {info.scoring}, ± one standard error of its drop."


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if name in ("changed", "jump"):
        return f"{value:.1%}"
    if name in ("risk", "loss", "loss_se", "score", "score_se"):
        return f"{value:.2g}" if name.endswith("_se") else f"{value:.4g}"
    return _number(value)


def _number(value: float) -> str:
    """Format a count with commas, or another number rounded to six decimals, beyond which sums have rounding error."""
    return f"{value:,}" if isinstance(value, int) else f"{round(value, 6) + 0.0:,.6g}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
