"""Kernels of `secateur.solvers.whole_trees`."""
