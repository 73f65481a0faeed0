"""A Path: the decisions a solver made, from the unpruned forest to the most pruned, and a table of what each gives."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur._util.blas import one_blas_thread
from secateur.data.row_source import RowSource
from secateur.data.rows import LocalRows, read_sample
from secateur.errors import InterruptedWarning
from secateur.forest import Forest
from secateur.forest.masks import Masks
from secateur.forest.subforest import Decision
from secateur.libraries.adapter import Adapter
from secateur.losses import Loss, loss_named
from secateur.path.evaluation import Compared, Decisions, columns_of
from secateur.path.pruned import Pruned
from secateur.path.rules import LIMITS, certificate, choose, within
from secateur.problem import Progress

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """A sequence of prunings; `path[i]` is a `Pruned`, `path.table["n_nodes"]` a column.

    Attributes
    ----------
    source : Adapter
        The model that was pruned.
    masks : Masks
        What each point keeps.
    table : dict of (n_points,) arrays
        penalty, n_nodes, n_leaves, n_trees, n_features, depth, cost, risk; after `evaluate` also loss, loss_se,
        changed (the share of rows whose prediction is not the unpruned model's) and increase_se (the standard error of
        the loss's difference from the unpruned model's).
    solver : str
        The solver with its settings.
    facts : dict
        loss, cost, and on which rows the path was made and evaluated; plain JSON values.
    values : list of (n_kept, width) arrays, or None
        New values of the kept nodes of each point; None where the solver keeps values.
    tree_weight : (n_points, n_trees), or None
    base : (n_points, n_outputs), or None
    support : (n_nodes,), or None
        How sure the solver is of each node, 0 to 1.
    """

    source: Adapter
    masks: Masks
    table: dict[str, NDArray[Any]]
    solver: str
    facts: dict[str, Any] = field(default_factory=dict)
    values: list[Floats] | None = None
    tree_weight: Floats | None = None
    base: Floats | None = None
    support: Floats | None = None

    @property
    def forest(self) -> Forest:
        """The unpruned forest."""
        return self.source.forest

    def __len__(self) -> int:
        return self.masks.n_points

    def __getitem__(self, point: int) -> Pruned:
        if not -len(self) <= point < len(self):
            raise IndexError(f"Point {point} asked for; the path has points 0 to {len(self) - 1}.")
        point = point % len(self)
        row = {name: column[point].item() for name, column in self.table.items()}
        proof = certificate(self.table, point, None)
        return Pruned(self.source, self.decision(point), point, row, self.solver, self.facts, proof)

    def __iter__(self) -> Iterator[Pruned]:
        return (self[point] for point in range(len(self)))

    def __repr__(self) -> str:
        nodes = self.table["n_nodes"]
        loss = ""
        if "loss" in self.table:
            low, high = self.table["loss"].min(), self.table["loss"].max()
            loss = f", {self.facts['loss']} {low:.4g} to {high:.4g}"
        return f"Path({len(self)} points, {nodes[0]} to {nodes[-1]} nodes{loss}, solver={self.solver})"

    def _repr_html_(self) -> str:
        from secateur.plotting.notebook import path_html

        return path_html(self)

    @property
    def decisions(self) -> Decisions:
        """What all points keep and change, without the model."""
        return Decisions(self.masks, self.values, self.tree_weight, self.base)

    def decision(self, point: int) -> Decision:
        """Return what point `point` keeps and changes."""
        return self.decisions.at(self.forest, point)

    def take(self, points: NDArray[np.intp]) -> "Path":
        """Return the path of some points only, given in rising order; point 0, the unpruned model, always stays."""
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
        """Return the point with the fewest nodes whose risk is at most `max_risk`, whatever `evaluate` found.

        Raises
        ------
        ValueError
            If there is none; it names the point that comes nearest.
        """
        risk, nodes = self.table["risk"], self.table["n_nodes"]
        good = np.flatnonzero(risk <= max_risk)
        if not len(good):
            nearest = int(risk.argmin())
            raise ValueError(
                f"No point has a risk of at most {max_risk:g}. The nearest, point {nearest}, has {risk[nearest]:g}. "
                "Allow more risk."
            )
        return self[int(good[nodes[good].argmin()])]

    def thin(self, n_points: int, **limits: float | None) -> "Path":
        """Return at most `n_points` points that obey the limits, spread evenly over the logarithm of the size.

        The unpruned model and the largest point within the limits are always among them. Where points are not in the
        order of their size they are spread evenly over the cost.
        """
        points = within(self.table, limits)
        if len(points) > n_points - 1:
            size = np.log(np.maximum(self.table["n_nodes"][points], 1))
            if (np.diff(size) > 0).any():
                size = self.table["cost"][points]
            grid = np.linspace(size[0], size[-1], n_points - 1)
            points = points[np.unique(np.searchsorted(-size, -grid).clip(0, len(points) - 1))]
        return self.take(points)

    def evaluate(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        loss: Loss | None = None,
        progress: Progress | None = None,
    ) -> "Path":
        """Return the path with columns loss, loss_se, changed and increase_se, measured on the rows given.

        Interrupted by Ctrl-C once a pruning was evaluated, it warns and returns the path of the points evaluated so
        far.

        Parameters
        ----------
        X, y : rows and targets the path has not seen
        sample_weight : (n_rows,), optional
        loss : Loss, optional
            Default: the loss the path was made with.
        progress : callable, optional
            Called as `progress(done, total, what)`.
        """
        sample = read_sample(self.source, X, y, sample_weight)
        which = "the rows passed to evaluate"
        return self.evaluate_sample(sample, loss=loss, rows=which, progress=progress, partial=True)

    def evaluate_sample(
        self,
        row_source: RowSource,
        *,
        rows: str,
        loss: Loss | None = None,
        progress: Progress | None = None,
        partial: bool = False,
    ) -> "Path":
        """Return the path evaluated on rows that are routed already; `rows` says in words which they are.

        With `partial`, Ctrl-C ends the evaluation, not the path: it has the points evaluated so far, if these are more
        than the unpruned model, and says so in its facts and a warning.
        """
        loss = loss or loss_named(self.facts["loss"])
        with one_blas_thread:
            if isinstance(row_source, LocalRows):
                columns = self._compare(row_source, loss, progress, partial)
            else:
                ask = Compared(self.decisions, tuple(range(len(self))), loss)
                columns = columns_of(row_source.total(self.forest, ask))
        path = self
        if columns.shape[1] < len(self):  # interrupted
            path = self.take(np.arange(columns.shape[1]))
            path = replace(path, facts={**path.facts, "interrupted": True})
        return path.with_losses(*columns, rows=rows, n_rows=len(row_source), loss=loss.text)

    def _compare(self, sample: LocalRows, loss: Loss, progress: Progress | None, partial: bool) -> Floats:
        """Return what `compare` does of every point, (4, n_points); of the first ones only if it is interrupted."""
        unpruned = self.row_losses(0, sample, loss)
        columns: list[tuple[float, ...]] = []
        try:
            for point in range(len(self)):
                told = self.row_losses(point, sample, loss) if point else unpruned
                columns.append(compare(told, unpruned, sample.weight / sample.total_weight))
                if progress:
                    progress(point + 1, len(self), "evaluating")
        except KeyboardInterrupt:
            if not partial or len(columns) < 2:
                raise
            message = f"Interrupted: the path has the {len(columns)} of {len(self)} points evaluated so far."
            warnings.warn(f"{message} Run again for the others.", InterruptedWarning, stacklevel=4)
        return np.array(columns).T

    def row_losses(self, point: int, sample: LocalRows, loss: Loss) -> tuple[Floats, NDArray[Any]]:
        """Return the loss of each row at a point, and what the model says of it."""
        raw = sample.scores(self.forest, self.decision(point) if point else None)
        said = self.source.decode(self.forest.response.label(raw, self.forest.n_classes))
        return loss.rows(self.forest, raw, sample.y), said.reshape(len(sample), -1)

    def with_losses(
        self,
        loss_column: Floats,
        loss_se: Floats,
        changed: Floats,
        increase_se: Floats,
        *,
        rows: str,
        n_rows: int,
        loss: str | None = None,
    ) -> "Path":
        """Return the path with losses measured elsewhere; a loss that could not be measured counts as infinite."""
        loss_column = np.where(np.isnan(loss_column), np.inf, loss_column)
        table = {
            **self.table,
            "loss": loss_column,
            "loss_se": loss_se,
            "changed": changed,
            "increase_se": np.nan_to_num(increase_se),
        }
        facts = {
            **self.facts,
            "loss": loss or self.facts["loss"],
            "risk_loss": self.facts.get("risk_loss", self.facts["loss"]),
            "unpruned_loss": float(loss_column[0]),
            "evaluated_on": rows,
            "evaluated_rows": n_rows,
        }
        return replace(self, table=table, facts=facts)

    def select(
        self,
        *,
        max_nodes: int | None = None,
        max_leaves: int | None = None,
        max_trees: int | None = None,
        max_depth: int | None = None,
        max_features: int | None = None,
        max_cost: float | None = None,
        max_bytes: int | None = None,
        max_loss_increase: float | None = None,
        guard: float = 0.0,
        rule: str | None = None,
    ) -> Pruned:
        """Return one point: of those within the limits the one with the lowest loss.

        With `max_loss_increase` (relative to the unpruned model on the same rows) the cheapest that loses no more, also
        if the increase were `guard` standard errors larger than measured: many points are compared, and the luckiest
        would win.
        `max_bytes` limits the size of the saved native model (see `saved_as`); it is estimated for all points and
        verified for the one returned.
        With `rule="one_se"` the cheapest within one standard error of the lowest loss, with `rule="one_percent"` the
        cheapest within one per cent of it, with `rule="srm"` the least structural risk, risk + sqrt(nodes / rows),
        which needs no other rows; with `rule="fullest"` the lowest loss of the largest points that obey the limits,
        one for each ridge of the solver. Without `evaluate`, the loss is the solver's own risk.

        Raises
        ------
        ValueError
            If no point qualifies; it names the nearest.
        """
        given = locals()
        limits = {name: given[name] for name in LIMITS}
        path = self if max_bytes is None else self.with_bytes()
        while True:
            chosen = path[choose(path.table, limits, max_loss_increase, rule, self.facts["made_on_rows"], guard)]
            if max_bytes is None:
                return replace(chosen, proof=certificate(path.table, chosen.point, max_cost))
            path.table["bytes"][chosen.point] = chosen.n_bytes
            if path.table["bytes"][chosen.point] <= max_bytes:
                return chosen

    def saved_as(self, suffix: str | None) -> "Path":
        """Return the path with bytes counted in files of this suffix, such as ".onnx"; None for what is usual.

        That is pickled, or for models of other libraries as these save them.
        """
        table = {name: column for name, column in self.table.items() if name != "bytes"}
        return replace(self, table=table, facts={**self.facts, "saved_as": suffix})

    def with_bytes(self) -> "Path":
        """Return the path with a column bytes, the size of the saved native model, estimated from nodes and trees.

        It is measured at a few points, and linear in between.
        """
        if "bytes" in self.table:
            return replace(self, table={**self.table, "bytes": self.table["bytes"].copy()})
        points = np.unique(np.linspace(1, len(self) - 1, 4).astype(int)) if len(self) > 1 else np.zeros(1, int)
        known = [self[int(point)].n_bytes for point in points]
        facts = np.column_stack([np.ones(len(self)), self.table["n_nodes"], self.table["n_trees"]])
        weights = np.linalg.lstsq(facts[points], np.array(known, np.float64), rcond=None)[0]
        column = np.maximum(facts @ weights, 1.0)
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
            Where to draw; default a new figure.
        x : str, optional
            tradeoff: the column to draw by, "n_nodes", "cost", "bytes" and so on; default the cost the path is for.
        mark : int or Pruned, optional
            tradeoff: a point to mark as chosen.
        baselines : dict of name: Path, optional
            tradeoff: further lines, of the same loss measured on the same rows.
        label : str, optional
            tradeoff: what the legend calls the path.
        point : int or Pruned, optional
            tree and features: the pruning to draw; default what `select()` returns.
        tree : int, optional
            tree: which tree of the model.
        max_depth : int, optional
            tree: how deep to draw; default as deep as 32 nodes side by side allow.
        prices : FeatureCost, (n_features,) or dict, optional
            features: prices to write beside the bars.

        Raises
        ------
        ImportError
            Without matplotlib.
        """
        from secateur.plotting.tradeoff import draw

        return draw(self, kind, ax, options)

    def save(self, file: str | PathLike[str], *, force: bool = False) -> FilePath:
        """Write the path to one `.npz` file, without the native model. See docs/format.md."""
        from secateur.path.path_file import save_path

        return save_path(self, file, force=force)

    @staticmethod
    def load(file: str | PathLike[str], model: Any = None) -> "Path":
        """Read a saved path; with the `model` it was made from, `to_model` gives native models again."""
        from secateur.path.path_file import load_path

        return load_path(file, model)


def compare(
    told: tuple[Floats, NDArray[Any]], unpruned: tuple[Floats, NDArray[Any]], share: Floats
) -> tuple[float, float, float, float]:
    """Return the mean loss of rows, its standard error, which share of them changed, and the error of the difference.

    Both are losses and answers, (n_rows,) and (n_rows, n_targets).
    """
    (losses, said), (reference, before) = told, unpruned
    mean, was = float(share @ losses), float(share @ reference)
    return (
        mean,
        float(np.sqrt(share**2 @ (losses - mean) ** 2)),
        float(share @ (said != before).any(axis=1)),
        float(np.sqrt(share**2 @ (losses - reference - mean + was) ** 2)),
    )
