"""Implement `secateur inspect`: show the type, sizes and features of a model."""

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar
from secateur.errors import InvalidInputError


@register_command
def inspect(
    model: opt.Model,
    data: opt.OptionalData = None,
    target: opt.Target = None,
    costs: opt.Costs = None,
    trust: opt.Trust = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show the type and the size of a model and, given rows, the number and the cost of the features they need."""
    if costs is not None and data is None:
        raise InvalidInputError(
            "--costs was given without rows. The cost depends on the features each row needs. Pass a DATA file."
        )
    with progress_bar(f"reading {model.name}"):
        from secateur.cli._inputs import load_adapter
        from secateur.cli._tables_and_json import bytes_of, describe_needs, print_json, print_model
        from secateur.reporting.model_summary import describe_model

        adapter = load_adapter(model, trust)
        facts = {**describe_model(adapter), "bytes": bytes_of(model)}
    if data is not None:
        with progress_bar(f"reading {data.name}"):
            facts |= describe_needs(adapter, data, target, costs)
    (print_json if json else print_model)(facts)
