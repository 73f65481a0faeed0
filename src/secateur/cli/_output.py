"""Write results: check the output file before any work, write it atomically, then print a summary."""

import inspect
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from secateur._util.text import printable
from secateur.cli._terminal import current_run
from secateur.cli.progress import progress_bar
from secateur.errors import InvalidInputError

if TYPE_CHECKING:
    from secateur.path import Path as PruningPath
    from secateur.path import Pruned


def check_out(out: Path, force: bool, model: Any = None, *, suffix: str | None = None) -> None:
    """Raise an error unless the result can be written to `out`.

    Call it before any work is done, and again once the model is known.
    """
    from secateur.files.atomic import check_free
    from secateur.files.models import check_model_name

    if suffix is None:
        check_model_name(out, model)
    elif out.suffix != suffix:
        raise InvalidInputError(f"The output file {out} must end in {suffix}. Use {out.with_suffix(suffix)}.")
    check_free(out, force=force)


def finish_model(chosen: "Pruned", out: Path, force: bool, json: bool) -> None:
    """Write the chosen model and print sizes and losses before and after pruning."""
    from secateur.cli._tables_and_json import print_json, print_summary, print_written

    run = current_run()
    with progress_bar(f"writing {out.name}"):
        run.start_writing(out)
        chosen.save(out, force=force)
        summary = chosen.summary()
    if json:
        print_json({**summary, "file": str(out), "interrupted": run.interrupted})
    else:
        print_summary(summary)
        print_written(out)


def with_origin(path: "PruningPath", model: Path) -> "PruningPath":
    """Return the path with the file name and digest of its model added to its `info`."""
    from secateur.cli._inputs import digest

    return path.with_info(model_file=str(model.resolve()), model_sha256=digest(model))


def also_save(path: "PruningPath", out: Path, force: bool, json: bool) -> None:
    """Save the path from which a model was chosen."""
    from secateur.cli._tables_and_json import print_written

    with progress_bar(f"writing {out.name}"):
        path.save(out, force=force)
    if not json:
        print_written(out)


def also_report(
    path: "PruningPath", out: Path, force: bool, json: bool, save_path: Path | None, **options: Any
) -> None:
    """Write a report of the path from which a model was chosen.

    The report shows the command that repeats this run and, if the path was saved, the command that selects any point.
    """
    from secateur.cli._tables_and_json import print_written

    code = {"chosen": command_line("report", "save_path", "json", "quiet", "debug", "force")}
    if save_path is not None:
        code["shell"] = select_line(save_path)
    write_report(path, out, force, code, **options)
    if not json:
        print_written(out)


def select_line(file: Path) -> str:
    """Return the command that selects a point of a saved path; {point} is a placeholder for its number."""
    return f"secateur select {shlex.quote(str(file))} --point {{point}} --out FILE"


def finish_path(path: "PruningPath", out: Path, force: bool, json: bool) -> None:
    """Save a path and print its points."""
    from secateur.cli._tables_and_json import describe_path, print_json, print_path, print_written

    run = current_run()
    with progress_bar(f"writing {out.name}"):
        run.start_writing(out)
        path.save(out, force=force)
    if json:
        print_json({**describe_path(path, out), "interrupted": run.interrupted})
    else:
        print_path(path, out)
        print_written(out)


def finish_report(
    path: "PruningPath", out: Path, force: bool, json: bool, code: Mapping[str, str], **options: Any
) -> None:
    """Write a report and print the summary of its chosen point.

    `code` holds the commands or code, shown in the report, that reproduce a point.
    """
    from secateur.cli._tables_and_json import print_json, print_summary, print_written

    current_run().start_writing(out)
    facts = write_report(path, out, force, code, **options)
    if json:
        print_json({**facts, "file": str(out)})
    else:
        print_summary(facts["summary"])
        print_written(out)


def write_report(
    path: "PruningPath", out: Path, force: bool, code: Mapping[str, str], **options: Any
) -> dict[str, Any]:
    """Write a report and return its contents as a dict."""
    with progress_bar(f"writing {out.name}"):
        from secateur.reporting import describe, write_facts

        facts = describe(path, **options)
        # Users copy these lines, so they must not contain invisible characters.
        facts["code"] |= {name: printable(line, keep="\n") for name, line in code.items()}
        write_facts(facts, out, force=force)
    return facts


def command_line(*omitted: str) -> str:
    """Return the running command as it could be typed again: the options that differ from the defaults.

    The options `omitted` are left out.
    """
    run = current_run()
    words = ["secateur", run.command.__name__.replace("_", "-")]
    for name, parameter in inspect.signature(run.command).parameters.items():
        value = run.arguments.get(name)
        if name in omitted or value is None or value == parameter.default:
            continue
        (option,) = parameter.annotation.__metadata__
        if isinstance(option, typer.models.OptionInfo):
            # typer stores the first name of an option as its default.
            names = (option.default, *(option.param_decls or ()))
            words.append(next((n for n in map(str, names) if n.startswith("--")), f"--{name.replace('_', '-')}"))
        words += [] if value is True else [str(value)]
    return shlex.join(words)
