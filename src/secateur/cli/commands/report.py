"""Implement `secateur report`: write an HTML report of a saved path."""

from secateur.cli import options as opt
from secateur.cli.app import verb
from secateur.cli.progress import progress_bar


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
    from secateur.cli._output import check_out, finish_report, select_line

    with progress_bar(f"reading {path.name}"):
        from secateur.cli._inputs import check_choice, report_path, report_rows
        from secateur.path import Path as PruningPath

        check_out(out, force, suffix=".html")
        whole = report_path(path, model, trust)
        others = {file.stem: PruningPath.load(file) for file in baseline or ()}
        rows = report_rows(whole, data, target, weights, costs)
    check_choice(whole, point, limits)
    again = {"shell": select_line(path)}
    finish_report(whole, out, force, json, again, baselines=others, point=point, **rows, **limits)
