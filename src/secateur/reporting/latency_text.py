"""Format the summary of a latency benchmark as table cells and sentences, for `print` and the command line."""

from collections.abc import Mapping
from typing import Any

COLUMNS = ("", "calls", "median", "5 %", "95 %", "ratio")


def latency_text(summary: Mapping[str, Any]) -> str:
    """Return the summary of a `Benchmark` as plain text."""
    rows = [list(COLUMNS)]
    for heading, cells in latency_sections(summary):
        rows += [[heading], *([f"  {name}", *rest] for name, *rest in cells)]
    width = [max(len(row[k]) for row in rows if len(row) > k) for k in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.rjust(width[k]) if k else cell.ljust(width[0]) for k, cell in enumerate(row)) for row in rows
    ]
    return "\n".join([latency_title(summary), *(line.rstrip() for line in lines), *latency_notes(summary)])


def latency_title(summary: Mapping[str, Any]) -> str:
    """Return what was measured."""
    return f"{summary['method']}, {summary['unit']}"


def latency_sections(summary: Mapping[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return the rows of the table for calls with one row and with a batch, each with its heading."""
    models = summary["models"]
    n_rows = models[0]["batch"]["rows"]
    headings = {"one_row": "one row per call", "batch": f"{n_rows:,} rows per call" if n_rows > 1 else "all rows: one"}
    return [(heading, [_cells(model["name"], model[key]) for model in models]) for key, heading in headings.items()]


def _cells(name: str, latency: Mapping[str, Any]) -> list[str]:
    times = [_number(latency[key]) for key in ("median", "q05", "q95")]
    return [name, f"{latency['repeats']:,}", *times, _ratio(latency["ratio"])]


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return ""
    value, lowest, highest = (_factor(ratio[key]) for key in ("ratio", "lowest", "highest"))
    return f"{value}, within the noise" if ratio["within_noise"] else f"{value} ({lowest} to {highest})"


def _factor(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def latency_notes(summary: Mapping[str, Any]) -> list[str]:
    """Return sentences on the noise, the ratios and the libraries that predicted."""
    models, noise = summary["models"], summary["noise"]
    notes = [f"Noise: the medians of consecutive blocks of calls differ by up to {noise:.0%}."]
    if summary["noisy"]:
        notes.append(
            "The machine was busy, which slows long calls more than short ones: times and ratios may be far from those "
            "on an idle machine. Measure again on one."
        )
    if len(models) > 1:
        notes.append(f"Ratio: median time divided by that of {models[0]['name']} (extremes over the blocks).")
    engines = list(dict.fromkeys(model["engine"] for model in models))
    if len(engines) == 1:
        return [*notes, f"Predicted by {engines[0]}."]
    return [*notes, "Predicted by " + ", ".join(f"{model['engine']} ({model['name']})" for model in models) + "."]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
