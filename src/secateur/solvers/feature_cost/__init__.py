"""Prune by the trade-off between prediction error and the cost of the features a row needs."""
