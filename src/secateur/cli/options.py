"""Define the arguments and options shared by the commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from secateur.cli import completion

_LIMITS = "Limits"


def limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command that are limits, which start with `max_`."""
    return {name: value for name, value in given.items() if name.startswith("max_")}


def _file(name: str, text: str) -> typer.models.ArgumentInfo:
    return typer.Argument(metavar=name, help=text, show_default=False)


def _limit(text: str, least: float | None = None) -> typer.models.OptionInfo:
    return typer.Option(help=text, show_default=False, rich_help_panel=_LIMITS, min=least)


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

Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column to predict.", show_default=False, autocompletion=completion.columns
    ),
]
Regrow = Annotated[
    bool,
    typer.Option("--regrow", help="With --costs: also train clones of the model on fewer features, and prune those."),
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="A column of row weights.", show_default=False, autocompletion=completion.columns
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="How prunings are searched, such as weakest_link.", autocompletion=completion.solvers
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How errors count, such as log_loss; default: as usual for the model.",
        show_default=False,
        autocompletion=completion.losses,
    ),
]
Cost = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What is paid for, such as leaves; default: nodes.",
        show_default=False,
        autocompletion=completion.costs,
    ),
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
        autocompletion=completion.validations,
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
        autocompletion=completion.validations,
    ),
]

MaxNodes = Annotated[int | None, _limit("Nodes, leaves included.", 1)]
MaxLeaves = Annotated[int | None, _limit("Leaves.", 1)]
MaxTrees = Annotated[int | None, _limit("Trees.", 0)]
MaxDepth = Annotated[int | None, _limit("Splits on the longest way down.", 0)]
MaxFeatures = Annotated[int | None, _limit("Features some split looks at.", 0)]
MaxCost = Annotated[float | None, _limit("Cost, in the unit of --cost or --costs.")]
MaxBytes = Annotated[int | None, _limit("Bytes of the saved model.", 1)]
MaxLossIncrease = Annotated[
    float | None, _limit("Take the cheapest pruning whose loss grows by at most this share, such as 0.01.")
]
Point = Annotated[
    int | None,
    typer.Option(metavar="N", help="Take this very point of the path, whatever its loss.", show_default=False),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Draws the rows to choose by, where they are drawn.")]

Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also write a page (.html) of all prunings to choose from.", show_default=False),
]
SavePath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Also save the path (.npz), to select other points from.", show_default=False),
]
ReportRows = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DATA",
        help="Rows, best unseen ones: shows calibration, time per prediction and, with --costs, what rows cost.",
        show_default=False,
    ),
]
Baselines = Annotated[
    list[Path] | None,
    typer.Option("--baseline", metavar="PATH", help="Another path to draw beside it; may be given again."),
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
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no results but those of --json, and no progress; warnings stay.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
