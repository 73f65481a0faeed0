"""Check model files without loading them into their library: what they are, whether they are valid, what they run."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path

from secateur.files.check.file_report import NOTHING, FileReport, failed

__all__ = ["CHECKS", "FileReport", "check_file"]


@dataclass(frozen=True)
class Check:
    """Describe how files of one suffix are checked.

    Attributes
    ----------
    function : str
        "module:name" of `check(file, report)`, which returns the report with what it found, or raises an error.
    format : str
        The format, as it is shown if the file cannot be read.
    library : str or None
        The library of the models.
    runs : str
        What loading runs, as it is shown if the file cannot be read.
    """

    function: str
    format: str
    library: str | None = None
    runs: str = NOTHING

    def run(self, file: Path, report: FileReport) -> FileReport:
        """Check a file."""
        module, _, name = self.function.partition(":")
        check: Callable[[Path, FileReport], FileReport] = getattr(import_module(f"secateur.files.check.{module}"), name)
        return check(file, report)


_ANY_CODE = "any code that it contains"
_PICKLE = Check("pickle_files:check_pickle", "pickle", runs=_ANY_CODE)

CHECKS: dict[str, Check] = {
    ".skops": Check("skops_types:check_skops", "skops", "scikit-learn", "constructors of the types that it names"),
    ".joblib": _PICKLE,
    ".pkl": _PICKLE,
    ".pickle": _PICKLE,
    ".json": Check("tree_files:check_json", "JSON"),
    ".ubj": Check("tree_files:check_xgboost", "XGBoost UBJSON", "xgboost"),
    ".txt": Check("tree_files:check_lightgbm", "LightGBM text", "lightgbm"),
    ".cbm": Check("tree_files:check_cbm", "CatBoost binary", "catboost"),
    ".onnx": Check("onnx_file:check_onnx", "ONNX"),
    ".secateur": Check("tree_files:check_secateur", "secateur forest", "secateur"),
    ".npz": Check("tree_files:check_path", "secateur path", "secateur"),
}
"""The check of each suffix. Spark saves folders, which need no suffix."""

_FAILURES = (ValueError, ImportError, MemoryError, TypeError, LookupError, ArithmeticError, RecursionError)
"""What readers raise for damaged content; an OSError says that the file cannot be opened."""

_COMPRESSIONS = (".z", ".gz", ".bz2", ".xz", ".lzma", ".lz4")

_FOLDER = Check("tree_files:check_spark", "Spark ML folder", "pyspark")


def check_file(file: str | PathLike[str]) -> FileReport:
    r"""Check a model file without loading it into its library, and without executing anything in it.

    Every index, shape and number of a model that secateur can read is checked by its own readers. For a pickle, the
    instructions are listed, never executed.

    Parameters
    ----------
    file : path
        A file with a suffix in `CHECKS`, or a folder saved by Spark.

    Returns
    -------
    FileReport
        What the file is, whether it is valid, and what it would run when loaded. A damaged or unsupported file gives
        a report, too.

    Raises
    ------
    OSError
        If the file does not exist or cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import secateur as sc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "model.pkl")
    ...     _ = file.write_bytes(b"cos\nsystem\n(Vecho harmless\ntR.")
    ...     report = sc.check_file(file)
    >>> report.status, report.unknown
    ('runs code', ('os.system',))
    """
    source = Path(file)
    _check_exists(source)
    check = _FOLDER if source.is_dir() else CHECKS.get(_suffix(source))
    if check is None:
        return FileReport(str(source), "unsupported", runs="not known", problem=_unknown_suffix(source))
    report = FileReport(str(source), format=check.format, library=check.library, runs=check.runs)
    try:
        return check.run(source, report)
    except _FAILURES as error:
        return failed(report, error)


def _suffix(source: Path) -> str:
    """Return the suffix that determines the check; a second one may say how joblib has compressed a pickle."""
    suffixes = [suffix.lower() for suffix in source.suffixes[-2:]]
    if len(suffixes) == 2 and suffixes[1] in _COMPRESSIONS and CHECKS.get(suffixes[0]) is _PICKLE:
        return suffixes[0]
    return suffixes[-1] if suffixes else ""


def _check_exists(source: Path) -> None:
    """Raise OSError unless a file, or a folder, can be opened."""
    if not source.exists():
        raise FileNotFoundError(f"There is no file {source}; a model file is needed. Check the name.")
    if not source.is_dir():
        with source.open("rb"):
            pass


def _unknown_suffix(source: Path) -> str:
    found = f"the suffix {source.suffix}" if source.suffix else "no suffix"
    return (
        f"{source} has {found}; a model file ends in {', '.join(CHECKS)}, and a Spark model is a folder. Rename it if "
        "it is one of these."
    )
