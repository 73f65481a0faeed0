"""Provide helpers that are independent of trees: name registries, printable text, BLAS threads."""
