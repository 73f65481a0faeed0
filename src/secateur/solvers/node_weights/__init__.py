"""Fit a weight for every node: max-heap regularisation and the rule lasso."""
