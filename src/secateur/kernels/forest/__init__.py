"""Kernels of `secateur.forest`."""
