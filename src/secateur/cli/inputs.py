"""From the files named on the command line to what the API wants."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secateur.io import adapt
from secateur.io.tables import Table, read_table

if TYPE_CHECKING:
    from secateur.path import Path as PruningPath


@dataclass(frozen=True)
class Columns:
    """What the columns of a data file mean to a model.

    Attributes
    ----------
    model : fitted model
    target : str or None
        The column to predict; None only for models that learn without one.
    weights : str or None
        The column of row weights.
    """

    model: Any
    target: str | None
    weights: str | None = None

    def rows(self, table: Table) -> tuple[Any, Any, Any]:
        """Return (X, y, sample_weight)."""
        if self.target is None and adapt(self.model).supervised:
            raise ValueError(
                f"--target is missing; this {type(self.model).__name__} predicts a column. Name it: {table.name} has "
                f"{', '.join(list(table.columns)[-10:])}."
            )
        X, y = table.split(
            self.target,
            feature_names(self.model, table),
            classes=getattr(self.model, "classes_", None),
            drop=[] if self.weights is None else [self.weights],
        )
        return X, y, None if self.weights is None else table.numbers(self.weights)


def feature_names(model: Any, table: Table) -> list[str] | None:
    """Return the columns a model was trained with; None if it does not tell, so that they are taken in their order.

    Libraries give names of their own, such as Column_0, to columns that had none: those are no names of the table's.
    """
    names = getattr(model, "feature_names_in_", None)
    adapter = adapt(model)
    if names is None and not hasattr(adapter, "inner"):
        names = getattr(model, "feature_names_", None) or adapter.forest.feature_names
    if names is None:
        return None
    made_up = adapter.library != "sklearn" and not any(name in table.columns for name in names)
    return None if made_up else [str(name) for name in names]


def read_validation(text: str | None, columns: Columns) -> Any:
    """Return the API's `validation` for what --validation says: a share, a word, or a data file."""
    if text in (None, "auto"):
        return "auto"
    if text in ("oob", "refit", "cv"):
        return text
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return columns.rows(read_table(text))


def read_costs(name: str | None, prices: Path | None) -> Any:
    """Return the API's `cost` for what --cost and --costs say: a name, or prices of features."""
    if prices is None:
        return name
    if name not in (None, "features"):
        raise ValueError(f"--costs gives prices of features, but --cost is {name}. Leave out one of them.")
    from secateur.costs import FeatureCost

    if not prices.is_file():
        raise FileNotFoundError(f"There is no file {prices}; --costs needs a list of prices. Check the name.")
    return FeatureCost(prices)


def digest(file: Path) -> str:
    """Return the sha256 of a file; of a folder, that of the names and the sha256 of its files."""
    if file.is_dir():
        parts = [f"{path.relative_to(file)} {digest(path)}" for path in sorted(file.rglob("*")) if path.is_file()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def model_of(path: "PruningPath", file: Path, other: Path | None) -> Path:
    """Return the file of the model a path was made from, unchanged since, or the other one the user names.

    Raises
    ------
    FileNotFoundError
        If it is not where it was.
    ValueError
        If it has changed, or was never recorded.
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
