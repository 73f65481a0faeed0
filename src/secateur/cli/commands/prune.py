"""Implement `secateur prune`: write a pruned copy of a model."""

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def prune(
    model: opt.Model,
    data: opt.Data,
    out: opt.Out,
    target: opt.Target = None,
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
    validation: opt.ValidationForChoice = None,
    solver: opt.Solver = "auto",
    loss: opt.Loss = None,
    scoring: opt.Scoring = None,
    tolerance: opt.Tolerance = 0.0,
    confidence: opt.Confidence = None,
    cost: opt.Cost = None,
    costs: opt.Costs = None,
    regrow: opt.Regrow = False,
    weights: opt.Weights = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    report: opt.Report = None,
    save_path: opt.SavePath = None,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write a smaller copy of a model. Without limits: the smallest one whose loss is within 1 % of the lowest."""
    limits = opt.limits(locals())
    from secateur.cli._output import also_report, also_save, check_out, finish_model, with_origin

    with progress_bar(f"reading {model.name}"):
        from secateur.cli._inputs import (
            ModelColumns,
            check_names,
            check_scoring,
            load_adapter,
            read_costs,
            read_validation,
        )
        from secateur.data.tables import read_table
        from secateur.files.models import model_suffix
        from secateur.selection.choice import choose_point
        from secateur.selection.evaluated_path import evaluated_path

        # Spark models are folders, which may have any name.
        if not model.is_dir():
            check_out(out, force)
        for file, suffix in ((report, ".html"), (save_path, ".npz")):
            if file is not None:
                check_out(file, force, suffix=suffix)
        check_names(solver, loss, cost)
        check_scoring(scoring, max_score_drop)
        cost_argument = read_costs(cost, costs)
        adapter = load_adapter(model, trust)
        check_out(out, force, adapter.model)
        columns = ModelColumns(adapter, target, weights)
    with progress_bar(f"reading {data.name}"):
        X, y, weight = columns.rows(read_table(data))
        validation_rows = read_validation(validation, columns)
    with progress_bar("pruning") as progress:
        path = evaluated_path(
            adapter,
            X,
            y,
            solver=solver,
            loss=loss,
            scoring=scoring,
            tolerance=tolerance,
            confidence=confidence,
            cost=cost_argument,
            sample_weight=weight,
            saved_as=model_suffix(out),
            regrow=regrow,
            validation=validation_rows,
            random_state=seed,
            n_jobs=jobs,
            progress=progress,
            search=True,
            curve=report is not None or save_path is not None,
            **limits,
        )
        chosen = choose_point(path, confidence=confidence, **limits)
    finish_model(chosen, out, force, json)
    if save_path is not None:
        also_save(with_origin(path, model), save_path, force, json)
    if report is not None:
        report_rows = validation_rows if isinstance(validation_rows, tuple) else (X, None, weight)
        rows = dict(zip(("X", "y", "sample_weight"), report_rows, strict=False))
        also_report(path, report, force, json, save_path, cost=cost_argument, point=chosen.point, **rows)
