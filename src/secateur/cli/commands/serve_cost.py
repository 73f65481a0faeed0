"""Implement `secateur serve-cost`: show the feature cost of rows under lazy prediction."""

from pathlib import Path
from typing import Annotated

import typer

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def serve_cost(
    model: opt.Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to predict: .csv, .csv.gz or .parquet.")],
    costs: opt.Costs = None,
    pruned: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="A pruned copy of the model, for comparison.", show_default=False),
    ] = None,
    target: opt.Target = None,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show the cost of rows if features are bought on demand, and if buying stops once the label is certain."""
    with progress_bar("buying features"):
        from secateur.cli._serving_cost import print_serving, serving_prices
        from secateur.cli._tables_and_json import print_json

        facts = serving_prices(model, pruned, data, target, costs, trust)
    (print_json if json else print_serving)(facts)
