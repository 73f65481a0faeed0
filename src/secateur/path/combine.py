"""Join several paths into one: of a model and its retrained clones, or of several solvers."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.data.rows import LocalRows
from secateur.errors import InvalidInputError, UnsupportedFileError
from secateur.forest.masks import PackedMasks
from secateur.forest.routing import route
from secateur.forest.subforest import Decision
from secateur.path import Path, Pruned
from secateur.path.build import trace_path
from secateur.path.evaluation import PointOnRows
from secateur.problem import Problem

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class JoinedPath(Path):
    """Hold the points of several paths, sorted by decreasing cost; point 0 is the unpruned given model.

    Attributes
    ----------
    parts : tuple of Path
        Paths with the same loss and cost; the first belongs to the given model.
    place : (n_points, 2)
        Index of the part and of the point within it.
    routed : dict
        Cache of the rows evaluated last, routed through each part's model.
    """

    parts: tuple[Path, ...] = ()
    place: NDArray[np.intp] = field(default_factory=lambda: np.empty((0, 2), np.intp))
    routed: dict[int, tuple[LocalRows, LocalRows]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.place)

    def _pruned(self, point: int, row: dict[str, Any], proof: dict[str, float] | None) -> Pruned:
        part, own = self._of(point)
        given = None if part is self.parts[0] else self.source
        return replace(part[own], point=point, row=row, solver=self.solver, info=self.info, proof=proof, given=given)

    def _of(self, point: int) -> tuple[Path, int]:
        which, own = self.place[point].tolist()
        return self.parts[which], own

    def decision(self, point: int) -> Decision:
        """Return the decision of a point, for the model the point belongs to."""
        part, own = self._of(point)
        return part.decision(own)

    def column(self, name: str, missing: float | str = np.nan) -> NDArray[Any]:
        """Return a column of the parts' tables, (n_points,), with `missing` where a part has none."""
        columns = [path.table.get(name, np.full(len(path), missing)) for path in self.parts]
        start = np.cumsum([0, *map(len, columns)])
        return np.concatenate(columns)[start[self.place[:, 0]] + self.place[:, 1]]

    def retrace(self, problem: Problem, solver: str, **options: Any) -> Path:
        """Return the points as a plain path; all parts must be paths of the problem's forest.

        `options` are passed to `trace_path`.
        """
        keep = np.array([np.packbits(self.decision(point).keep) for point in range(len(self))])
        masks = PackedMasks(keep, problem.forest.n_nodes)
        path = trace_path(problem, masks, self.column("penalty"), solver, cost=self.column("cost"), **options)
        exact = next((part.info.exact for part in self.parts if part.info.exact is not None), None)
        return path.with_info(exact=exact, runs=self.info.runs)

    def take(self, points: NDArray[np.intp]) -> "JoinedPath":
        """Return the path restricted to the given points; point 0, the unpruned model, is always included."""
        points = np.union1d(points, 0)
        table = {name: column[points] for name, column in self.table.items()}
        return replace(self, table=table, place=self.place[points])

    def on_rows(self, point: int, sample: LocalRows) -> PointOnRows:
        """Return what a point predicts for the rows."""
        part, own = self._of(point)
        if part is not self.parts[0]:
            sample = self._routed_by(int(self.place[point, 0]), sample)
        return part.on_rows(own, sample)

    def _routed_by(self, which: int, sample: LocalRows) -> LocalRows:
        """Return the rows routed through the model of a part."""
        if sample.rows is None:
            raise InvalidInputError(
                "X is read in batches, but retrained clones route rows differently and need X in memory. Pass a matrix."
            )
        known, routed = self.routed.get(which, (None, sample))
        if known is not sample:
            part = self.parts[which]
            leaves, offset = route(part.forest, sample.rows), part.source.offset(sample.rows)
            routed = replace(sample, leaves=leaves, offset=offset)
            self.routed[which] = sample, routed
        return routed

    def save(self, file: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Refuse to save: a path file holds a single forest.

        Raises
        ------
        ValueError
            Always.
        """
        raise UnsupportedFileError(
            f"This path has prunings of {len(self.parts)} models, and a file holds those of one model. Save the "
            "selected model (`path.select(…).save`), or compute the path with regrow=False."
        )


def join_paths(parts: Sequence[Path], names: Sequence[str], *, size_order: bool = False) -> JoinedPath:
    """Return one path with the points of several, sorted by decreasing cost; `names` prefix their origins.

    With `size_order`, points are sorted by decreasing number of nodes, then by increasing cost.

    The unpruned forest of a later part is a point only if it differs from that of the first part.
    """
    first = parts[0]
    start = [int(k > 0 and path.forest is first.forest) for k, path in enumerate(parts)]
    place = np.array([(k, point) for k, path in enumerate(parts) for point in range(start[k], len(path))], np.intp)
    cheapest = [path.info.cheapest for path in parts if path.info.cheapest is not None]
    info = replace(first.info, cheapest=min(cheapest, default=None), runs=("origin",))
    joined = JoinedPath(first.source, first.masks, {}, first.solver, info, parts=tuple(parts), place=place)
    keys = [joined.column("cost"), -joined.column("n_nodes")] if size_order else [-joined.column("cost")]
    order = np.concatenate([[0], 1 + np.lexsort([key[1:] for key in keys])])
    joined = replace(joined, place=place[order])
    common = [name for name in first.table if all(name in path.table for path in parts)]
    table = {name: joined.column(name) for name in common}
    origins = zip(joined.place[:, 0], joined.column("origin", missing=""), strict=True)
    table["origin"] = np.array([f"{names[k]} {origin}".strip() for k, origin in origins])
    return replace(joined, table=table)
