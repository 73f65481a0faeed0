"""Slow and obvious versions of what serving does, and sources that keep a record or fail."""

import numpy as np

from secateur.forest.routing import route
from secateur.libraries import adapt


def needs(model, X):
    """Return which features the paths of each row look at, read off leaves and parents, (n_rows, n_features)."""
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
    """Return what a set of columns costs, groups being (price, columns), (n_rows,)."""
    shared = [price * bought[:, columns].any(axis=1) for price, columns in groups]
    return bought @ np.asarray(prices, float) + sum(shared, np.zeros(len(bought)))


class Recorder:
    """A `get` for one row that keeps what it was asked for."""

    def __init__(self, values):
        self.values, self.asked = values, []

    def __call__(self, feature):
        self.asked.append(feature)
        value = self.values[feature]
        if isinstance(value, Exception):
            raise value
        return value

    async def wait(self, feature):
        return self(feature)
