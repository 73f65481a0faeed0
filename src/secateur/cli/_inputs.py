"""Read models, data, prices and paths from the files named on the command line, and convert them for the API."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur._util.text import quoted
from secateur.cli.completion import VALIDATIONS, names_in
from secateur.data.tables import Table, read_table
from secateur.libraries import adapt

if TYPE_CHECKING:
    from secateur.path import Path as PruningPath
    from secateur.path import Pruned


@dataclass(frozen=True)
class ModelColumns:
    """Roles of the columns of a data file for a model.

    Attributes
    ----------
    model : fitted model
    target : str or None
        The column to predict; None only for unsupervised models.
    weights : str or None
        The column of row weights.
    """

    model: Any
    target: str | None
    weights: str | None = None

    def rows(self, table: Table) -> tuple[Any, Any, Any]:
        """Return (X, y, sample_weight) from the columns of a table."""
        if self.target is None and adapt(self.model).supervised:
            raise ValueError(
                f"--target is missing; this {type(self.model).__name__} predicts a column. Name it: {table.name} has "
                f"{quoted(list(table.columns)[-10:])}."
            )
        X, y = table.split(
            self.target,
            feature_names(self.model, table),
            classes=getattr(self.model, "classes_", None),
            drop=[] if self.weights is None else [self.weights],
        )
        check_numbers(self.model, X, table)
        return X, y, None if self.weights is None else table.numbers(self.weights)


def feature_names(model: Any, table: Table) -> list[str] | None:
    """Return the names of the columns a model was trained on; None if unknown, so that columns are taken in order.

    Libraries give generated names, such as Column_0, to unnamed columns. These are ignored unless the table has one of
    them.
    """
    names = getattr(model, "feature_names_in_", None)
    adapter = adapt(model)
    if names is None and not hasattr(adapter, "inner"):
        names = getattr(model, "feature_names_", None) or adapter.forest.feature_names
    if names is None:
        return None
    made_up = adapter.library != "sklearn" and not any(name in table.columns for name in names)
    return None if made_up else [str(name) for name in names]


def check_numbers(model: Any, X: Any, table: Table) -> None:
    """Raise ValueError if a column holds text and the model accepts only numbers.

    Pipelines encode text, and boosting libraries may know its categories, so these are not checked here.
    """
    adapter = adapt(model)
    if adapter.library != "sklearn" or hasattr(adapter, "inner") or not hasattr(X, "columns"):
        return
    if type(adapter.model).__name__.startswith("Hist"):
        return
    for name in X.columns:
        if X[name].dtype.kind == "O":
            place, text = next((i, value) for i, value in enumerate(X[name]) if not _is_number(value))
            raise ValueError(
                f"The column {name!r} of {table.name} holds text, {text!r} in row {place + 1}; this "
                f"{type(model).__name__} needs numbers. Mend the rows, encode the column as it was for training, or "
                "pass the whole pipeline."
            )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def load_columns(model: Path, target: str | None, weights: str | None, trust: bool) -> ModelColumns:
    """Load a model, and return it with the column roles of its data files."""
    from secateur.files.models import load_model

    return ModelColumns(load_model(model, trust=trust), target, weights)


def check_words(solver: str, loss: str | None, cost: str | None) -> None:
    """Raise ValueError unless the names of solver, loss and cost are known; no file has to be read for this."""
    _check_word("--solver", solver, ("auto", *names_in("solvers")))
    _check_word("--loss", None if loss is None else loss.partition(":")[0], names_in("losses"))
    _check_word("--cost", cost, names_in("costs"))


def _check_word(option: str, word: str | None, known: Sequence[str]) -> None:
    if word is None or word in known or len(known) < 2:
        return
    near = get_close_matches(word, known, 1)
    remedy = f"Did you mean {near[0]}?" if near else "Use one of these."
    raise ValueError(f"{option} {word} is unknown; known are {', '.join(known)}. {remedy}")


def read_validation(text: str | None, columns: ModelColumns) -> Any:
    """Convert --validation, which is a share, a keyword or a data file, to the `validation` argument of the API."""
    if text in (None, "auto"):
        return "auto"
    if text == "none":
        return None
    if text in VALIDATIONS:
        return text
    try:
        share = float(text)
    except ValueError:
        share = None
    if share is None:
        if "." not in text and not Path(text).exists():
            raise ValueError(
                f"--validation {text} is neither a share such as 0.25, nor a data file, nor one of "
                f"{', '.join(VALIDATIONS)}. Use one of these."
            )
        return columns.rows(read_table(text))
    if not 0.0 < share < 1.0:
        raise ValueError(f"--validation {text} is no share of the rows; it must be between 0 and 1. Try 0.25.")
    return share


def read_costs(name: str | None, prices: Path | None) -> Any:
    """Convert --cost and --costs to the `cost` argument of the API: a name, or a FeatureCost."""
    if prices is None:
        return name
    if name not in (None, "features"):
        raise ValueError(f"--costs gives prices of features, but --cost is {name}. Leave out one of them.")
    from secateur.costs import FeatureCost

    if not prices.is_file():
        raise FileNotFoundError(f"There is no file {prices}; --costs needs a list of prices. Check the name.")
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
    ValueError
        If the recorded file has changed, or none was recorded.
    """
    if other is not None:
        return other
    if "model_file" not in path.facts:
        raise ValueError(f"{file} does not say which model it was made from. Name the model with --model.")
    model = Path(path.facts["model_file"])
    if not model.exists():
        raise FileNotFoundError(
            f"The model {file} was made from, {model}, is gone. If it has moved, name it with --model."
        )
    if digest(model) != path.facts.get("model_sha256"):
        raise ValueError(
            f"{model} has changed since {file} was made from it. Make the path again, or name an unchanged copy of "
            "the model with --model."
        )
    return model


