"""Pruning where the rows live in a Spark cluster: executors route them, and only sums come to the driver."""
