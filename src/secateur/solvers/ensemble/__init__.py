"""Prune all trees together by block coordinate descent on the ensemble's loss."""
