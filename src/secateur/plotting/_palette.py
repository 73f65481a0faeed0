"""Colours and axes that all pictures share; matplotlib is imported here, when the first picture is drawn."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("#2b87c8", "#e08a1e", "#17a078", "#b065b5", "#8a7a3d", "#5f6fd0")
"""Of middle lightness, for light and dark backgrounds, and apart for the colour-blind; the first is the path's own."""

CHOSEN = "#d55e00"
GREY = "#8f8f8f"


def new_axes(width: float = 7.0, height: float = 4.3) -> "Axes":
    """Return the axes of a new figure, of a size in inches.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plot needs matplotlib, which is not installed. Run: pip install 'secateur[plot]'."
        ) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
