"""The command line: one command per verb, the saved path being what is passed between them.

Nothing heavy is imported before a command runs, so that `secateur --help` answers at once.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secateur.cli import options as opt
from secateur.cli.terminal import plain_messages, progress_bar, stdout

if TYPE_CHECKING:
    from secateur.cli.inputs import Columns
    from secateur.path import Pruned


app = typer.Typer(
    name="secateur",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    app(prog_name="secateur")


def _print_version(asked: bool) -> None:
    if asked:
        from secateur import __version__

        stdout().print(f"secateur {__version__}")
        raise typer.Exit


@app.callback()
def secateur(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Prune trained decision trees and tree ensembles: the same kind of model back, smaller."""


@app.command()
@plain_messages
def demo(out: opt.OutFolder = Path("secateur-demo"), force: opt.Force = False, debug: opt.Debug = False) -> None:
    """Train a random forest on data that ships with scikit-learn, prune it, and show what that did."""
    from secateur.cli.demo import run_demo

    run_demo(out, force=force)


@app.command()
@plain_messages
def inspect(
    model: opt.Model,
    data: opt.SomeData = None,
    target: opt.Target = None,
    costs: opt.Costs = None,
    trust: opt.Trust = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show what a model is made of and, given rows, what their features cost."""
    from secateur.cli.show import describe_model, describe_needs, print_json, print_model
    from secateur.io import adapt
    from secateur.io.files import load_model

    if costs is not None and data is None:
        raise ValueError("--costs needs rows: what features cost depends on which a row needs. Name a DATA file.")
    loaded = load_model(model, trust=trust)
    facts = describe_model(adapt(loaded))
    if data is not None:
        facts |= describe_needs(loaded, data, target, costs)
    (print_json if json else print_model)(facts)


@app.command()
@plain_messages
def prune(
    model: opt.Model,
    data: opt.Data,
    out: opt.Out,
    target: opt.Target = None,
    max_loss_increase: opt.MaxLossIncrease = None,
    max_nodes: opt.MaxNodes = None,
    max_leaves: opt.MaxLeaves = None,
    max_trees: opt.MaxTrees = None,
    max_depth: opt.MaxDepth = None,
    max_features: opt.MaxFeatures = None,
    max_cost: opt.MaxCost = None,
    max_bytes: opt.MaxBytes = None,
    validation: opt.ChooseBy = None,
    solver: opt.Solver = "auto",
    loss: opt.Loss = None,
    cost: opt.Cost = None,
    costs: opt.Costs = None,
    regrow: opt.Regrow = False,
    weights: opt.Weights = None,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Write a smaller copy of a model. Without limits: the smallest within 1 % of the lowest loss there is."""
    if not model.is_dir():  # Spark's models are folders, which may have any name
        _check_out(out, force)
    from secateur.api import prune_point
    from secateur.cli.inputs import read_costs, read_validation
    from secateur.io.tables import read_table

    to_pay = read_costs(cost, costs)
    columns = _load_columns(model, target, weights, trust)
    _check_out(out, force, columns.model)
    X, y, weight = columns.rows(read_table(data))
    choose_by = read_validation(validation, columns)
    with progress_bar("pruning") as progress:
        chosen = prune_point(
            columns.model,
            X,
            y,
            solver=solver,
            loss=loss,
            cost=to_pay,
            sample_weight=weight,
            regrow=regrow,
            validation=choose_by,
            progress=progress,
            max_loss_increase=max_loss_increase,
            max_nodes=max_nodes,
            max_leaves=max_leaves,
            max_trees=max_trees,
            max_depth=max_depth,
            max_features=max_features,
            max_cost=max_cost,
            max_bytes=max_bytes,
        )
    _finish(chosen, out, force, json)


@app.command()
@plain_messages
def path(
    model: opt.Model,
    data: opt.Data,
    out: opt.Out,
    target: opt.Target = None,
    validation: opt.EvaluateOn = None,
    solver: opt.Solver = "auto",
    loss: opt.Loss = None,
    cost: opt.Cost = None,
    costs: opt.Costs = None,
    weights: opt.Weights = None,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Save every pruning on the way from the whole model to the smallest (.npz), to select from later."""
    _check_out(out, force, suffix=".npz")
    from secateur.api import evaluated_path, prune_path
    from secateur.cli.inputs import digest, read_costs, read_validation
    from secateur.cli.show import describe_path, print_json, print_path, print_written
    from secateur.io.tables import read_table

    columns = _load_columns(model, target, weights, trust)
    choose_by = None if validation is None else read_validation(validation, columns)
    X, y, weight = columns.rows(read_table(data))
    options = {"solver": solver, "loss": loss, "cost": read_costs(cost, costs), "sample_weight": weight}
    with progress_bar("pruning") as progress:
        if validation is None:
            made = prune_path(columns.model, X, y, **options)
        else:
            made = evaluated_path(columns.model, X, y, validation=choose_by, progress=progress, **options)
    origin = {"model_file": str(model.resolve()), "model_sha256": digest(model)}
    made = replace(made, facts={**made.facts, **origin})
    made.save(out, force=force)
    if json:
        print_json(describe_path(made, out))
    else:
        print_path(made, out)
        print_written(out)


@app.command()
@plain_messages
def select(
    path: opt.PathFile,
    out: opt.Out,
    model: opt.OtherModel = None,
    max_loss_increase: opt.MaxLossIncrease = None,
    max_nodes: opt.MaxNodes = None,
    max_leaves: opt.MaxLeaves = None,
    max_trees: opt.MaxTrees = None,
    max_depth: opt.MaxDepth = None,
    max_features: opt.MaxFeatures = None,
    max_cost: opt.MaxCost = None,
    max_bytes: opt.MaxBytes = None,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Write one pruning of a saved path as a model. Without limits: the one with the lowest loss."""
    from secateur.cli.inputs import model_of
    from secateur.io.files import load_model
    from secateur.path import Path as PruningPath

    source = load_model(model_of(PruningPath.load(path), path, model), trust=trust)
    _check_out(out, force, source)
    chosen = PruningPath.load(path, source).select(
        max_loss_increase=max_loss_increase,
        max_nodes=max_nodes,
        max_leaves=max_leaves,
        max_trees=max_trees,
        max_depth=max_depth,
        max_features=max_features,
        max_cost=max_cost,
        max_bytes=max_bytes,
    )
    _finish(chosen, out, force, json)


@app.command()
@plain_messages
def serve_cost(
    model: opt.Model,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to predict: .csv, .csv.gz or .parquet.")],
    costs: opt.Costs = None,
    pruned: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="A pruned copy, to compare with.", show_default=False)
    ] = None,
    target: opt.Target = None,
    trust: opt.Trust = False,
    json: opt.Json = False,
    debug: opt.Debug = False,
) -> None:
    """Show what rows cost when features are bought on demand, and when buying ends as soon as the label is settled."""
    from secateur.cli.serving import print_serving, serving_prices
    from secateur.cli.show import print_json

    facts = serving_prices(model, pruned, data, target, costs, trust)
    (print_json if json else print_serving)(facts)


def _check_out(out: Path, force: bool, model: Any = None, *, suffix: str | None = None) -> None:
    """Raise an error unless the result can be written, before any work is done: as soon as the model is known again."""
    from secateur.io.files import check_model_name
    from secateur.io.replace import check_free

    if suffix is None:
        check_model_name(out, model)
    elif out.suffix != suffix:
        raise ValueError(f"--out {out} must end in {suffix}. Use {out.with_suffix(suffix)}.")
    check_free(out, force=force)


def _load_columns(model: Path, target: str | None, weights: str | None, trust: bool) -> "Columns":
    from secateur.cli.inputs import Columns
    from secateur.io.files import load_model

    return Columns(load_model(model, trust=trust), target, weights)


def _finish(chosen: "Pruned", out: Path, force: bool, json: bool) -> None:
    """Write the chosen model and show what was gained and lost."""
    from secateur.cli.show import print_json, print_summary, print_written

    chosen.save(out, force=force)
    if json:
        print_json({**chosen.summary(), "file": str(out)})
    else:
        print_summary(chosen.summary())
        print_written(out)
