"""Implement `secateur benchmark`: show how long models take to predict."""

from pathlib import Path
from typing import Annotated

import typer

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def benchmark(
    model: opt.Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to predict: .csv, .csv.gz or .parquet.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="MODEL", help="A model to compare, such as a pruned copy. Can be repeated.", show_default=False
        ),
    ] = None,
    target: opt.Target = None,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Method to time: predict, predict_proba or score_samples.")
    ] = "predict",
    batch_size: Annotated[int, typer.Option(metavar="N", min=1, help="Number of rows of a batch.")] = 1000,
    seconds: Annotated[float, typer.Option(metavar="S", help="Seconds spent on each model.")] = 1.0,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show how long models take to predict one row and a batch of rows, and how noisy the machine is."""
    with progress_bar(f"reading {model.name}"):
        from secateur.cli._latency import print_latency, read_models_and_rows
        from secateur.cli._tables_and_json import print_json
        from secateur.reporting.benchmark import benchmark as measure

        models, X = read_models_and_rows([model, *(against or ())], data, target, trust)
    # Without a progress bar, which would compete with the models for the processor.
    facts = measure(models, X, method=method, batch_size=batch_size, seconds=seconds).summary()
    (print_json if json else print_latency)(facts)
