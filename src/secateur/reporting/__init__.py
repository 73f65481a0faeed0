"""Report on a path: describe it as one dict of plain values, and write that dict as a self-contained HTML page."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

from secateur._util.user_functions import user_function
from secateur.costs import Cost
from secateur.errors import InvalidInputError
from secateur.files.atomic import check_free, replacing
from secateur.path import Path
from secateur.reporting.description import describe
from secateur.reporting.page import write_page

__all__ = ["describe", "report", "write_facts"]


@user_function
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
    """Write a self-contained HTML page to explore a path and choose a point; the page loads nothing.

    Parameters
    ----------
    path : Path
    file : str or path
        The file name, which ends in .html.
    X, y, sample_weight : optional
        Rows, preferably used neither for training nor for pruning. The page shows quantities measured on them that the
        path does not contain: calibration, prediction time for one row and in a batch and, with `cost`, the price of
        single rows. A path that has not been evaluated is also evaluated on them. X alone suffices for time and price.
    cost : FeatureCost, optional
        The feature cost the path was computed with.
    baselines : dict of name: Path, optional
        Other paths, evaluated on the same rows, to plot for comparison.
    point : int, optional
        The point the page opens at, marked as chosen. Default: the point of `path.select(**limits)`; without limits
        the cheapest point within one per cent of the lowest loss, as in `prune`.
    force : bool
        Whether to overwrite `file`.
    **limits
        As for `Path.select`: max_nodes, max_cost, max_loss_increase…

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    InvalidInputError
        If `file` does not end in .html, or a baseline has not been evaluated.
    NoPruningWithinLimitsError
        If no point satisfies the limits.
    """
    target = FilePath(file)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"The report file {target.name} must end in .html. Use {target.stem}.html.")
    check_free(target, force=force)
    facts = describe(path, X, y, sample_weight=sample_weight, cost=cost, baselines=baselines, point=point, **limits)
    return write_facts(facts, target, force=force)


def write_facts(facts: Mapping[str, Any], file: FilePath, *, force: bool = False) -> FilePath:
    """Write the HTML page for the dict returned by `describe`."""
    with replacing(file, force=force) as stream:
        stream.write(write_page(facts).encode())
    return file
