"""Measurements of secateur against other ways to do the same work: `python -m benchmarks [table …]`."""
