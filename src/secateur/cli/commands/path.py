"""Implement `secateur path`: compute and save the pruning path of a model."""

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def path(
    model: opt.Model,
    data: opt.Data,
    out: opt.Out,
    target: opt.Target = None,
    validation: opt.ValidationForLoss = None,
    solver: opt.Solver = "auto",
    loss: opt.Loss = None,
    scoring: opt.Scoring = None,
    tolerance: opt.Tolerance = 0.0,
    cost: opt.Cost = None,
    costs: opt.Costs = None,
    weights: opt.Weights = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Compute the prunings from the unpruned model to the smallest, and save them (.npz) for select and report."""
    from secateur.cli._output import check_out, finish_path, with_origin

    with progress_bar(f"reading {model.name}"):
        from secateur.api import prune_path
        from secateur.cli._inputs import (
            ModelColumns,
            check_can_measure,
            check_names,
            check_scoring,
            load_adapter,
            read_costs,
            read_validation,
        )
        from secateur.data.tables import read_table
        from secateur.selection.evaluated_path import evaluated_path

        check_out(out, force, suffix=".npz")
        check_names(solver, loss, cost)
        check_scoring(scoring)
        check_can_measure(validation, scoring, tolerance)
        adapter = load_adapter(model, trust)
        columns = ModelColumns(adapter, target, weights)
    with progress_bar(f"reading {data.name}"):
        validation_rows = None if validation is None else read_validation(validation, columns)
        X, y, weight = columns.rows(read_table(data))
        options = {
            "solver": solver,
            "loss": loss,
            "cost": read_costs(cost, costs),
            "sample_weight": weight,
            "n_jobs": jobs,
        }
    with progress_bar("pruning") as progress:
        if validation is None:
            pruning_path = prune_path(adapter, X, y, progress=progress, **options)
        else:
            options |= {"validation": validation_rows, "random_state": seed}
            options |= {"scoring": scoring, "tolerance": tolerance}
            pruning_path = evaluated_path(adapter, X, y, progress=progress, **options)
    finish_path(with_origin(pruning_path, model), out, force, json)
