"""Edit trained models: prune at given nodes, simplify without changing predictions, convert to majority voting."""

from secateur.editing.cutting import prune_nodes
from secateur.editing.lossless import Preserve, simplify
from secateur.editing.views import Condition, NodeView, node_views
from secateur.editing.voting import majority_vote

__all__ = ["Condition", "NodeView", "Preserve", "majority_vote", "node_views", "prune_nodes", "simplify"]
