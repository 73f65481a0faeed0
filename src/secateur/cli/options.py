"""Define the arguments and options shared by the commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from secateur.cli import completion

_LIMITS = "Limits"


def limits(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that are limits, which start with `max_`."""
    return {name: value for name, value in arguments.items() if name.startswith("max_")}


def _file(name: str, text: str) -> typer.models.ArgumentInfo:
    return typer.Argument(metavar=name, help=text, show_default=False)


def _limit(text: str, minimum: float | None = None) -> typer.models.OptionInfo:
    return typer.Option(help=text, show_default=False, rich_help_panel=_LIMITS, min=minimum)


Model = Annotated[
    Path,
    _file(
        "MODEL",
        "Trained model: .skops, .json, .ubj, .txt, .cbm, .secateur, or a folder saved by Spark. "
        ".joblib and .pkl files need --trust.",
    ),
]
Data = Annotated[Path, _file("DATA", "Rows to prune with, ideally not the training rows: .csv, .csv.gz or .parquet.")]
OptionalData = Annotated[
    Path | None, _file("[DATA]", "Rows for which to count the features needed: .csv, .csv.gz or .parquet.")
]
PathFile = Annotated[Path, _file("PATH", "A path saved by `secateur path` or by `secateur prune --save-path`.")]

Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Name of the target column.", show_default=False, autocompletion=completion.columns
    ),
]
Regrow = Annotated[
    bool,
    typer.Option("--regrow", help="With --costs: also train clones of the model on fewer features, and prune them."),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Name of the column of sample weights.",
        show_default=False,
        autocompletion=completion.columns,
    ),
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
    typer.Option(
        metavar="NAME",
        help="Loss function, such as log_loss. Default: chosen from the type of the model.",
        show_default=False,
        autocompletion=completion.losses,
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Cost to reduce, such as leaves. Default: nodes.",
        show_default=False,
        autocompletion=completion.costs,
    ),
]
Costs = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Feature prices: a .csv or .parquet file with the columns feature and cost, and optionally group and "
        "discount_cost. The cost is then the mean price per row; a row pays once for each feature it needs.",
        show_default=False,
    ),
]
ValidationForChoice = Annotated[
    str | None,
    typer.Option(
        "--validation",
        metavar="FRACTION|FILE|oob|refit|cv",
        help="Validation rows, used to choose the pruning: a fraction of DATA, another data file, oob (out-of-bag "
        "rows), refit (a quarter of DATA, with a clone refitted on the rest), cv (cross-validation with refitted "
        "clones), or none (DATA itself). Default: 0.25; cv or refit (oob with some solvers) if DATA are the training "
        "rows.",
        show_default=False,
        autocompletion=completion.validations,
    ),
]
ValidationForLoss = Annotated[
    str | None,
    typer.Option(
        "--validation",
        metavar="FRACTION|FILE|oob|refit|cv",
        help="Validation rows, used to measure the loss: a fraction of DATA, another data file, oob (out-of-bag "
        "rows), refit (a quarter of DATA, with a clone refitted on the rest), cv (cross-validation with refitted "
        "clones), or none (DATA itself). Default: the loss is not measured.",
        show_default=False,
        autocompletion=completion.validations,
    ),
]

MaxNodes = Annotated[int | None, _limit("Maximum number of nodes, including leaves.", 1)]
MaxLeaves = Annotated[int | None, _limit("Maximum number of leaves.", 1)]
MaxTrees = Annotated[int | None, _limit("Maximum number of trees.", 0)]
MaxDepth = Annotated[int | None, _limit("Maximum number of splits between a root and a leaf.", 0)]
MaxFeatures = Annotated[int | None, _limit("Maximum number of features used by splits.", 0)]
MaxCost = Annotated[float | None, _limit("Maximum cost, in the unit of --cost or --costs.")]
MaxBytes = Annotated[int | None, _limit("Maximum size of the saved model in bytes.", 1)]
MaxLossIncrease = Annotated[
    float | None, _limit("Choose the cheapest pruning whose loss increases by at most this fraction, such as 0.01.")
]
Point = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of the point to choose. It excludes limits.", show_default=False),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Random seed for drawing validation rows.")]

Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write an HTML report of all points of the path.", show_default=False),
]
SavePath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also save the path (.npz), to select other points later.", show_default=False),
]
ReportRows = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DATA",
        help="Rows, ideally not used before: adds calibration, prediction time and, with --costs, the cost of rows.",
        show_default=False,
    ),
]
Baselines = Annotated[
    list[Path] | None,
    typer.Option("--baseline", metavar="PATH", help="Another path to plot for comparison. Can be repeated."),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Output file.", show_default=False)]
OutFolder = Annotated[
    Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the pruned model and the report.")
]
OtherModel = Annotated[
    Path | None,
    typer.Option("--model", metavar="MODEL", help="Model file of the path, if it was moved.", show_default=False),
]
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
