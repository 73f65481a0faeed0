"""Read the models and rows of a latency benchmark and print its result, for `secateur benchmark`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secateur.cli._inputs import check_numbers, feature_names, load_adapter
from secateur.cli._terminal import stdout
from secateur.data.tables import read_table
from secateur.libraries.adapter import Adapter
from secateur.reporting.latency_text import COLUMNS, latency_notes, latency_sections, latency_title


def read_models_and_rows(
    files: Sequence[Path], data: Path, target: str | None, trust: bool
) -> tuple[dict[str, Adapter], Any]:
    """Return models by their file names, and the rows of a file with the columns of the first model."""
    models: dict[str, Adapter] = {}
    for file in files:
        # A file compared with itself shows the noise.
        name = str(file) if str(file) not in models else f"{file} ({len(models) + 1})"
        models[name] = load_adapter(file, trust)
    first, table = next(iter(models.values())), read_table(data)
    X, _ = table.split(target, feature_names(first, table))
    check_numbers(first, X, table)
    return models, X


def print_latency(facts: Mapping[str, Any]) -> None:
    """Print the summary of a benchmark."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column(COLUMNS[0], overflow="fold")
    for name in COLUMNS[1:]:
        table.add_column(name, justify="right")
    for heading, rows in latency_sections(facts):
        table.add_row(heading, style="bold")
        for name, *cells in rows:
            table.add_row(f"  {name}", *cells)
        table.add_section()
    console = stdout()
    console.print(latency_title(facts), style="bold")
    console.print(table)
    for note in latency_notes(facts):
        console.print(note)
