"""Kernels of `secateur.serving`."""
