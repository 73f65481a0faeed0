"""Define the arguments and options shared by the commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from secateur._util.numbers import bytes_of
from secateur.cli import completion
from secateur.errors import InvalidInputError

_LIMITS = "Limits"


def limits(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that are limits, which start with `max_`."""
    return {name: value for name, value in arguments.items() if name.startswith("max_")}


def _size(text: str | None) -> int | None:
    """Return a size such as 5MB as a number of bytes."""
    try:
        return None if text is None else bytes_of("--max-bytes", text)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error)) from error


def _file(name: str, text: str) -> typer.models.ArgumentInfo:
    return typer.Argument(metavar=name, help=text, show_default=False)


def _limit(text: str, minimum: float | None = None) -> typer.models.OptionInfo:
    return typer.Option(help=text, show_default=False, rich_help_panel=_LIMITS, min=minimum)


def _option(metavar: str, text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, **more)


Model = Annotated[
    Path,
    _file(
        "MODEL",
        "Trained model: .skops, .json, .ubj, .txt, .cbm, .secateur, or a folder saved by Spark. "
        ".joblib and .pkl files need --trust.",
    ),
]
CheckedFiles = Annotated[
    list[Path],
    _file(
        "FILE...",
        "Model files (.skops, .joblib, .pkl, .json, .ubj, .txt, .cbm, .onnx, .secateur, .npz) or folders of Spark.",
    ),
]
Data = Annotated[Path, _file("DATA", "Rows to prune with, ideally not the training rows: .csv, .csv.gz or .parquet.")]
OptionalData = Annotated[
    Path | None, _file("[DATA]", "Rows for which to count the features needed: .csv, .csv.gz or .parquet.")
]
PathFile = Annotated[Path, _file("PATH", "A path saved by `secateur path` or by `secateur prune --save-path`.")]

Target = Annotated[str | None, _option("COLUMN", "Name of the target column.", autocompletion=completion.columns)]
Regrow = Annotated[
    bool,
    typer.Option("--regrow", help="With --costs: also train clones of the model on fewer features, and prune them."),
]
Weights = Annotated[
    str | None, _option("COLUMN", "Name of the column of sample weights.", autocompletion=completion.columns)
]
Solver = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Pruning method, such as weakest_link. With auto, it is chosen from the model and the cost.",
        autocompletion=completion.solvers,
    ),
]
Loss = Annotated[
    str | None,
    _option(
        "NAME",
        "Loss function, such as log_loss. Default: chosen from the type of the model.",
        autocompletion=completion.losses,
    ),
]
Scoring = Annotated[
    str | None,
    _option(
        "NAME",
        "Metric by which a pruning is chosen, larger is better: the name of a scorer of scikit-learn, such as "
        "balanced_accuracy. Default: the loss.",
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        metavar="NUMBER", min=0, help="By how much a predicted number must move to count as changed (--max-changed)."
    ),
]
Cost = Annotated[
    str | None, _option("NAME", "Cost to reduce, such as leaves. Default: nodes.", autocompletion=completion.costs)
]
Costs = Annotated[
    Path | None,
    _option(
        "FILE",
        "Feature prices: a .csv or .parquet file with the columns feature and cost, and optionally group and "
        "discount_cost. The cost is then the mean price per row; a row pays once for each feature it needs.",
    ),
]


def _validation(use: str, default: str) -> Any:
    return _option(
        "FRACTION|FILE|oob|refit|cv",
        f"Validation rows, used to {use}: a fraction of DATA, another data file, oob (out-of-bag "
        "rows), refit (a quarter of DATA, with a clone refitted on the rest), cv (cross-validation with refitted "
        f"clones), or none (DATA itself). Default: {default}.",
        "--validation",
        autocompletion=completion.validations,
    )


ValidationForChoice = Annotated[
    str | None,
    _validation("choose the pruning", "0.25; cv or refit (oob with some solvers) if DATA are the training rows"),
]
ValidationForLoss = Annotated[str | None, _validation("measure the loss", "the loss is not measured")]

MaxNodes = Annotated[int | None, _limit("Maximum number of nodes, including leaves.", 1)]
MaxLeaves = Annotated[int | None, _limit("Maximum number of leaves.", 1)]
MaxTrees = Annotated[int | None, _limit("Maximum number of trees.", 0)]
MaxDepth = Annotated[int | None, _limit("Maximum number of splits between a root and a leaf.", 0)]
MaxFeatures = Annotated[int | None, _limit("Maximum number of features used by splits.", 0)]
MaxCost = Annotated[float | None, _limit("Maximum cost, in the unit of --cost or --costs.")]
MaxBytes = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        callback=_size,
        help="Maximum size of the saved model: a number of bytes, or a size such as 500kB or 5MB.",
        show_default=False,
        rich_help_panel=_LIMITS,
    ),
]
MaxLossIncrease = Annotated[
    float | None, _limit("Choose the cheapest pruning whose loss increases by at most this fraction, such as 0.01.")
]
MaxScoreDrop = Annotated[
    float | None, _limit("Choose the cheapest pruning whose score (--scoring) drops by at most this much.", 0)
]
MaxChanged = Annotated[
    float | None, _limit("Choose the cheapest pruning that changes at most this fraction of the predictions.", 0)
]
Confidence = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Keep --max-loss-increase, --max-score-drop and --max-changed in truth with this confidence, such as "
        "0.95, not only on the validation rows.",
        show_default=False,
        min=0,
        max=0.999,
    ),
]
Point = Annotated[int | None, _option("N", "Number of the point to choose. It excludes limits.")]
Jobs = Annotated[
    int | None,
    _option("N", "Number of threads for runs that do not depend on each other; -1 for all cores. Default: 1."),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Random seed for drawing validation rows.")]

Report = Annotated[Path | None, _option("FILE", "Also write an HTML report of all points of the path.")]
SavePath = Annotated[Path | None, _option("FILE", "Also save the path (.npz), to select other points later.")]
ReportRows = Annotated[
    Path | None,
    _option(
        "DATA",
        "Rows, ideally not used before: adds calibration, prediction time and, with --costs, the cost of rows.",
        "--data",
    ),
]
Baselines = Annotated[
    list[Path] | None,
    typer.Option("--baseline", metavar="PATH", help="Another path to plot for comparison. Can be repeated."),
]
Out = Annotated[Path, _option("FILE", "Output file.", "--out", "-o")]
OutFolder = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the pruned model and the report.")
]
OtherModel = Annotated[Path | None, _option("MODEL", "Model file of the path, if it was moved.", "--model")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output files.")]
Trust = Annotated[
    bool, typer.Option("--trust", help="Load MODEL even if its format can run code. Only for files you trust.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print only warnings, errors and the output of --json."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")]
