"""Kernels of `secateur.editing`."""
