"""Provide the command line interface: one command per verb; a saved path is passed between commands.

Heavy imports are deferred until a command runs, so that `secateur --help` is fast.
"""

from secateur.cli import commands
from secateur.cli.app import app, main

__all__ = ["app", "commands", "main"]
