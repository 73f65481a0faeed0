"""Kernels of `secateur.solvers.feature_cost` and `secateur.costs`."""
