"""Register the commands, one module each, in the order of `secateur --help`."""

# isort: off
from secateur.cli.commands import demo, inspect, check
from secateur.cli.commands import prune, path
from secateur.cli.commands import select, report, benchmark, serve_cost
# isort: on

__all__ = ["benchmark", "check", "demo", "inspect", "path", "prune", "report", "select", "serve_cost"]
