"""Define the colours and create the axes that all plots share; matplotlib is imported on first use."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = ("#2b87c8", "#e08a1e", "#17a078", "#b065b5", "#8a7a3d", "#5f6fd0")
"""Line colours; the first is that of the path.

They have medium lightness, for light and dark backgrounds, and can be distinguished with colour vision deficiency.
"""

CHOSEN = "#d55e00"
GREY = "#8f8f8f"


def new_axes(width: float = 7.0, height: float = 4.3) -> "Axes":
    """Return the axes of a new figure of the given size in inches.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plotting needs matplotlib, which is not installed. Run: pip install 'secateur[plot]'."
        ) from error
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]
