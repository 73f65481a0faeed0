"""Implement `secateur report`: write an HTML report of a saved path."""

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
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
    max_score_drop: opt.MaxScoreDrop = None,
    max_changed: opt.MaxChanged = None,
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
    """Write a self-contained HTML report of a saved path: trade-off curve, trees, features and uncertainty."""
    limits = opt.limits(locals())
    from secateur.cli._output import check_out, finish_report, select_line

    with progress_bar(f"reading {path.name}"):
        from secateur.cli._inputs import check_choice, report_path, report_rows
        from secateur.path import Path as PruningPath

        check_out(out, force, suffix=".html")
        pruning_path = report_path(path, model, trust)
        baselines = {file.stem: PruningPath.load(file) for file in baseline or ()}
        rows = report_rows(pruning_path, data, target, weights, costs)
    check_choice(pruning_path, point, limits)
    code = {"shell": select_line(path)}
    finish_report(pruning_path, out, force, json, code, baselines=baselines, point=point, **rows, **limits)
