"""Helpers that know nothing of trees: registries of names, printable text, BLAS threads."""
