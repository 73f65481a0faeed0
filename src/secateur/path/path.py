"""Represent a path of prunings with a table of sizes, costs and losses; evaluate it and select a point."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from secateur._util.blas import one_blas_thread
from secateur._util.progress_line import progress_line
from secateur._util.user_functions import user_function
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InvalidInputError, NoPruningWithinLimitsError
from secateur.forest import Forest
from secateur.forest.masks import Masks
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss, as_loss
from secateur.path.evaluation import MEASURED, Compared, Decisions, PointOnRows, columns_of, point_on_rows
from secateur.path.guarantee import certify, select_certified
from secateur.path.info import PathInfo
from secateur.path.limits import Limits, checked_limits, warn_of_limits
from secateur.path.local_evaluation import SCORED, evaluate_locally, rows_to_score
from secateur.path.pruned import Pruned
from secateur.path.rules import certificate, choose, evenly_spaced, within
from secateur.path.scoring import LOSS_ONLY, Measures, Scoring, measures_of
from secateur.problem import Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """Hold a sequence of prunings; `path[i]` is a `Pruned`, `path.table["n_nodes"]` a column.

    Attributes
    ----------
    source : Adapter
        The unpruned model.
    masks : Masks
        Keep masks of the points.
    table : dict of (n_points,) arrays
        penalty, n_nodes, n_leaves, n_trees, n_features, depth, cost, risk. After `evaluate` also loss, loss_se,
        changed (the fraction of rows whose prediction differs from the unpruned model's) and increase_se (the standard
        error of the difference in loss from the unpruned model); with `scoring` also score and score_se (the standard
        error of the drop from the unpruned model's score).
    solver : str
        The repr of the solver.
    info : PathInfo
        The loss, the cost, and the rows on which the path was computed and evaluated.
    values : list of (n_kept, width) arrays, or None
        New values of the kept nodes of each point; None if the solver keeps the original values.
    tree_weight : (n_points, n_trees), or None
    base : (n_points, n_outputs), or None
    support : (n_nodes,), or None
        The solver's confidence in each node, from 0 to 1.
    validation_rows : RowSource, or None
        The rows on which all points were evaluated, from which `select` certifies limits. They are not saved.
    scorer : Scoring, or None
        The scorer of the column score. It is not saved.
    """

    source: Adapter
    masks: Masks
    table: dict[str, NDArray[Any]]
    solver: str
    info: PathInfo
    values: list[Floats] | None = None
    tree_weight: Floats | None = None
    base: Floats | None = None
    support: Floats | None = None
    validation_rows: RowSource | None = None
    scorer: Scoring | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "validation_rows": None, "scorer": None}

    @property
    def forest(self) -> Forest:
        """The unpruned forest."""
        return self.source.forest

    def __len__(self) -> int:
        return self.masks.n_points

    def __getitem__(self, point: int) -> Pruned:
        if not -len(self) <= point < len(self):
            raise IndexError(f"Point {point} does not exist; the path has points 0 to {len(self) - 1}.")
        point = point % len(self)
        row = {name: column[point].item() for name, column in self.table.items()}
        return self._pruned(point, row, certificate(self.table, point, None))

    def _pruned(self, point: int, row: dict[str, Any], proof: dict[str, float] | None) -> Pruned:
        return Pruned(self.source, self.decision(point), point, row, self.solver, self.info, proof, path=self)

    def __iter__(self) -> Iterator[Pruned]:
        return (self[point] for point in range(len(self)))

    def __repr__(self) -> str:
        nodes = self.table["n_nodes"]
        loss = ""
        if "loss" in self.table:
            low, high = self.table["loss"].min(), self.table["loss"].max()
            loss = f", {self.info.loss} {low:.4g} to {high:.4g}"
        return f"Path({len(self)} points, {nodes[0]} to {nodes[-1]} nodes{loss}, solver={self.solver})"

    def _repr_html_(self) -> str:
        from secateur.plotting.notebook import path_html

        return path_html(self)

    @property
    def decisions(self) -> Decisions:
        """Decisions of all points, without the model."""
        return Decisions(self.masks, self.values, self.tree_weight, self.base)

    def decision(self, point: int) -> Decision:
        """Return the decision of a point: the kept nodes and changed parameters."""
        return self.decisions.at(self.forest, point)

    def take(self, points: NDArray[np.intp]) -> "Path":
        """Return the path restricted to the given points; point 0, the unpruned model, is always included."""
        points = np.union1d(points, 0)
        return replace(
            self,
            masks=self.masks.take(points),
            table={name: column[points] for name, column in self.table.items()},
            values=None if self.values is None else [self.values[i] for i in points],
            tree_weight=None if self.tree_weight is None else self.tree_weight[points],
            base=None if self.base is None else self.base[points],
        )

    def smallest(self, max_risk: float) -> Pruned:
        """Return the point with the fewest nodes whose risk is at most `max_risk`; losses of `evaluate` are ignored.

        Raises
        ------
        ValueError
            If no point qualifies; the message names the nearest.
        """
        risk, nodes = self.table["risk"], self.table["n_nodes"]
        good = np.flatnonzero(risk <= max_risk)
        if not len(good):
            nearest = int(risk.argmin())
            raise NoPruningWithinLimitsError(
                f"No point has a risk of at most {max_risk:g}. The nearest, point {nearest}, has {risk[nearest]:g}. "
                "Allow more risk."
            )
        return self[int(good[nodes[good].argmin()])]

    def thin(self, n_points: int, **limits: float | None) -> "Path":
        """Return at most `n_points` points that satisfy the limits, evenly spaced in the logarithm of the size.

        The unpruned model and the largest point within the limits are always included. If the points are not sorted by
        size, they are evenly spaced in the cost.
        """
        points = within(self.table, limits)
        if len(points) > n_points - 1:
            size = np.log(np.maximum(self.table["n_nodes"][points], 1))
            if (np.diff(size) > 0).any():
                size = self.table["cost"][points]
            points = points[evenly_spaced(size, n_points - 1)]
        return self.take(points)

    @user_function
    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        loss: Loss | str | None = None,
        scoring: Any = None,
        tolerance: float = 0.0,
        progress: Progress | bool | None = None,
    ) -> "Path":
        """Return the path with columns loss, loss_se, changed and increase_se, computed on the given rows.

        After Ctrl-C it warns and returns the points evaluated so far, if there is at least one pruning among them.

        Parameters
        ----------
        X, y : validation rows and targets
            They should not have been used to compute the path.
        sample_weight : (n_rows,), optional
        groups : (n_rows,), optional
            The query, customer or other group of each row; standard errors and `confidence` then count groups, and
            scores of rankings compare the rows of a query.
        loss : Loss or a name, optional
            Default: the loss the path was computed with.
        scoring : str or callable, optional
            Your own metric, of which larger is better: the name of a scorer of scikit-learn, a scorer made by
            `make_scorer`, or a function of (estimator, X, y). It adds the columns score and score_se, the standard
            error of the drop from the unpruned model's score, and `select` chooses by them. See docs/scoring.md.
        tolerance : float
            By how much a predicted number must differ from the unpruned model's to count as changed.
        progress : bool or callable, optional
            As in `prune_path`.
        """
        measures = measures_of(scoring, tolerance, self.forest)
        with progress_line(progress, "reading rows") as report:
            sample = read_sample(self.source, X, y, sample_weight, groups)
            rows = "the rows passed to evaluate"
            return self.evaluate_sample(sample, loss=loss, measures=measures, rows=rows, progress=report, partial=True)

    def evaluate_sample(
        self,
        row_source: RowSource,
        *,
        rows: str,
        loss: Loss | str | None = None,
        measures: Measures = LOSS_ONLY,
        progress: Progress | None = None,
        partial: bool = False,
    ) -> "Path":
        """Return the path evaluated on rows that are already routed; `rows` describes them in words.

        With `partial`, Ctrl-C returns the points evaluated so far, if there are more than the unpruned model; `info`
        and a warning report it.
        """
        loss = as_loss(self.info.loss if loss is None else loss)
        row_source = row_source if measures.scoring is None else rows_to_score(row_source)
        with one_blas_thread:
            if isinstance(row_source, LocalRows):
                columns = evaluate_locally(self, row_source, loss, measures, progress, partial)
            else:
                query = Compared(self.decisions, tuple(range(len(self))), loss, measures.tolerance)
                columns = dict(zip(MEASURED, columns_of(row_source.total(self.forest, query)), strict=True))
        path, n_points = self, len(columns["loss"])
        # The evaluation was interrupted.
        if n_points < len(self):
            path = self.take(np.arange(n_points)).with_info(interrupted=True)
        path = path.with_columns(columns, measures, rows=rows, n_rows=len(row_source), loss=loss.text)
        path = replace(path, validation_rows=row_source, scorer=measures.scoring)
        if not self.source.supervised and isinstance(row_source, LocalRows):
            path = path.with_info(loss_scale=loss.scale(row_source.y, row_source.weight))
        return path

    def on_rows(self, point: int, sample: LocalRows) -> PointOnRows:
        """Return what a point predicts for rows that are routed through the model."""
        return point_on_rows(self.source, self.decisions, point, sample)

    def with_columns(
        self, columns: dict[str, Floats], measures: Measures, *, rows: str, n_rows: int, loss: str | None = None
    ) -> "Path":
        """Return the path with the given measured columns; an undefined loss (NaN) counts as infinite."""
        table = {name: column for name, column in self.table.items() if name not in (*MEASURED, *SCORED)}
        table |= columns
        table["loss"] = np.where(np.isnan(columns["loss"]), np.inf, columns["loss"])
        table["increase_se"] = np.nan_to_num(columns["increase_se"])
        info = replace(
            self.info,
            loss=loss or self.info.loss,
            risk_loss=self.info.risk_loss or self.info.loss,
            unpruned_loss=float(table["loss"][0]),
            evaluated_on=rows,
            evaluated_rows=n_rows,
            scoring=None if measures.scoring is None else measures.scoring.name,
            unpruned_score=float(table["score"][0]) if "score" in table else None,
            tolerance=measures.tolerance or None,
        )
        return replace(self, table=table, info=info, validation_rows=None, scorer=None)

    def with_info(self, **changes: Any) -> "Path":
        """Return the path with changed fields of `info`."""
        return replace(self, info=replace(self.info, **changes))

    @user_function
    def select(
        self,
        *,
        guard: float | None = None,
        rule: str | None = None,
        scoring: Any = None,
        confidence: float | None = None,
        **limits: Unpack[Limits],
    ) -> Pruned:
        """Select one point by limits or a rule, as `prune` does.

        Within limits on the size or the cost, it is the point with the lowest loss; without any limit, the cheapest
        within one per cent of the lowest loss. If the path is not evaluated, it is the one with the lowest risk. If the
        path was evaluated with `scoring`, the highest score takes the place of the lowest loss.

        Parameters
        ----------
        guard : float, optional
            Number of standard errors added to a measured increase before it is compared with `max_loss_increase`, and
            to a measured drop before it is compared with `max_score_drop`. It compensates for the selection bias of
            comparing many points. Default: 0.84 (1 if clones of the model were evaluated), and 3 for the same limits
            with a tenth of the unpruned loss, or of the score, added.
        rule : str, optional
            "lowest": the lowest loss. "one_se": the cheapest point within one standard error of the lowest loss.
            "one_percent": the cheapest within one per cent of the lowest loss. "srm": the least structural risk, error
            rate + sqrt(nodes / rows), which needs no validation rows, but a path of the zero-one loss. "fullest": the
            lowest loss among the largest points within the limits, one for each ridge of the solver; it is the default
            for a path that `prune` computed for a budget. With scores, "one_se" is the cheapest point that is at most
            the standard error of its drop below the highest score.
        scoring : str or callable, optional
            As in `evaluate`: score the points on the rows on which they were evaluated, and choose by the scores.
        confidence : float, optional
            Select among the points that keep `max_loss_increase`, `max_score_drop` and `max_changed` in truth, not only
            on the validation rows: with this probability over the draw of the rows, all of these points do. If there
            is none, warn and return the unpruned model. See docs/confidence.md.
        max_nodes, max_leaves, max_trees, max_depth, max_features, max_cost, max_bytes : optional
            Limits the point must satisfy. `max_bytes` limits the size of the saved native model (see `saved_as`); the
            size is estimated for all points and verified for the one returned.
        max_loss_increase : float, optional
            Return the cheapest point whose loss exceeds that of the unpruned model by at most this fraction of it,
            measured on the same rows.
        max_score_drop : float, optional
            Return the cheapest point whose score is at most this much below that of the unpruned model. Needs
            `evaluate` with `scoring`.
        max_changed : float, optional
            Return the cheapest point at which at most this fraction of the rows changes its prediction. Needs
            `evaluate`, whose `tolerance` says which numbers count as changed.

        Raises
        ------
        ValueError
            If no point qualifies; the message names the nearest.
        """
        limits = checked_limits(limits, Path.select)
        warn_of_limits(limits)
        path = self if scoring is None else self._scored(scoring)
        return path.choose(limits, rule, guard=guard, confidence=confidence)

    def choose(
        self,
        limits: Limits,
        rule: str | None = None,
        *,
        guard: float | None = None,
        confidence: float | None = None,
    ) -> Pruned:
        """Select one point by limits that are checked already; see `select`."""
        if confidence is not None:
            return select_certified(self, certify(self, limits, confidence), limits)
        # Prunings on the way to the one that was searched for are the second choice.
        thorough = np.flatnonzero(self.table.get("brief", np.zeros(len(self))) == 0)
        if len(thorough) < len(self):
            try:
                chosen = self.take(thorough)._select(guard, rule, limits)
            except NoPruningWithinLimitsError:
                pass
            else:
                return replace(chosen, point=int(thorough[chosen.point]), path=self)
        return self._select(guard, rule, limits)

    def _select(self, guard: float | None, rule: str | None, limits: Limits) -> Pruned:
        """Return the selected point among all points; estimated sizes in bytes are verified."""
        max_bytes = limits.get("max_bytes")
        path = self if max_bytes is None else self.with_bytes()
        # Each round replaces the estimated size of the selected point by its true size, so the loop terminates.
        while True:
            chosen = path[choose(path.table, self.info, limits, rule, guard)]
            if max_bytes is None:
                return replace(chosen, proof=certificate(path.table, chosen.point, limits.get("max_cost")))
            path.table["bytes"][chosen.point] = chosen.n_bytes
            if path.table["bytes"][chosen.point] <= max_bytes:
                return replace(chosen, path=self)

    def _scored(self, scoring: Any) -> "Path":
        """Return the path with scores on the rows on which it was evaluated."""
        if self.validation_rows is None:
            raise InvalidInputError(
                f"scoring={scoring!r:.60} needs validation rows, but this path was evaluated on "
                f"{self.info.evaluated_on or 'no rows'}, or read from a file. Pass scoring to evaluate, with the rows."
            )
        measures = measures_of(scoring, self.info.tolerance or 0.0, self.forest)
        return self.evaluate_sample(self.validation_rows, rows=self.info.evaluated_on or "", measures=measures)

    def saved_as(self, suffix: str | None) -> "Path":
        """Return the path with bytes measured in files of this suffix, such as ".onnx".

        None stands for the default: a pickle, or the native file format of libraries that have one.
        """
        table = {name: column for name, column in self.table.items() if name != "bytes"}
        return replace(self, table=table).with_info(saved_as=suffix)

    def with_bytes(self) -> "Path":
        """Return the path with a column bytes, the size of the saved native model.

        The size is measured at up to four points and estimated at the others by a linear model in nodes and trees.
        """
        if "bytes" in self.table:
            return replace(self, table={**self.table, "bytes": self.table["bytes"].copy()})
        points = np.unique(np.linspace(1, len(self) - 1, 4).astype(int)) if len(self) > 1 else np.zeros(1, int)
        known = [self[int(point)].n_bytes for point in points]
        sizes = np.column_stack([np.ones(len(self)), self.table["n_nodes"], self.table["n_trees"]])
        weights = np.linalg.lstsq(sizes[points], np.array(known, np.float64), rcond=None)[0]
        column = np.maximum(sizes @ weights, 1.0)
        column[points] = known
        return replace(self, table={**self.table, "bytes": np.ceil(column).astype(np.int64)})

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame, one row per point."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas, which is not installed. Run: pip install 'secateur[pandas]'."
            ) from error
        return pandas.DataFrame(self.table)

    def plot(self, kind: str = "tradeoff", *, ax: Any = None, **options: Any) -> Any:
        """Draw the path with matplotlib and return the Axes. See docs/plots.md.

        Parameters
        ----------
        kind : "tradeoff", "tree" or "features"
        ax : matplotlib Axes, optional
            Axes to draw on; default a new figure.
        x : str, optional
            tradeoff: column of the horizontal axis, "n_nodes", "cost", "bytes" and so on; default the path's cost.
        mark : int or Pruned, optional
            tradeoff: point to mark as selected.
        baselines : dict of name: Path, optional
            tradeoff: further paths, evaluated with the same loss on the same rows.
        label : str, optional
            tradeoff: name of the path in the legend.
        point : int or Pruned, optional
            tree and features: pruning to draw; default the result of `select()`.
        tree : int, optional
            tree: index of the tree in the model.
        max_depth : int, optional
            tree: maximum depth to draw; by default the depth is limited by a width of 32 nodes.
        prices : FeatureCost, (n_features,) or dict, optional
            features: prices to print next to the bars.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from secateur.plotting.tradeoff import draw

        return draw(self, kind, ax, options)

    def save(self, file: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Write the path to one `.npz` file, without the native model. See docs/format.md."""
        from secateur.path.path_file import save_path

        return save_path(self, file, force=force)

    @staticmethod
    def load(file: str | PathLike[str], model: Any = None) -> "Path":
        """Read a saved path; with the `model` it was computed for, `to_model` returns native models again."""
        from secateur.path.path_file import load_path

        return load_path(file, model)
