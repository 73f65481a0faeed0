"""Implement `secateur check`: say what model files are, whether they are valid, and what they would run."""

import typer

from secateur.cli import options as opt
from secateur.cli.app import register_command
from secateur.cli.progress import progress_bar


@register_command
def check(
    files: opt.CheckedFiles,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Check model files without loading them: whether they are valid, and what code they would run.

    Exits with 1 if a file is damaged or would run code, with 2 if one cannot be read or checked.
    """
    from secateur.cli._file_checks import check_files, exit_code, print_reports
    from secateur.cli._tables_and_json import print_json

    with progress_bar("checking") as move:
        facts = check_files(files, move)
    (print_json if json else print_reports)(facts)
    code = exit_code(facts)
    if code:
        raise typer.Exit(code)
