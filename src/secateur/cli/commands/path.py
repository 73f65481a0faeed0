"""Implement `secateur path`: compute and save the pruning path of a model."""

from secateur.cli import options as opt
from secateur.cli.app import verb
from secateur.cli.progress import progress_bar


@verb
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
    seed: opt.Seed = 0,
    force: opt.Force = False,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Save every pruning on the way from the whole model to the smallest (.npz), to select from later."""
    from secateur.cli._output import check_out, finish_path, with_origin

    with progress_bar(f"reading {model.name}"):
        from secateur.api import evaluated_path, prune_path
        from secateur.cli._inputs import check_words, load_columns, read_costs, read_validation
        from secateur.data.tables import read_table

        check_out(out, force, suffix=".npz")
        check_words(solver, loss, cost)
        columns = load_columns(model, target, weights, trust)
    with progress_bar(f"reading {data.name}"):
        choose_by = None if validation is None else read_validation(validation, columns)
        X, y, weight = columns.rows(read_table(data))
        options = {"solver": solver, "loss": loss, "cost": read_costs(cost, costs), "sample_weight": weight}
    with progress_bar("pruning") as progress:
        if validation is None:
            made = prune_path(columns.model, X, y, progress=progress, **options)
        else:
            options |= {"validation": choose_by, "random_state": seed}
            made = evaluated_path(columns.model, X, y, progress=progress, **options)
    finish_path(with_origin(made, model), out, force, json)
