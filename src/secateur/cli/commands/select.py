"""Implement `secateur select`: write one point of a saved path as a model."""

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def select(
    path: opt.PathFile,
    out: opt.Out,
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
    """Write one pruning of a saved path as a model. Without limits: the one with the lowest loss."""
    limits = opt.limits(locals())
    from secateur.cli._output import check_out, finish_model

    with progress_bar(f"reading {path.name}"):
        from secateur.cli._inputs import load_adapter, model_of, named_point
        from secateur.files.models import model_suffix
        from secateur.path import Path as PruningPath

        source = load_adapter(model_of(PruningPath.load(path), path, model), trust)
        check_out(out, force, source.model)
        pruning_path = PruningPath.load(path, source).saved_as(model_suffix(out))
    finish_model(named_point(pruning_path, point, limits), out, force, json)
