"""Kernels of `secateur.solvers.node_weights`."""
