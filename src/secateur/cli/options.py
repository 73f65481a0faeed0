"""The arguments and options of the commands, each described once."""

from pathlib import Path
from typing import Annotated

import typer

_LIMITS = "Limits"


def _file(name: str, text: str) -> typer.models.ArgumentInfo:
    return typer.Argument(metavar=name, help=text, show_default=False)


def _limit(text: str) -> typer.models.OptionInfo:
    return typer.Option(help=text, show_default=False, rich_help_panel=_LIMITS)


Model = Annotated[
    Path,
    _file(
        "MODEL",
        "A trained model: .skops, .json, .ubj, .txt, .cbm, .secateur or a folder saved by Spark; "
        ".joblib, .pkl with --trust.",
    ),
]
Data = Annotated[Path, _file("DATA", "Rows to judge by, best not those of the training: .csv, .csv.gz or .parquet.")]
SomeData = Annotated[Path | None, _file("[DATA]", "Rows, to show which features they need: .csv or .parquet.")]
PathFile = Annotated[Path, _file("PATH", "A path made by `secateur path`.")]

Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to predict.", show_default=False)]
Regrow = Annotated[
    bool,
    typer.Option("--regrow", help="With --costs: also train clones of the model on fewer features, and prune those."),
]
Weights = Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of row weights.", show_default=False)]
Solver = Annotated[str, typer.Option(metavar="NAME", help="How prunings are searched, such as weakest_link.")]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="How errors count, such as log_loss; default: as usual for the model.", show_default=False
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What is paid for, such as leaves; default: nodes.", show_default=False),
]
Costs = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Prices of features: a .csv or .parquet file with columns feature and cost, and perhaps group and "
        "discount_cost. What is paid for is then the features a row needs, each once.",
        show_default=False,
    ),
]
ChooseBy = Annotated[
    str | None,
    typer.Option(
        "--validation",
        metavar="SHARE|FILE|oob|refit|cv",
        help="Rows to choose by: a share of DATA, another data file, out-of-bag rows, a quarter held out from a "
        "refitted clone, refitted folds, or 'none' for DATA itself; default: 0.25, or cv or refit (for some solvers "
        "oob) if DATA is what the model was trained on.",
        show_default=False,
    ),
]
EvaluateOn = Annotated[
    str | None,
    typer.Option(
        "--validation",
        metavar="SHARE|FILE|oob|refit|cv",
        help="Rows to measure the loss on: a share of DATA, another data file, out-of-bag rows, a quarter held out "
        "from a refitted clone, refitted folds, or 'none' for DATA itself; default: not measured.",
        show_default=False,
    ),
]

MaxNodes = Annotated[int | None, _limit("Nodes, leaves included.")]
MaxLeaves = Annotated[int | None, _limit("Leaves.")]
MaxTrees = Annotated[int | None, _limit("Trees.")]
MaxDepth = Annotated[int | None, _limit("Splits on the longest way down.")]
MaxFeatures = Annotated[int | None, _limit("Features some split looks at.")]
MaxCost = Annotated[float | None, _limit("Cost, in the unit of --cost or --costs.")]
MaxBytes = Annotated[int | None, _limit("Bytes of the saved model.")]
MaxLossIncrease = Annotated[
    float | None, _limit("Take the cheapest pruning whose loss grows by at most this share, such as 0.01.")
]

Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the result goes.", show_default=False)]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder the pruned model goes to.")]
OtherModel = Annotated[
    Path | None,
    typer.Option("--model", metavar="MODEL", help="The model of the path, if its file moved.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the result of an earlier call.")]
Trust = Annotated[bool, typer.Option("--trust", help="Load MODEL even if that can run code; only for files you know.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
