"""Split a DataFrame at random by a hash of row contents, independently of partitioning and retries."""

from collections.abc import Sequence
from typing import Any

from secateur.errors import InvalidInputError
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
        raise InvalidInputError(
            f"The fraction of rows is {share:g}, but must lie between 0 and 1. Pass 0.25, for example."
        )
    piece = F.pmod(F.xxhash64(F.lit(seed), *(carried(frame, name) for name in names)), F.lit(_FINE))
    cut = F.lit(round(share * _FINE))
    return frame.filter(piece >= cut), frame.filter(piece < cut)
