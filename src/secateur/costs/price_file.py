"""Read price lists of features from files: the price of each feature, and the shared price of each group."""

from collections import Counter
from os import PathLike
from typing import Any

import numpy as np

from secateur._util.text import quoted, shortened
from secateur.data.csv_file import is_number
from secateur.data.tables import read_table
from secateur.errors import InvalidInputError


def read_prices(file: str | PathLike[str]) -> tuple[dict[str, float], dict[str, tuple[float, list[str]]]]:
    """Return prices by feature, and groups as {name: (price, features)}, from a .csv or .parquet file.

    The columns `feature` and `cost` are required. With `group` and `discount_cost`, a feature of a group costs its
    `cost` if it is the first of the group to be bought, and its `discount_cost` after that. The difference is the price
    of the group and must be the same for all its members.

    Raises
    ------
    InvalidInputError
        If columns are missing, a feature occurs twice, or the members of a group imply different group prices.
    """
    columns = read_table(file, text=("feature", "group")).columns
    if not {"feature", "cost"} <= set(columns):
        raise InvalidInputError(
            f"{file} has the columns {quoted(list(columns))}, but a price list needs `feature` and `cost`. "
            "Rename the columns."
        )
    names: list[str] = columns["feature"].tolist()
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidInputError(
            f"{file} has several prices for {quoted(repeated)}, but a feature has one price. Keep one line per feature."
        )
    costs = _numbers(names, columns["cost"], file)
    if "group" not in columns or "discount_cost" not in columns:
        return dict(zip(names, costs, strict=True)), {}
    discounts = _numbers(names, columns["discount_cost"], file)
    prices: dict[str, float] = {}
    groups: dict[str, list[tuple[str, float]]] = {}
    for name, cost, discount, label in zip(names, costs, discounts, columns["group"].tolist(), strict=True):
        prices[name] = discount if label else cost
        if label:
            groups.setdefault(label, []).append((name, cost - discount))
    return prices, {
        label: (_group_price(label, members, file), [name for name, _ in members]) for label, members in groups.items()
    }


def _group_price(label: str, members: list[tuple[str, float]], file: Any) -> float:
    """Return the price of a group: the common difference of cost and discount_cost of its members."""
    differences = {round(difference, 9) for _, difference in members}
    if len(differences) > 1 or min(differences) < 0:
        raise InvalidInputError(
            f"In group {label!r} of {file}, cost minus discount_cost is {sorted(differences)}. This is the price of "
            "the group, so it must be the same for all its features and at least 0. Correct the list."
        )
    return differences.pop()


def _numbers(names: list[str], column: Any, file: Any) -> list[float]:
    """Return the entries of a column as floats; raise InvalidInputError unless all are finite numbers."""
    found: list[Any] = column.tolist()
    for name, value in zip(names, found, strict=True):
        if (not isinstance(value, float) and not is_number(value)) or not np.isfinite(float(value)):
            shown = "missing" if value in ("", "nan") or value != value else shortened(str(value), 40)
            raise InvalidInputError(
                f"The price of {name!r} in {file} is {shown}, but it must be a finite number. Give one, 0 for a free "
                "feature."
            )
    return [float(value) for value in found]
