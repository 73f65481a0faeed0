"""Prune each tree on its own: weakest link, optimal size, and the classical error-based methods."""
