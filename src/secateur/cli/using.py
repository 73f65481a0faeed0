"""The verbs for what was made: select, report and serve-cost."""

from pathlib import Path
from typing import Annotated

import typer

from secateur.cli import options as opt
from secateur.cli.app import verb
from secateur.cli.progress import progress_bar


@verb
def select(
    path: opt.PathFile,
    out: opt.Out,
    model: opt.OtherModel = None,
    point: opt.Point = None,
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
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write one pruning of a saved path as a model. Without limits: the one with the lowest loss."""
    limits = opt.limits(locals())
    from secateur.cli.results import check_out, finish_model

    with progress_bar(f"reading {path.name}"):
        from secateur.cli.inputs import model_of, named_point
        from secateur.io.files import load_model, model_suffix
        from secateur.path import Path as PruningPath

        source = load_model(model_of(PruningPath.load(path), path, model), trust=trust)
        check_out(out, force, source)
        whole = PruningPath.load(path, source).saved_as(model_suffix(out))
    finish_model(named_point(whole, point, limits), out, force, json)


@verb
def report(
    path: opt.PathFile,
    out: opt.Out,
    data: opt.ReportRows = None,
    target: opt.Target = None,
    costs: opt.Costs = None,
    weights: opt.Weights = None,
    baseline: opt.Baselines = None,
    model: opt.OtherModel = None,
    point: opt.Point = None,
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
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write a page (.html) to look at a saved path with: curve, trees, features, how sure. It needs nothing else."""
    limits = opt.limits(locals())
    from secateur.cli.results import check_out, finish_report, select_line

    with progress_bar(f"reading {path.name}"):
        from secateur.cli.inputs import check_choice, report_path, report_rows
        from secateur.path import Path as PruningPath

        check_out(out, force, suffix=".html")
        whole = report_path(path, model, trust)
        others = {file.stem: PruningPath.load(file) for file in baseline or ()}
        rows = report_rows(whole, data, target, weights, costs)
    check_choice(whole, point, limits)
    again = {"shell": select_line(path)}
    finish_report(whole, out, force, json, again, baselines=others, point=point, **rows, **limits)


@verb
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
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show what rows cost when features are bought on demand, and when buying ends as soon as the label is settled."""
    with progress_bar("buying features"):
        from secateur.cli.serving import print_serving, serving_prices
        from secateur.cli.show import print_json

        facts = serving_prices(model, pruned, data, target, costs, trust)
    (print_json if json else print_serving)(facts)
