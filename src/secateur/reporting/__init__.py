"""The report: all there is to know of a path as one dict, and that dict as one HTML file that needs nothing else."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from secateur.costs import Cost
from secateur.files.atomic import check_free, replacing
from secateur.path import Path
from secateur.reporting.description import describe
from secateur.reporting.page import write_page

__all__ = ["describe", "report", "write_facts"]


def report(
    path: Path,
    file: str | PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    cost: Cost | None = None,
    baselines: Mapping[str, Path] | None = None,
    point: int | None = None,
    force: bool = False,
    **limits: float | None,
) -> FilePath:
    """Write a page to look at a path with, choose a point, and show it to others: one HTML file, no network.

    Parameters
    ----------
    path : Path
    file : str or path
        Ends in .html.
    X, y, sample_weight : optional
        Rows, best ones that neither training nor pruning has seen. On them the page measures what a path does not hold:
        calibration, microseconds per prediction and, with `cost`, what single rows pay. A path that has not been
        evaluated is evaluated on them, too. X alone will do for time and cost.
    cost : FeatureCost, optional
        The prices the path was made with.
    baselines : dict of name: Path, optional
        Other paths to draw beside this one, evaluated on the same rows.
    point : int, optional
        The point the page opens at, marked as chosen. Default: what `path.select(**limits)` gives; without limits the
        cheapest point within one per cent of the lowest loss, as `prune` chooses.
    force : bool
        Whether to overwrite `file`.
    **limits
        As for `Path.select`: max_nodes, max_cost, max_loss_increase…

    Returns
    -------
    pathlib.Path
        Where the page is.

    Raises
    ------
    ValueError
        If no point obeys the limits, or a baseline has not been evaluated.
    """
    target = FilePath(file)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"A report is a page, but the name is {target.name}. Use {target.stem}.html.")
    check_free(target, force=force)
    facts = describe(path, X, y, sample_weight=sample_weight, cost=cost, baselines=baselines, point=point, **limits)
    return write_facts(facts, target, force=force)


def write_facts(facts: Mapping[str, Any], file: FilePath, *, force: bool = False) -> FilePath:
    """Write the page of what `describe` returned."""
    with replacing(file, force=force) as stream:
        stream.write(write_page(facts).encode())
    return file
