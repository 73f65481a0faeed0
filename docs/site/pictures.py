"""Make the committed pictures of the documentation: python docs/site/pictures.py [NAME ...], from the project root.

Every `examples/plot_<name>.py` is run without a display. Its first figure becomes `docs/methods/pictures/<name>.png`
if a solver has that name; all others become `docs/gallery/<name>_<number>.png`. With names, only those examples are
run.
"""

import io
import logging
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.figure import Figure
from PIL import Image

from secateur.solvers import SOLVERS

ROOT = Path(__file__).parents[2]
METHODS = ROOT / "docs" / "methods" / "pictures"
GALLERY = ROOT / "docs" / "gallery"
COLOURS = 64
WIDEST = 1300  # pixels


def main(names: list[str]) -> None:
    """Run the examples and write their pictures."""
    for script in sorted((ROOT / "examples").glob("plot_*.py")):
        name = script.stem.removeprefix("plot_")
        if names and name not in names:
            continue
        runpy.run_path(str(script), run_name="__main__")
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        for file, figure in zip(files(name, len(figures)), figures, strict=True):
            write(figure, file)
            logging.info("%s, %d bytes", file.relative_to(ROOT), file.stat().st_size)
        pyplot.close("all")


def files(name: str, n_figures: int) -> list[Path]:
    """Return the file of each figure of an example."""
    numbered = [GALLERY / f"{name}_{number}.png" for number in range(1, n_figures + 1)]
    return [METHODS / f"{name}.png", *numbered[1:]] if name in SOLVERS else numbered


def write(figure: Figure, file: Path) -> None:
    """Write a figure as a small PNG with few colours and a white background."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=min(110, WIDEST / figure.get_figwidth()), facecolor="white")
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(sys.argv[1:])
