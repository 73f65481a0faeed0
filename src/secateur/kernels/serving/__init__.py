"""Compile the inner loops of `secateur.serving`."""
