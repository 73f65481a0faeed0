"""Split a DataFrame at random by a hash of row contents, independently of partitioning and retries."""

from collections.abc import Sequence
from typing import Any

from secateur.spark.frame_columns import carried

_FINE = 2**31
"""Number of hash buckets."""


def by_content(frame: Any, names: Sequence[str], share: float, seed: int) -> tuple[Any, Any]:
    """Split rows at random into the rest and a `share` of them; rows that are equal in these columns stay together.

    Raises
    ------
    ValueError
        If `share` is not between 0 and 1.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if not 0 < share < 1:
        raise ValueError(f"A share of {share:g} was asked for; it must lie between 0 and 1. Use 0.25, say.")
    piece = F.pmod(F.xxhash64(F.lit(seed), *(carried(frame, name) for name in names)), F.lit(_FINE))
    cut = F.lit(round(share * _FINE))
    return frame.filter(piece >= cut), frame.filter(piece < cut)
