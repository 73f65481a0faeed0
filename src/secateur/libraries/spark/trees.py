"""Convert a saved Spark model to a Forest."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secateur.forest import Forest, check_forest
from secateur.libraries.spark.arrow import Floats, Ints
from secateur.libraries.spark.read_nodes import NodeTable, tree_columns
from secateur.libraries.spark.saved_model import SavedModel, damaged
from secateur.libraries.spark.splits import categories, check_features, thresholds


def read_forest(saved: SavedModel, nodes: NodeTable) -> Forest:
    """Return the mean of the trees, or for boosting their weighted sum."""
    kind, has_class_weights = saved.kind, saved.keeps_shares
    weight = total_of(nodes.stats) if has_class_weights else nodes.stats[:, 0]
    if (weight < 0).any() or (has_class_weights and (nodes.stats < 0).any()):
        raise damaged("A node has impurityStats below 0, but weights must be non-negative")
    value = class_fractions(nodes.stats) if has_class_weights else nodes.prediction[:, None]
    forest = Forest(
        tree_start=nodes.tree_start,
        right=nodes.right,
        feature=nodes.feature.astype(np.int32),
        threshold=thresholds(nodes),
        default_left=np.zeros(len(nodes.right), bool),
        value=np.ascontiguousarray(value),
        weight=weight,
        tree_weight=_tree_weight(saved, nodes.tree_id),
        tree_output=np.full(len(nodes.tree_id), -1, np.int32),
        base=np.zeros(value.shape[1]),
        link="probability" if has_class_weights else "logit:2" if kind.classes else "identity",
        n_features=saved.metadata["numFeatures"],
        n_classes=(saved.n_classes,) if kind.classes else (),
        aggregation="sum" if kind.boosted else "mean",
        addition="fours" if kind.boosted else "in_order",
        divisor=1.0 if kind.boosted else float(len(nodes.tree_id)),
    )
    lists = categories(nodes)
    if len(lists.row):
        check_features(forest, lists.row)
        # NaN is not a category, so it is routed like an unknown one.
        default_left = (lists.row != -1) & np.append(lists.other_left, False)[lists.row]
        forest = replace(forest, categories=lists, default_left=default_left)
    check_forest(forest)
    return forest


def _tree_weight(saved: SavedModel, found: Ints) -> Floats:
    """Return the weights of the trees, after checking that the tables are consistent."""
    if saved.trees is None:
        if len(found) != 1:
            raise damaged(f"The nodes belong to {len(found)} trees, but the model is a single tree")
        return np.ones(1)
    tree, weight = tree_columns(saved.trees)
    if not np.array_equal(np.sort(tree), found) or saved.metadata["numTrees"] != len(found):
        raise damaged(
            f"The table of nodes has {len(found)} trees, treesMetadata has {len(tree)}, and numTrees is "
            f"{saved.metadata['numTrees']}, but these must be the same trees"
        )
    if not saved.kind.boosted and saved.param("numTrees") != len(found):
        raise damaged(
            f"The parameter numTrees, by which Spark divides the sum over trees, is {saved.param('numTrees')}, but "
            f"there are {len(found)} trees"
        )
    if not np.isfinite(weight).all():
        raise damaged("A tree has a weight that is not finite")
    return weight[np.argsort(tree)] if saved.kind.boosted else np.ones(len(found))


def total_of(stats: NDArray[np.floating]) -> Floats:
    """Return row sums, added column by column in Spark's order."""
    total = np.zeros(len(stats))
    for column in stats.T:
        total = total + column
    return total


def class_fractions(stats: NDArray[np.floating]) -> Floats:
    """Return each row divided by its sum; a row of zeros stays zero."""
    total = total_of(stats)
    return np.asarray(stats / np.where(total == 0, 1.0, total)[:, None], np.float64)
