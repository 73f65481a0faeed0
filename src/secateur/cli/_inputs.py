"""Read models, data, prices and paths from the files named on the command line, and convert them for the API."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur._util.text import quoted
from secateur.cli.completion import VALIDATIONS, loss_names, names_in
from secateur.data.tables import Table, read_table
from secateur.errors import InvalidInputError
from secateur.libraries import adapt
from secateur.libraries.adapter import Adapter

if TYPE_CHECKING:
    from secateur.path import Path as PruningPath
    from secateur.path import Pruned


@dataclass(frozen=True)
class ModelColumns:
    """Roles of the columns of a data file for a model.

    Attributes
    ----------
    adapter : Adapter
    target : str or None
        The column to predict; None only for unsupervised models.
    weights : str or None
        The column of row weights.
    """

    adapter: Adapter
    target: str | None
    weights: str | None = None

    def rows(self, table: Table) -> tuple[Any, Any, Any]:
        """Return (X, y, sample_weight) from the columns of a table."""
        adapter = self.adapter
        if self.target is None and adapter.supervised:
            raise InvalidInputError(
                f"--target is missing. A {type(adapter.model).__name__} needs a target column. Use a column of "
                f"{table.name}, such as {quoted(list(table.columns)[-10:])}."
            )
        X, y = table.split(
            self.target,
            feature_names(adapter, table),
            classes=adapter.labels() if adapter.forest.n_classes else None,
            drop=[] if self.weights is None else [self.weights],
        )
        check_numbers(adapter, X, table)
        return X, y, None if self.weights is None else table.numbers(self.weights)


def feature_names(adapter: Adapter, table: Table) -> list[str] | None:
    """Return the names of the columns a model was trained on; None if unknown, so that columns are taken in order.

    Libraries give generated names, such as Column_0, to unnamed columns. These are ignored unless the table has one of
    them.
    """
    names = adapter.column_names
    if names is None or (adapter.generates_names and not any(name in table.columns for name in names)):
        return None
    return list(names)


def check_numbers(adapter: Adapter, X: Any, table: Table) -> None:
    """Raise InvalidInputError if a column contains text and the model accepts only numbers."""
    if adapter.accepts_text or not hasattr(X, "columns"):
        return
    for name in X.columns:
        texts = enumerate(X[name]) if X[name].dtype.kind == "O" else ()
        for row, text in texts:
            if not _is_number(text):
                raise InvalidInputError(
                    f"Column {name!r} of {table.name} contains text, {text!r} in row {row + 1}. A "
                    f"{type(adapter.model).__name__} needs numbers. Fix the rows, encode the column as for training, "
                    "or pass a pipeline that encodes it."
                )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def load_adapter(file: Path, trust: bool) -> Adapter:
    """Load a model and return its adapter."""
    from secateur.files.models import load_model

    return adapt(load_model(file, trust=trust))


def check_names(solver: str, loss: str | None, cost: str | None) -> None:
    """Raise InvalidInputError unless the names of solver, loss and cost are known; no file is read."""
    _check_name("--solver", solver, ("auto", *names_in("solvers")))
    _check_name("--loss", None if loss is None else loss.partition(":")[0], loss_names())
    _check_name("--cost", cost, names_in("costs"))


def check_scoring(scoring: str | None, max_score_drop: float | None = None) -> None:
    """Raise InvalidInputError unless the name of a scorer is known, and given if its drop is limited."""
    if scoring is not None:
        from secateur.path.scoring import scoring_of

        scoring_of(scoring)
    elif max_score_drop is not None:
        raise InvalidInputError(
            f"--max-score-drop {max_score_drop:g} limits the drop of a score, but no metric was given. Pass its name "
            "with --scoring, or limit the loss with --max-loss-increase."
        )


def check_can_measure(validation: str | None, scoring: str | None, tolerance: float) -> None:
    """Raise InvalidInputError if something is to be measured, but there are no validation rows."""
    if validation is None and (scoring is not None or tolerance):
        given = "--scoring" if scoring is not None else "--tolerance"
        raise InvalidInputError(
            f"{given} was given without validation rows, and a path is measured on these. Pass --validation."
        )


def _check_name(option: str, name: str | None, known: Sequence[str]) -> None:
    if name is None or name in known or len(known) < 2:
        return
    similar = get_close_matches(name, known, 1)
    remedy = f"Did you mean {similar[0]}?" if similar else "Use one of these."
    raise InvalidInputError(f"{option} {name} is unknown. The known names are {', '.join(known)}. {remedy}")


def read_validation(text: str | None, columns: ModelColumns) -> Any:
    """Convert --validation, which is a fraction, a keyword or a data file, to the `validation` argument of the API."""
    if text in (None, "auto"):
        return "auto"
    if text == "none":
        return None
    if text in VALIDATIONS:
        return text
    try:
        fraction = float(text)
    except ValueError:
        fraction = None
    if fraction is None:
        if "." not in text and not Path(text).exists():
            raise InvalidInputError(
                f"--validation {text} is neither a fraction such as 0.25, nor a data file, nor one of "
                f"{', '.join(VALIDATIONS)}. Use one of these."
            )
        return columns.rows(read_table(text))
    if not 0.0 < fraction < 1.0:
        raise InvalidInputError(
            f"--validation {text} is not a fraction of the rows: use a number between 0 and 1. Try 0.25."
        )
    return fraction


def read_costs(name: str | None, prices: Path | None) -> Any:
    """Convert --cost and --costs to the `cost` argument of the API: a name, or a FeatureCost."""
    if prices is None:
        return name
    if name not in (None, "features"):
        raise InvalidInputError(
            f"--costs and --cost {name} were both given. --costs implies the cost features. Leave out one of them."
        )
    from secateur.costs import FeatureCost

    if not prices.is_file():
        raise FileNotFoundError(f"There is no file {prices}. --costs needs a file of feature prices. Check the name.")
    return FeatureCost(prices)


def digest(file: Path) -> str:
    """Return the SHA-256 digest of a file; for a folder, that of the names and digests of its files."""
    if file.is_dir():
        parts = [f"{path.relative_to(file)} {digest(path)}" for path in sorted(file.rglob("*")) if path.is_file()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def model_of(path: "PruningPath", file: Path, other: Path | None) -> Path:
    """Return the model file of a saved path: `other` if given, else the recorded file, verified by its digest.

    Raises
    ------
    FileNotFoundError
        If the recorded file does not exist.
    InvalidInputError
        If the recorded file has changed, or none was recorded.
    """
    if other is not None:
        return other
    if path.info.model_file is None:
        raise InvalidInputError(f"{file} does not record its model file, which is needed. Pass it with --model.")
    model = Path(path.info.model_file)
    if not model.exists():
        raise FileNotFoundError(
            f"The model file {model}, from which {file} was computed, does not exist. If it was moved, pass it with "
            "--model."
        )
    if digest(model) != path.info.model_sha256:
        raise InvalidInputError(
            f"{model} has changed since {file} was computed from it. Compute the path again, or pass an unchanged copy "
            "of the model with --model."
        )
    return model


def named_point(path: "PruningPath", point: int | None, limits: Mapping[str, float | None]) -> "Pruned":
    """Return the point with the given number, or the one selected by the limits.

    Raises
    ------
    InvalidInputError
        If both a point and limits are given, or the point does not exist.
    """
    check_choice(path, point, limits)
    return path.select(**limits) if point is None else path[point]  # type: ignore[arg-type]


def check_choice(path: "PruningPath", point: int | None, limits: Mapping[str, float | None]) -> None:
    """Raise InvalidInputError if both a point and limits are given, or the point does not exist."""
    if point is None:
        return
    given = [f"--{name.replace('_', '-')}" for name, limit in limits.items() if limit is not None]
    if given:
        raise InvalidInputError(
            f"--point and {' and '.join(given)} were both given, and each chooses a point. Leave out one of them."
        )
    if not 0 <= point < len(path):
        raise InvalidInputError(
            f"--point {point} does not exist. The path has points 0 to {len(path) - 1}. Use one of these."
        )


def report_path(file: Path, model: Path | None, trust: bool) -> "PruningPath":
    """Load a saved path with its model; if the model cannot be loaded, warn and load the path without it.

    A report does not require the model. Without it, bytes and times are those of secateur's own format, and classes are
    numbers.
    """
    from secateur.path import Path as PruningPath

    path = PruningPath.load(file)
    try:
        return PruningPath.load(file, load_adapter(model_of(path, file, model), trust))
    except (OSError, ValueError) as error:
        if model is not None:
            raise
        message = "The report is written without the model, so sizes in bytes are those of secateur's own format."
        warnings.warn(f"{error} {message}", stacklevel=2)
    return path


def report_rows(
    path: "PruningPath", data: Path | None, target: str | None, weights: str | None, costs: Path | None
) -> dict[str, Any]:
    """Return the keyword arguments of the API's `report` that concern rows and prices."""
    if costs is not None and data is None:
        raise InvalidInputError(
            "--costs was given without rows. The cost depends on the features each row needs. Pass rows with --data."
        )
    if data is None:
        return {}
    table = read_table(data)
    if target is None:
        X, _ = table.split(None, feature_names(path.source, table))
        return {"X": X, "cost": read_costs(None, costs)}
    X, y, weight = ModelColumns(path.source, target, weights).rows(table)
    return {"X": X, "y": y, "sample_weight": weight, "cost": read_costs(None, costs)}
