"""Prune each tree independently: weakest link, optimal size, and the classical error-based methods."""
