"""Load and save Spark ML models as Spark stores them, a folder of JSON and Parquet files, without a JVM.

A tree model has `metadata` (one line of JSON), `data` (one row per node) and, for ensembles, `treesMetadata` (one row
per tree). A pipeline stores its stages in folders of the same kind; only the files of its tree model are rewritten.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.errors import DamagedFileError, InvalidInputError
from secateur.files.atomic_folder import replacing_folder
from secateur.files.size_limits import check_unpacked


class Kind(NamedTuple):
    """Describe one of the six kinds of tree models."""

    classes: bool
    ensemble: bool
    boosted: bool


KINDS: dict[str, Kind] = {
    "RandomForestClassificationModel": Kind(classes=True, ensemble=True, boosted=False),
    "RandomForestRegressionModel": Kind(classes=False, ensemble=True, boosted=False),
    "GBTClassificationModel": Kind(classes=True, ensemble=True, boosted=True),
    "GBTRegressionModel": Kind(classes=False, ensemble=True, boosted=True),
    "DecisionTreeClassificationModel": Kind(classes=True, ensemble=False, boosted=False),
    "DecisionTreeRegressionModel": Kind(classes=False, ensemble=False, boosted=False),
}


@dataclass(frozen=True, eq=False)
class SavedModel:
    """Hold a Spark ML model that was saved to a folder.

    Attributes
    ----------
    metadata : dict
        Spark's metadata of the tree model: class, paramMap, numFeatures and so on.
    nodes : pyarrow.Table
        One row per node, as in the files.
    trees : pyarrow.Table or None
        One row per tree; None for a single tree.
    place : str
        The path of the tree model in the folder: "" or, in a pipeline, "stages/1_...".
    others : dict of bytes
        All other files by their path in the folder, without Spark's checksums and marker files.
    """

    metadata: dict[str, Any]
    nodes: pa.Table
    trees: pa.Table | None
    place: str
    others: dict[str, bytes]

    def __repr__(self) -> str:
        inside = f" at {self.place}" if self.place else ""
        return f"SavedModel({self.kind_name}{inside}, {self.nodes.num_rows} nodes)"

    @property
    def kind_name(self) -> str:
        """The class name of the tree model, without its package."""
        return str(self.metadata["class"]).rpartition(".")[2]

    @property
    def kind(self) -> Kind:
        """The kind of the tree model."""
        return KINDS[self.kind_name]

    @property
    def keeps_shares(self) -> bool:
        """Whether nodes store class weights, of which only the fractions affect predictions."""
        return self.kind.classes and not self.kind.boosted

    @property
    def n_classes(self) -> int:
        """The number of classes, 0 for regression."""
        if not self.kind.classes:
            return 0
        return 2 if self.kind.boosted else int(self.metadata["numClasses"])

    def param(self, name: str) -> Any:
        """Return a parameter of the tree model, set or default; None if there is no such parameter."""
        for params in (self.metadata["paramMap"], self.metadata["defaultParamMap"]):
            if name in params:
                return params[name]
        return None

    @classmethod
    def load(cls, directory: str | PathLike[str]) -> "SavedModel":
        """Read a folder that Spark's `model.save` wrote; from a pipeline, read its one tree model.

        Raises
        ------
        FileNotFoundError
            If the folder does not exist.
        DamagedFileError
            If the folder is damaged.
        InvalidInputError
            If the folder does not contain exactly one tree model.
        """
        root = Path(directory)
        if not root.is_dir():
            raise FileNotFoundError(
                f"The folder {root} does not exist. Pass the folder to which Spark saved the model."
            )
        found = [
            path.parent for path in sorted(root.rglob("metadata")) if path.is_dir() and _is_tree_model(path.parent)
        ]
        if len(found) != 1:
            raise InvalidInputError(
                f"{root} contains {len(found)} tree models of Spark ML, but exactly one is needed: "
                f"{', '.join(KINDS)}. Pass the folder of one such model, or of a pipeline that contains one."
            )
        folder = found[0]
        parts = {name: folder / name for name in ("metadata", "data", "treesMetadata")}
        rest = [path for path in _visible(root) if not any(path.is_relative_to(part) for part in parts.values())]
        metadata = _read_metadata(folder)
        return cls(
            metadata=metadata,
            nodes=_read_parquet(parts["data"]),
            trees=_read_parquet(parts["treesMetadata"]) if _kind_of(metadata).ensemble else None,
            place="" if folder == root else folder.relative_to(root).as_posix(),
            others={path.relative_to(root).as_posix(): path.read_bytes() for path in rest},
        )

    def files(self) -> dict[str, bytes]:
        """Return the contents of the folder's files by their path."""
        at = f"{self.place}/" if self.place else ""
        line = json.dumps(self.metadata, separators=(",", ":"), ensure_ascii=False)
        files = {**self.others, f"{at}metadata/part-00000": f"{line}\n".encode()}
        for name, table in (("data", self.nodes), ("treesMetadata", self.trees)):
            if table is not None:
                files[f"{at}{name}/part-00000.snappy.parquet"] = _parquet(table)
        return files

    def save(self, directory: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the folder atomically, and return its path.

        Raises
        ------
        FileExistsError
            If the folder exists and `force` is not set, or if it exists and is not a Spark model.
        """
        target = Path(directory)
        if target.exists() and not (force and (target / "metadata").is_dir()):
            raise FileExistsError(
                f"{target} already exists{' and is not a Spark model' if force else ''}. "
                f"Use another name{'' if force else ', or force=True'}."
            )
        with replacing_folder(target, force=force) as new:
            for name, content in self.files().items():
                file = new / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        return target


def _visible(folder: Path) -> list[Path]:
    """Return the files below a folder, without Spark's checksums and markers, whose names start with "." or "_"."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] not in "._")


def _is_tree_model(folder: Path) -> bool:
    try:
        return str(_read_json(folder).get("class")).rpartition(".")[2] in KINDS
    except DamagedFileError:
        # This is a model with damaged metadata, so the error is relevant.
        if (folder / "data").is_dir():
            raise
        return False


def _kind_of(metadata: dict[str, Any]) -> Kind:
    return KINDS[str(metadata["class"]).rpartition(".")[2]]


def _read_json(folder: Path) -> dict[str, Any]:
    """Return the metadata of a model: the first line of its metadata files."""
    texts = [path.read_bytes() for path in _visible(folder / "metadata")]
    try:
        lines = [line for text in texts for line in text.decode().splitlines() if line.strip()]
        found = json.loads(lines[0])
        # A lone surrogate could be parsed but not be written again.
        json.dumps(found, ensure_ascii=False).encode()
    except (IndexError, ValueError, RecursionError) as error:
        raise damaged(f"{folder / 'metadata'} contains no line of JSON ({type(error).__name__})") from error
    if not isinstance(found, dict):
        raise damaged(f"{folder / 'metadata'} contains a {type(found).__name__}, not a JSON object")
    return found


def _read_metadata(folder: Path) -> dict[str, Any]:
    """Return the checked metadata of a tree model."""
    metadata = _read_json(folder)
    kind = _kind_of(metadata)
    # Spark before 2.4 does not write default parameters.
    metadata.setdefault("defaultParamMap", {})
    for name in ("paramMap", "defaultParamMap"):
        if not isinstance(metadata.get(name), dict):
            raise damaged(f"The metadata in {folder} has no {name}")
    needed = ["numFeatures"] + ["numTrees"] * kind.ensemble + ["numClasses"] * (kind.classes and not kind.boosted)
    for name in needed:
        if type(metadata.get(name)) is not int or not 1 <= metadata[name] < 2**31:
            raise damaged(f"The metadata in {folder} gives {name} as {metadata.get(name)!r}, not as a positive integer")
    thresholds = metadata["paramMap"].get("thresholds")
    if thresholds is not None and not _are_thresholds(thresholds, metadata.get("numClasses", 2)):
        raise damaged(f"The metadata in {folder} gives thresholds as {thresholds!r}, not as one number for each class")
    return metadata


def _are_thresholds(found: Any, n_classes: int) -> bool:
    return isinstance(found, list) and len(found) == n_classes and all(type(t) in (int, float) for t in found)


def _read_parquet(folder: Path) -> pa.Table:
    """Return all rows of a folder of Parquet files."""
    files = [path for path in _visible(folder) if path.suffix == ".parquet"]
    if not files:
        raise damaged(f"{folder} has no Parquet files")
    return _arrow(
        lambda: pa.concat_tables([_rows_of(path) for path in files]).combine_chunks(),
        f"The Parquet files in {folder} cannot be read",
    )


def _rows_of(file: Path) -> pa.Table:
    with pq.ParquetFile(file) as opened:
        unpacked = opened.metadata.num_rows * opened.metadata.num_columns * 8
        check_unpacked(unpacked, file, "If you know where it comes from, load it with Spark and pass the live model.")
        return opened.read()


def _arrow(read: Callable[[], Any], what: str) -> Any:
    """Return the result of `read`; convert every error pyarrow raises on damaged bytes to DamagedFileError."""
    try:
        return read()
    except (pa.ArrowException, OSError, KeyError, IndexError, UnicodeDecodeError, MemoryError) as error:
        text = str(error).strip().splitlines() or [""]
        raise damaged(f"{what} ({type(error).__name__}: {text[0]})") from error


def _parquet(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="snappy", store_schema=False)
    return stream.getvalue()


def damaged(found: str) -> DamagedFileError:
    """Return the error for a folder that Spark would not write."""
    return DamagedFileError(
        f"{found}. secateur needs the folder as Spark's model.save wrote it, but this one is damaged or was changed. "
        "Copy it again, or save the model again."
    )
