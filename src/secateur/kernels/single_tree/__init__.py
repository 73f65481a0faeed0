"""Kernels of `secateur.solvers.single_tree`."""
