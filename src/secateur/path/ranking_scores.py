"""Score rankings: the mean over queries of the normalised discounted cumulative gain (NDCG).

The gain of a row is its relevance y, as in `sklearn.metrics.ndcg_score`, and rows of equal scores share the mean of
their discounts.

References
----------
K. Järvelin and J. Kekäläinen (2002). Cumulated gain-based evaluation of IR techniques. ACM TOIS 20.
F. McSherry and M. Najork (2008). Computing information retrieval performance measures efficiently in the presence of
tied scores. ECIR.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NDCG:
    """Score an estimator by the mean NDCG of the queries, which are the groups.

    `k` is the number of ranks that count, None for all. Queries without relevant rows are left out.
    """

    k: int | None = None

    def __call__(self, estimator: Any, X: Any, y: Any, groups: NDArray[np.intp]) -> float:
        """Return the mean NDCG, NaN if no query has a relevant row."""
        return ndcg(y, estimator.predict(X), groups, self.k)


def ranking_scorer(name: str) -> Callable[..., float] | None:
    """Return the scorer of the name "ndcg" or "ndcg@k", None for other names."""
    kind, _, k = name.partition("@")
    if kind != "ndcg" or not (name == "ndcg" or (k.isdecimal() and int(k) > 0)):
        return None
    return NDCG(int(k) if k else None)


def ndcg(y: ArrayLike, score: ArrayLike, groups: ArrayLike, k: int | None = None) -> float:
    """Return the mean NDCG of groups of rows with relevances `y` and predicted scores.

    Examples
    --------
    >>> y, score = [3, 0, 1, 0, 1], [0.9, 0.8, 0.1, 0.5, 0.4]
    >>> round(ndcg(y, score, groups=[0, 0, 0, 1, 1]), 4)
    0.7974
    """
    y, score = np.asarray(y, np.float64), np.asarray(score, np.float64).reshape(len(np.asarray(y)))
    if (y < 0).any():
        raise ValueError("NDCG needs relevances of at least 0.")
    query = np.unique(np.asarray(groups), return_inverse=True)[1]
    found, best = _gain(y, score, query, k), _gain(y, y, query, k)
    relevant = best > 0
    return float((found[relevant] / best[relevant]).mean()) if relevant.any() else float("nan")


def _gain(y: Floats, score: Floats, query: NDArray[np.intp], k: int | None) -> Floats:
    """Return the discounted cumulative gain of each query."""
    order = np.lexsort((-score, query))
    y, score, query = y[order], score[order], query[order]
    first = np.flatnonzero(np.diff(query, prepend=-1))
    rank = np.arange(len(y)) - first[query]
    discount = 1 / np.log2(rank + 2.0)
    if k is not None:
        discount[rank >= k] = 0.0
    # Rows of one query with equal scores form a block.
    block = np.cumsum((np.diff(score, prepend=np.nan) != 0) | (np.diff(query, prepend=-1) != 0)) - 1
    discount = (np.bincount(block, discount) / np.bincount(block))[block]
    return np.asarray(np.bincount(query, y * discount), np.float64)
