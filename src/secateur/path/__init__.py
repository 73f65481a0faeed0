"""The trade-off curve: decisions from the unpruned forest to the most pruned, their table, and a chosen point."""

from secateur.forest.masks import Masks, NestedMasks, PackedMasks
from secateur.path.path import Path
from secateur.path.pruned import Pruned
from secateur.problem import Progress

__all__ = ["Masks", "NestedMasks", "PackedMasks", "Path", "Progress", "Pruned"]