def named_point(path: "PruningPath", point: int | None, limits: Mapping[str, float | None]) -> "Pruned":
    """Return the point with the given number, or the one selected by the limits.

    Raises
    ------
    ValueError
        If both a point and limits are given, or the point does not exist.
    """
    check_choice(path, point, limits)
    return path.select(**limits) if point is None else path[point]  # type: ignore[arg-type]


def check_choice(path: "PruningPath", point: int | None, limits: Mapping[str, float | None]) -> None:
    """Raise ValueError if both a point and limits are given, or the point does not exist."""
    if point is None:
        return
    given = [f"--{name.replace('_', '-')}" for name, limit in limits.items() if limit is not None]
    if given:
        raise ValueError(f"--point names a pruning, and {' and '.join(given)} would choose one. Leave out one of them.")
    if not 0 <= point < len(path):
        raise ValueError(
            f"--point {point} is not on the path, which has points 0 to {len(path) - 1}. Name one of these."
        )


def report_path(file: Path, model: Path | None, trust: bool) -> "PruningPath":
    """Load a saved path with its model; if the model cannot be loaded, warn and load the path without it.

    A report does not require the model. Without it, bytes and times are those of secateur's own format, and classes are
    numbers.
    """
    from secateur.files.models import load_model
    from secateur.path import Path as PruningPath

    path = PruningPath.load(file)
    try:
        return PruningPath.load(file, load_model(model_of(path, file, model), trust=trust))
    except (OSError, ValueError) as error:
        if model is not None:
            raise
        warnings.warn(f"{error} The report is made without the model: its bytes are not the library's.", stacklevel=2)
    return path


def report_rows(
    path: "PruningPath", data: Path | None, target: str | None, weights: str | None, costs: Path | None
) -> dict[str, Any]:
    """Return the keyword arguments of the API's `report` that concern rows and prices."""
    if costs is not None and data is None:
        raise ValueError("--costs needs rows: what features cost depends on which a row needs. Name some with --data.")
    if data is None:
        return {}
    columns = ModelColumns(path.source.model, target, weights)
    table = read_table(data)
    if target is None:
        X, _ = table.split(None, feature_names(path.source.model, table))
        return {"X": X, "cost": read_costs(None, costs)}
    X, y, weight = columns.rows(table)
    return {"X": X, "y": y, "sample_weight": weight, "cost": read_costs(None, costs)}
