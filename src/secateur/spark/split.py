"""A share of a DataFrame's rows, drawn by what is in them: the same in any partitioning and at every attempt."""

from collections.abc import Sequence
from typing import Any

from secateur.spark.frame_columns import carried

_FINE = 2**31
"""In how many pieces rows are cut by their hash."""


def by_content(frame: Any, names: Sequence[str], share: float, seed: int) -> tuple[Any, Any]:
    """Return the rows without a share of them, and that share; rows that are equal in these columns stay together.

    Raises
    ------
    ValueError
        If the share is none.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not 0 < share < 1:
        raise ValueError(f"A share of {share:g} was asked for; it must lie between 0 and 1. Use 0.25, say.")
    piece = F.pmod(F.xxhash64(F.lit(seed), *(carried(frame, name) for name in names)), F.lit(_FINE))
    cut = F.lit(round(share * _FINE))
    return frame.filter(piece >= cut), frame.filter(piece < cut)
