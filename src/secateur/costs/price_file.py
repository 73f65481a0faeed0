"""Read price lists of features from files: the price of each feature, and the shared price of each group."""

from collections import Counter
from os import PathLike
from typing import Any

import numpy as np

from secateur._util.text import quoted, shortened
from secateur.data.tables import is_number, read_table


def read_prices(file: str | PathLike[str]) -> tuple[dict[str, float], dict[str, tuple[float, list[str]]]]:
    """Return prices by feature, and groups as {name: (price, features)}, from a .csv or .parquet file.

    The columns `feature` and `cost` are required. With `group` and `discount_cost`, a feature of a group costs its
    `cost` if it is the first of the group to be bought, and its `discount_cost` after that. The difference is the price
    of the group and must be the same for all its members.

    Raises
    ------
    ValueError
        If columns are missing, a feature occurs twice, or the members of a group imply different group prices.
    """
    columns = read_table(file, text=("feature", "group")).columns
    if not {"feature", "cost"} <= set(columns):
        raise ValueError(
            f"{file} has the columns {quoted(list(columns))}; a price list needs `feature` and `cost`. Rename them."
        )
    names: list[str] = columns["feature"].tolist()
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{file} has several prices for {quoted(twice)}. Keep one line for each feature.")
    full = _numbers(names, columns["cost"], file)
    if "group" not in columns or "discount_cost" not in columns:
        return dict(zip(names, full, strict=True)), {}
    reduced = _numbers(names, columns["discount_cost"], file)
    prices: dict[str, float] = {}
    groups: dict[str, list[tuple[str, float]]] = {}
    for name, cost, discount, label in zip(names, full, reduced, columns["group"].tolist(), strict=True):
        prices[name] = discount if label else cost
        if label:
            groups.setdefault(label, []).append((name, cost - discount))
    return prices, {
        label: (_shared(label, members, file), [name for name, _ in members]) for label, members in groups.items()
    }


def _shared(label: str, members: list[tuple[str, float]], file: Any) -> float:
    """Return the price of a group: the common difference of cost and discount_cost of its members."""
    differences = {round(shared, 9) for _, shared in members}
    if len(differences) > 1 or min(differences) < 0:
        raise ValueError(
            f"In group {label!r} of {file} cost minus discount_cost is {sorted(differences)}; it must be one number, "
            "at least 0, as it is paid once for the group. Correct the list."
        )
    return differences.pop()


def _numbers(names: list[str], column: Any, file: Any) -> list[float]:
    """Return the entries of a column as floats; raise ValueError if one is missing or not a finite number."""
    found: list[Any] = column.tolist()
    for name, value in zip(names, found, strict=True):
        if (not isinstance(value, float) and not is_number(value)) or not np.isfinite(float(value)):
            shown = "missing" if value in ("", "nan") or value != value else shortened(str(value), 40)
            raise ValueError(f"The price of {name!r} in {file} is {shown}; a number is needed. Give one, 0 if free.")
    return [float(value) for value in found]
