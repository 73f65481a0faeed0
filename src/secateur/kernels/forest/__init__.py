"""Compile the inner loops of `secateur.forest`."""
