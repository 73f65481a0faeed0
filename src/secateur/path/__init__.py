"""Represent the trade-off between loss and cost: a sequence of prunings, their table, and a selected point."""

from secateur.forest.masks import Masks, NestedMasks, PackedMasks
from secateur.path.info import PathInfo
from secateur.path.limits import Limits
from secateur.path.path import Path
from secateur.path.pruned import Pruned
from secateur.problem import Progress

__all__ = ["Limits", "Masks", "NestedMasks", "PackedMasks", "Path", "PathInfo", "Progress", "Pruned"]
