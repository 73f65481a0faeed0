"""Compile the inner loops of `secateur.editing`."""
