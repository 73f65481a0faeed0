"""Write the files that commands need: a model and rows."""

from pathlib import Path

import numpy as np
from tests.hardening.faults.outputs import small_forest

from secateur.files.models import save_model


def command_files(folder: Path) -> list[str]:
    """Write a model and rows to a folder, and return the arguments of a command that name them."""
    model, X, y = small_forest()
    save_model(model, folder / "model.skops", force=True)
    header = ",".join([*(f"x{k}" for k in range(X.shape[1])), "y"])
    np.savetxt(folder / "rows.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="")
    return [str(folder / "model.skops"), str(folder / "rows.csv"), "--target", "y"]
