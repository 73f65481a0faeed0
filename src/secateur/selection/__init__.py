"""Evaluate a path on held-out rows and choose a point: validation, cross-validation, ridge averaging."""
