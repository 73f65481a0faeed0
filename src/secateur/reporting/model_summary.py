"""Summarise a model before pruning, and the package versions in use."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from secateur._util.text import fit_to_show
from secateur.forest import Forest
from secateur.forest.promises import range_of
from secateur.libraries.adapter import Adapter


def describe_model(adapter: Adapter) -> dict[str, Any]:
    """Return the type, task, sizes and link of a model as plain values."""
    forest = adapter.forest
    types: list[str] = []
    layer: Adapter | None = adapter
    while layer is not None:
        types.append(layer.type_name)
        layer = layer.inner
    task = "classification" if forest.n_classes else "regression"
    if not adapter.supervised:
        task = "outlier detection" if forest.link == "anomaly" else "other"
    return {
        "type": types[0],
        "inside": types[1:],
        "library": adapter.library,
        "task": task,
        "classes": list(forest.n_classes),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves": forest.n_leaves,
        "depth": forest.max_depth,
        "features_used": len(forest.features_used),
        "features": forest.n_features,
        "link": forest.link,
        **_promises(forest),
        "bytes": adapter.n_bytes(adapter.model),
    }


def _promises(forest: Forest) -> dict[str, Any]:
    """Return objective, range of predictions and constrained features with their signs, where the model has them."""
    found: dict[str, Any] = {} if forest.objective is None else {"objective": forest.objective}
    natural = range_of(forest)
    if natural is not None:
        found["range"] = str(natural)
    if forest.monotone is not None and forest.monotone.any():
        names = forest.feature_names
        found["monotone"] = [
            {"feature": k if names is None else fit_to_show(names[k]), "sign": int(forest.monotone[k])}
            for k in np.flatnonzero(forest.monotone).tolist()
        ]
    return found


def versions(adapter: Adapter) -> dict[str, str]:
    """Return the versions of secateur, Python and the packages a pruning depends on."""
    found = {"python": platform.python_version()}
    for package in ("secateur", "numpy", "numba", adapter.package):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
