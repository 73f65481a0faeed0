"""Kernels of `secateur.solvers.ensemble`."""
