"""Implement `secateur inspect`: show the type, sizes and features of a model."""

from secateur.cli import options as opt
from secateur.cli.app import verb
from secateur.cli.progress import progress_bar


@verb
def inspect(
    model: opt.Model,
    data: opt.SomeData = None,
    target: opt.Target = None,
    costs: opt.Costs = None,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show what a model is made of and, given rows, what their features cost."""
    if costs is not None and data is None:
        raise ValueError("--costs needs rows: what features cost depends on which a row needs. Name a DATA file.")
    with progress_bar(f"reading {model.name}"):
        from secateur.cli._tables_and_json import bytes_of, describe_needs, print_json, print_model
        from secateur.files.models import load_model
        from secateur.libraries import adapt
        from secateur.reporting.model_summary import describe_model

        loaded = load_model(model, trust=trust)
        facts = {**describe_model(adapt(loaded)), "bytes": bytes_of(model)}
    if data is not None:
        with progress_bar(f"reading {data.name}"):
            facts |= describe_needs(loaded, data, target, costs)
    (print_json if json else print_model)(facts)
