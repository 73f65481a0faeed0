"""Compile the inner loops of `secateur.solvers.single_tree`."""
