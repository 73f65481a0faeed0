"""Kernels of `secateur.training`."""
