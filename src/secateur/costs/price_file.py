"""Price lists of features in files: what each costs, and what the members of a group share."""

from os import PathLike
from typing import Any

import numpy as np

from secateur.io.tables import read_table


def read_prices(file: str | PathLike[str]) -> tuple[dict[str, float], dict[str, tuple[float, list[str]]]]:
    """Return prices by feature, and groups as {name: (price, features)}, from a .csv or .parquet file.

    The columns `feature` and `cost` must be there. With `group` and `discount_cost`, a feature of a group costs its
    `cost` if it is the first of the group that is bought, and its `discount_cost` after that: the difference is the
    price of the group, and must be the same for all its members.

    Raises
    ------
    ValueError
        If columns are missing, a feature comes twice, or the members of a group do not agree.
    """
    columns = read_table(file).columns
    if not {"feature", "cost"} <= set(columns):
        raise ValueError(
            f"{file} has the columns {', '.join(columns)}; a price list needs `feature` and `cost`. Rename them."
        )
    names = [_text(name) for name in columns["feature"]]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{file} has several prices for {', '.join(sorted(twice))}. Keep one line for each feature.")
    full = _numbers(names, columns["cost"], file)
    if "group" not in columns or "discount_cost" not in columns:
        return dict(zip(names, full, strict=True)), {}
    reduced = _numbers(names, columns["discount_cost"], file)
    prices: dict[str, float] = {}
    groups: dict[str, list[tuple[str, float]]] = {}
    for name, cost, discount, group in zip(names, full, reduced, columns["group"], strict=True):
        label = _text(group)
        prices[name] = discount if label else cost
        if label:
            groups.setdefault(label, []).append((name, cost - discount))
    return prices, {
        label: (_shared(label, members, file), [name for name, _ in members]) for label, members in groups.items()
    }


def _shared(label: str, members: list[tuple[str, float]], file: Any) -> float:
    """Return what the members of a group share."""
    differences = {round(shared, 9) for _, shared in members}
    if len(differences) > 1 or min(differences) < 0:
        raise ValueError(
            f"In group {label!r} of {file} cost minus discount_cost is {sorted(differences)}; it must be one number, "
            "at least 0, as it is paid once for the group. Correct the list."
        )
    return differences.pop()


def _numbers(names: list[str], column: Any, file: Any) -> list[float]:
    """Return the entries of a column as numbers."""
    found: list[float] = []
    for name, value in zip(names, column, strict=True):
        try:
            found.append(float(value))
        except ValueError:
            found.append(np.nan)
        if not np.isfinite(found[-1]):
            shown = _text(value) or "missing"
            raise ValueError(f"The price of {name!r} in {file} is {shown}; a number is needed. Give one, 0 if free.")
    return found


def _text(value: Any) -> str:
    """Return an entry as text, empty if it is missing."""
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
