"""Fuzz every reader of model files with atheris: python -m tests.fuzz FORMAT --seconds N.

`targets` has a function `fuzz_<format>(data)` for each format, and `corpus` the small valid models they start from.
"""
