"""Measure secateur against other implementations and methods: `python -m benchmarks [table …]`."""
