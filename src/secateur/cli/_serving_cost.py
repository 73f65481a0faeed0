"""Compute and print the feature cost of rows under lazy prediction, for `secateur serve-cost`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.cli._inputs import check_numbers, feature_names, load_adapter, read_costs
from secateur.cli._terminal import stdout
from secateur.data.tables import Table, read_table
from secateur.errors import InvalidInputError
from secateur.libraries.adapter import Adapter
from secateur.serving import Answers, LazyPredictor
from secateur.serving.plan import Same

_QUANTILES = {"median": 0.5, "90%": 0.9, "99%": 0.99, "max": 1.0}
_PRICE_NAMES: dict[Same, str] = {"leaves": "as the paths need", "value": "same value", "label": "same label"}


def serving_prices(
    model: Path, pruned: Path | None, data: Path, target: str | None, costs: Path | None, trust: bool
) -> dict[str, Any]:
    """Return the price statistics of the rows of a file for a model, and optionally for a pruned copy."""
    table = read_table(data)
    found: dict[str, Any] = {"rows": len(table), "models": {}}
    answers = []
    for name, file in {"model": model, "pruned": pruned}.items():
        if file is not None:
            facts, full = _prices_of(load_adapter(file, trust), table, target, costs)
            found["models"][name] = {"file": str(file), **facts}
            answers.append(full.prediction)
    if len(answers) == 2 and answers[0].shape == answers[1].shape:
        found["changed"] = float((answers[0] != answers[1]).mean())
    return found


def _prices_of(
    adapter: Adapter, table: Table, target: str | None, costs: Path | None
) -> tuple[dict[str, Any], Answers]:
    """Return the price statistics for each option `same`, and the answers for same="leaves"."""
    X, _ = table.split(target, feature_names(adapter, table))
    check_numbers(adapter, X, table)
    predictor = LazyPredictor(adapter, read_costs(None, costs), example=X.iloc[:1] if hasattr(X, "iloc") else None)
    answers = {same: predictor.predict(X, same=same) for same in _PRICE_NAMES}
    full = answers["leaves"]
    if full.failed.any():
        row, reason = next(iter(full.reasons.items()))
        raise InvalidInputError(
            f"{int(full.failed.sum())} rows of {table.name} cannot be predicted. The first is row {row + 1}: {reason}. "
            "Prepare the columns as for training."
        )
    prices = {"all features": _spread(predictor.full_price(len(table)))}
    prices |= {_PRICE_NAMES[same]: _spread(found.price) for same, found in answers.items()}
    facts = {
        "features": len(predictor.features_used),
        "prices": prices,
        "stopped_early": float((answers["label"].stopped == "decided").mean()),
        "why_not_label": predictor.why_not_label,
    }
    return facts, full


def _spread(prices: NDArray[np.float64]) -> dict[str, float]:
    """Return the mean and some quantiles of prices."""
    return {"mean": float(prices.mean()), **{name: float(np.quantile(prices, q)) for name, q in _QUANTILES.items()}}


def print_serving(facts: Mapping[str, Any]) -> None:
    """Print the results of `serving_prices`."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    console = stdout()
    for model, found in facts["models"].items():
        console.print(f"{model}: {found['file']}, {found['features']} features", style="bold", soft_wrap=True)
        shown = RichTable(box=SIMPLE, pad_edge=False)
        shown.add_column("price of a row")
        for column in ("mean", *_QUANTILES):
            shown.add_column(column, justify="right")
        for name, prices in found["prices"].items():
            shown.add_row(name, *(f"{round(price, 6) + 0.0:,.6g}" for price in prices.values()))
        console.print(shown)
        if found["why_not_label"] is None:
            console.print(
                f"For {found['stopped_early']:.1%} of the rows the label was certain before all features were bought."
            )
        else:
            console.print(f"Prediction cannot stop at a certain label: {found['why_not_label']}.")
    if "changed" in facts:
        console.print(f"{facts['changed']:.1%} of the predictions differ between the two models.")
    console.print(
        f"{facts['rows']:,} rows. As the paths need: a row buys the features on its paths to the leaves of all trees. "
        "Same value, same label: it stops once the prediction cannot change."
    )
