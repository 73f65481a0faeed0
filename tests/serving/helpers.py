"""Provide slow references for serving, and a source that records its requests."""

import numpy as np

from secateur.forest.routing import route
from secateur.libraries import adapt


def needs(model, X):
    """Return the mask of the features on the paths of each row, (n_rows, n_features)."""
    adapter = adapt(model)
    forest, rows = adapter.forest, adapter.rows(X)
    needed = np.zeros((len(rows), forest.n_features), bool)
    everyone = np.arange(len(rows))
    for start, leaves in zip(forest.root, route(forest, rows), strict=True):
        v = forest.parent[start + leaves.astype(np.intp)]
        while (v != -1).any():
            needed[everyone[v != -1], forest.feature[v[v != -1]]] = True
            v = np.where(v == -1, -1, forest.parent[v])
    return needed


def price_of(bought, prices, groups=()):
    """Return the price of the bought columns; groups are pairs (price, columns), (n_rows,)."""
    shared = [price * bought[:, columns].any(axis=1) for price, columns in groups]
    return bought @ np.asarray(prices, float) + sum(shared, np.zeros(len(bought)))


class Recorder:
    """Record the features that are requested for one row."""

    def __init__(self, values):
        self.values, self.requested = values, []

    def __call__(self, feature):
        self.requested.append(feature)
        value = self.values[feature]
        if isinstance(value, Exception):
            raise value
        return value

    async def wait(self, feature):
        return self(feature)
