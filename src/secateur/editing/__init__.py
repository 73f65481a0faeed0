"""Changing a trained model by hand: cut where the user says, or take out what no prediction needs."""

from secateur.editing.cutting import prune_nodes
from secateur.editing.lossless import Preserve, simplify
from secateur.editing.views import Condition, NodeView, node_views

__all__ = ["Condition", "NodeView", "Preserve", "node_views", "prune_nodes", "simplify"]
