"""The verbs that only look: demo and inspect."""

from pathlib import Path

from secateur.cli import options as opt
from secateur.cli.app import verb
from secateur.cli.progress import progress_bar


@verb
def demo(
    out: opt.OutFolder = Path("secateur-demo"),
    force: opt.Force = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Train a random forest on data that ships with scikit-learn, prune it, and show what that did."""
    from secateur.cli.demo import print_demo, run_demo
    from secateur.cli.show import print_json

    facts = run_demo(out, force=force)
    (print_json if json else print_demo)(facts)


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
        from secateur.cli.show import bytes_of, describe_needs, print_json, print_model
        from secateur.io import adapt
        from secateur.io.files import load_model
        from secateur.reporting.model import describe_model

        loaded = load_model(model, trust=trust)
        facts = {**describe_model(adapt(loaded)), "bytes": bytes_of(model)}
    if data is not None:
        with progress_bar(f"reading {data.name}"):
            facts |= describe_needs(loaded, data, target, costs)
    (print_json if json else print_model)(facts)
