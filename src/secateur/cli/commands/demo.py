"""Implement `secateur demo`: train and prune a forest on a data set of scikit-learn."""

from pathlib import Path

from secateur.cli import options as opt
from secateur.cli.app import register_command


@register_command
def demo(
    out: opt.OutFolder = Path("secateur-demo"),
    force: opt.Force = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Train a random forest on a data set of scikit-learn, prune it by its loss, and compare both on test rows."""
    from secateur.cli._demo import print_demo, run_demo
    from secateur.cli._tables_and_json import print_json

    facts = run_demo(out, force=force)
    (print_json if json else print_demo)(facts)
