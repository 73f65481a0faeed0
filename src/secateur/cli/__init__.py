"""The command line: one command per verb, the saved path being what is passed between them.

Nothing heavy is imported before a command runs, so that `secateur --help` answers at once.
"""

from secateur.cli import commands
from secateur.cli.app import app, main

__all__ = ["app", "commands", "main"]
