"""Pair a path with the validation rows it was fitted without."""

from dataclasses import dataclass

from secateur.data.row_source import RowSource
from secateur.path.path import Path


@dataclass(frozen=True, eq=False)
class Fold:
    """Hold a path fitted without the rows of a fold, and these rows.

    The path belongs to the given model or to a clone refitted without the fold.
    """

    path: Path
    validation_rows: RowSource
