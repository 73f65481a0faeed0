"""Count trees, nodes and leaves of a model, and find numbers that are valid but unusual."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.files.check.file_report import FileReport
from secateur.forest import Forest

_MANY_FEATURES, _MANY_OUTPUTS = 10**7, 10**5
_LARGEST = float(np.finfo(np.float32).max)


def with_forest(report: FileReport, forest: Forest) -> FileReport:
    """Return the report with the sizes of a forest and warnings about its numbers."""
    leaf = ~forest.is_split
    numeric = forest.is_split & ~forest.is_categorical
    sized = replace(
        report,
        trees=forest.n_trees,
        nodes=forest.n_nodes,
        leaves=forest.n_leaves,
        features=forest.n_features,
        outputs=forest.n_outputs,
        objective=report.objective or forest.objective,
    )
    return with_odd_numbers(sized, forest.value[leaf], forest.threshold[numeric])


def with_odd_numbers(report: FileReport, values: NDArray[Any], thresholds: NDArray[Any]) -> FileReport:
    """Return the report with warnings about leaf values and thresholds that few models have."""
    values, thresholds = np.asarray(values, np.float64), np.asarray(thresholds, np.float64)
    bound = np.abs(thresholds)
    found = {
        "leaf values are NaN or infinite": ~np.isfinite(values),
        "leaf values are out of the range of float32": np.isfinite(values) & (np.abs(values) > _LARGEST),
        "thresholds are NaN, so that no row is below them": np.isnan(thresholds),
        "thresholds are infinite": np.isinf(thresholds),
        "thresholds are out of the range of float32": np.isfinite(thresholds) & (bound > _LARGEST),
    }
    counts = {text: int(np.count_nonzero(odd)) for text, odd in found.items()}
    odd = tuple(f"{count:,} {text}." for text, count in counts.items() if count)
    return replace(report, warnings=(*report.warnings, *odd, *_odd_sizes(report)))


def _odd_sizes(report: FileReport) -> tuple[str, ...]:
    """Return warnings about counts for which a program may reserve memory, although no array has so many entries."""
    counts = {"features": (report.features, _MANY_FEATURES), "outputs": (report.outputs, _MANY_OUTPUTS)}
    return tuple(
        f"It declares {count:,} {name}; a program that reserves memory for each may run out of it."
        for name, (count, most) in counts.items()
        if count is not None and count > most
    )
