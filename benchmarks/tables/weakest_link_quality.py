"""Compare the test loss of weakest-link pruning with simple alternatives."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from benchmarks.discovery import Table, data_sets, methods
from benchmarks.load import Data, DataNotFoundError, load
from benchmarks.results import Result, Row
from benchmarks.tasks import Limit, PruneTask, count_nodes, model_loss

_DATA = ("breast_cancer", "digits", "wine_quality", "letter", "diabetes")
_MOST_ROWS = 5_000
_REFERENCE = "secateur"
_NOTES = [
    "Half of the rows for training, a quarter for validation, a quarter for testing; larger data sets are sampled "
    "down to 5000 rows. One split per seed; means and standard deviations (±) over seeds, on the test rows.",
    "limit 1% loss: the smallest model whose validation loss is at most 1 % above that of the unpruned model. limit "
    "10% nodes: the best model on validation with at most 10 % of the nodes.",
    "loss: Brier score (0 to 2) or mean squared error. change: of the test loss, in % of the unpruned model's; "
    "below 0 the pruned model is better.",
    "secateur: path computed on the training rows. secateur_held_out: only validation rows are used. "
    "sklearn_ccp_refit (single trees): refits with up to 100 penalties of scikit-learn's path. fewer_trees "
    "(forests): the first trees, as many as fit into the number of nodes that secateur selects, at least one.",
    "Second grid: the number of data sets on which secateur's mean test loss is lower than, equal to or higher than "
    "that of another method.",
]


def run(quick: bool) -> Result:
    seeds = range(1 if quick else 5)
    names = _DATA[:1] if quick else _DATA
    rows, skipped = [], []
    for name in names:
        try:
            data = load(data_sets()[name])
        except DataNotFoundError as error:
            skipped.append(str(error))
            continue
        for model in ("forest", "tree"):
            outcomes = [row for seed in seeds for row in measure_seed(data, model, 5 if quick else 100, seed)]
            rows += [{"data": name, "model": model, **row} for row in summarise(outcomes)]
    return Result(rows, len(seeds), _NOTES, findings=count_wins(rows), skipped=skipped)


def measure_seed(data: Data, kind: str, n_trees: int, seed: int) -> Iterator[Row]:
    """Yield one outcome for every limit and method that applies, the reference first."""
    train, validation, test = split(data.sample(_MOST_ROWS, seed), seed)
    model = make_model(data.task, kind, n_trees, seed).fit(train.X, train.y)
    nodes, loss = count_nodes(model), model_loss(model, test)
    task = PruneTask(model, train, validation)
    prepared = {name: method.prepare(task) for name, method in methods("prune").items()}
    pruners = {name: prune for name, prune in prepared.items() if not isinstance(prune, str)}
    limits = {"1% loss": Limit(max_loss_increase=0.01), "10% nodes": Limit(max_nodes=nodes // 10)}
    for what, limit in limits.items():
        reference = pruners[_REFERENCE](limit)
        limit = Limit(limit.max_loss_increase, limit.max_nodes, same_nodes=count_nodes(reference))
        for name, prune in pruners.items():
            small = reference if name == _REFERENCE else prune(limit)
            yield {
                "limit": what,
                "method": name,
                "nodes": nodes,
                "kept": 100 * count_nodes(small) / nodes,
                "unpruned": loss,
                "loss": model_loss(small, test),
            }


def split(data: Data, seed: int) -> tuple[Data, Data, Data]:
    """Return training, validation and test rows; stratified by class."""
    labels = data.y if data.task == "classification" else np.zeros(len(data.y))
    rows = np.arange(len(labels))
    train, rest = train_test_split(rows, test_size=0.5, stratify=labels, random_state=seed)
    validation, test = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    parts = [Data(data.name, data.task, data.X[part], data.y[part], data.source) for part in (train, validation, test)]
    return parts[0], parts[1], parts[2]


def make_model(task: str, kind: str, n_trees: int, seed: int) -> Any:
    """Return an unfitted model."""
    if kind == "tree":
        return {"classification": DecisionTreeClassifier, "regression": DecisionTreeRegressor}[task](random_state=seed)
    forest = {"classification": RandomForestClassifier, "regression": RandomForestRegressor}[task]
    return forest(n_trees, random_state=seed)


def summarise(outcomes: list[Row]) -> Iterator[Row]:
    """Yield one row per limit and method with means and deviations over seeds."""
    for limit, method in dict.fromkeys((row["limit"], row["method"]) for row in outcomes):
        same = [row for row in outcomes if (row["limit"], row["method"]) == (limit, method)]
        column = {name: np.array([row[name] for row in same]) for name in ("nodes", "kept", "unpruned", "loss")}
        spare = min(len(same) - 1, 1)
        change = 100 * (column["loss"] / column["unpruned"] - 1)
        yield {
            "limit": limit,
            "method": method,
            "nodes": round(column["nodes"].mean()),
            "nodes_kept_%": column["kept"].mean(),
            "±_kept": column["kept"].std(ddof=spare),
            "loss_unpruned": column["unpruned"].mean(),
            "±_unpruned": column["unpruned"].std(ddof=spare),
            "loss": column["loss"].mean(),
            "±_loss": column["loss"].std(ddof=spare),
            "change_%": change.mean(),
            "±_change": change.std(ddof=spare),
        }


def count_wins(rows: list[Row]) -> list[Row]:
    """Return the numbers of data sets on which the reference has a lower, equal or higher mean test loss."""
    loss = {(row["data"], row["model"], row["limit"], row["method"]): row["loss"] for row in rows}
    found: dict[tuple[str, str, str], Row] = {}
    for (data, model, limit, method), other in loss.items():
        if method == _REFERENCE:
            continue
        count = found.setdefault(
            (model, limit, method),
            {"model": model, "limit": limit, f"{_REFERENCE}_against": method, "lower": 0, "equal": 0, "higher": 0},
        )
        own = loss[data, model, limit, _REFERENCE]
        count["equal" if np.isclose(own, other, rtol=1e-9) else "lower" if own < other else "higher"] += 1
    return list(found.values())


TABLE = Table("weakest_link_quality", "Test loss of weakest-link pruning", run)
