"""Time reading and writing large boosters, against loading and saving them with their own library."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.discovery import Table
from benchmarks.measure import Job, take_turns
from benchmarks.results import Result, Row, Target
from secateur.forest.subforest import Decision
from secateur.libraries import adapt

_NOTES = [
    "Boosters of 1000 trees and about a million nodes, trained to large depth on 3000 rows of noise. native: the "
    "library loads its file and saves it again. ours: a loaded model is converted to a forest, a tenth of its "
    "sibling leaf pairs is pruned, and the pruned native model is written. Both end with the library's model in "
    "memory; files are in the page cache.",
    "The file of a symmetric CatBoost tree stores one condition per level; here nodes are counted and read "
    "individually.",
]


def run(quick: bool) -> Result:
    repeats = 1 if quick else 5
    rows = []
    for name, (make, suffix, load, save) in _LIBRARIES.items():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"model{suffix}"
            save(make(*_data(quick), 5 if quick else 1000, 4 if quick else 9), file)
            rows.append({"model": name, **measure(file, load, save, repeats)})
    worst = max(row["ratio"] for row in rows)
    return Result(rows, repeats, _NOTES, [Target("largest ratio of ours to native", worst, at_most=5)])


def measure(file: Path, load: Callable[[Path], Any], save: Callable[[Any, Path], None], repeats: int) -> Row:
    """Return the median seconds of both, and their ratio."""
    forest = adapt(load(file)).forest
    keep = _without_some_twigs(forest)
    held: dict[str, Any] = {}
    steps = {
        "load": Job(lambda: held.update(model=load(file))),
        "save": Job(lambda: save(held["model"], file.with_name(f"saved{file.suffix}"))),
        "read": Job(lambda: (held.update(adapter=adapt(held["model"])), held["adapter"].forest)),
        "write": Job(lambda: held.update(small=held["adapter"].write(Decision(keep)))),
    }
    times = take_turns(steps, repeats)
    ratio = (times["read"] + times["write"]) / (times["load"] + times["save"])
    seconds = {f"{name}_seconds": time for name, time in times.items()}
    return {"nodes": forest.n_nodes, "file_mb": file.stat().st_size / 1e6, **seconds, "ratio": ratio}


def _without_some_twigs(forest: Any) -> Any:
    """Return a mask that prunes a tenth of the splits above two leaves, or of the last levels of symmetric trees."""
    rng = np.random.default_rng(0)
    keep = np.ones(forest.n_nodes, bool)
    if forest.symmetric:
        tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
        keep[np.isin(tree, rng.permutation(forest.n_trees)[: forest.n_trees // 10]) & ~forest.is_split] = False
        return keep
    split = np.flatnonzero(forest.is_split)
    twigs = split[~forest.is_split[split + 1] & ~forest.is_split[forest.right[split]]]
    cut = rng.permutation(twigs)[: len(twigs) // 10]
    keep[cut + 1] = keep[forest.right[cut]] = False
    return keep


def _data(quick: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300 if quick else 3000, 10)).astype(np.float32)
    return X, rng.normal(size=len(X))


def _grow_xgboost(X: Any, y: Any, n_trees: int, depth: int) -> Any:
    import xgboost

    # A level more than symmetric trees have, for these are not complete.
    options = {"max_depth": depth + 1, "min_child_weight": 0, "lambda": 0, "eta": 0.01}
    return xgboost.train({**options, "max_bin": 32, "nthread": 1}, xgboost.DMatrix(X, y), n_trees)


def _load_xgboost(file: Path) -> Any:
    import xgboost

    return xgboost.Booster(model_file=str(file))


def _grow_lightgbm(X: Any, y: Any, n_trees: int, depth: int) -> Any:
    import lightgbm

    options = {"num_leaves": 2**depth, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "learning_rate": 0.01}
    fixed = {"max_bin": 32, "num_threads": 1, "verbose": -1}
    return lightgbm.train({**options, **fixed}, lightgbm.Dataset(X, y), n_trees)


def _load_lightgbm(file: Path) -> Any:
    import lightgbm

    return lightgbm.Booster(model_file=str(file))


def _grow_catboost(policy: str) -> Callable[[Any, Any, int, int], Any]:
    def grow(X: Any, y: Any, n_trees: int, depth: int) -> Any:
        from catboost import CatBoostRegressor

        levels = depth if policy == "SymmetricTree" else depth + 1  # others are not complete
        options = {"depth": levels, "grow_policy": policy, "learning_rate": 0.01, "border_count": 32}
        fixed = {"thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": 0}
        return CatBoostRegressor(iterations=n_trees, **options, **fixed).fit(X, y)

    return grow


def _load_catboost(file: Path) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor().load_model(str(file))


def _save(model: Any, file: Path) -> None:
    model.save_model(str(file))


_LIBRARIES: dict[str, tuple[Callable[..., Any], str, Callable[[Path], Any], Callable[[Any, Path], None]]] = {
    "XGBoost .json": (_grow_xgboost, ".json", _load_xgboost, _save),
    "XGBoost .ubj": (_grow_xgboost, ".ubj", _load_xgboost, _save),
    "LightGBM .txt": (_grow_lightgbm, ".txt", _load_lightgbm, _save),
    "CatBoost .cbm, symmetric": (_grow_catboost("SymmetricTree"), ".cbm", _load_catboost, _save),
    "CatBoost .cbm, by depth": (_grow_catboost("Depthwise"), ".cbm", _load_catboost, _save),
}

TABLE = Table("booster_round_trip", "Time to read and write boosters of a million nodes", run)
