"""Convert CatBoost's trees to preorder arrays and back: symmetric trees level by level, others node by node.

A symmetric tree of depth d has d split conditions; bit i of a row's leaf index is 1 if the row fulfils condition i.
Here it is a complete tree with the first condition at the root, so that pruning below a level drops conditions from the
end.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.forest.node_sums import cover_mean
from secateur.forest.subforest import Decision, apply_decision, subforest
from secateur.libraries.catboost.cbm import NO_LEAF, NativeTrees
from secateur.libraries.catboost.flatbuffer import damaged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Preorder:
    """Hold trees in preorder.

    `condition` is -1 at a leaf; `leaf` is a leaf's index in CatBoost's list, -1 at a split.
    """

    tree_start: Ints
    right: NDArray[np.int32]
    condition: NDArray[np.int32]
    leaf: Ints

    @property
    def tree(self) -> Ints:
        """The tree of each node, (n_nodes,)."""
        return np.repeat(np.arange(len(self.tree_start) - 1), np.diff(self.tree_start))


def in_preorder(trees: NativeTrees) -> Preorder:
    """Return CatBoost's trees in preorder."""
    return _symmetric_preorder(trees) if trees.symmetric else _free_preorder(trees)


def values_and_weights(trees: NativeTrees, order: Preorder) -> tuple[Floats, Floats]:
    """Return the value and the cover of each node; splits have the weighted mean and the sum of the leaves below."""
    # A split has leaf index -1, which selects the zeros appended at the end.
    value = np.append(trees.leaf_value, np.zeros((1, trees.leaf_value.shape[1])), axis=0)[order.leaf]
    weight = np.zeros((len(order.leaf), 1))
    if len(trees.leaf_weight):
        weight[:, 0] = np.append(trees.leaf_weight, 0.0)[order.leaf]
    kernels.roll_up(order.right, weight)
    return cover_mean(order.right, value, weight[:, 0]), weight[:, 0]


def pruned_trees(trees: NativeTrees, order: Preorder, forest: Forest, decision: Decision) -> NativeTrees:
    """Return CatBoost's lists of the kept trees; `forest` is the unpruned forest."""
    if not decision.keep.any():
        return _one_zero(trees)
    if trees.symmetric:
        written = _symmetric_lists(trees, forest, decision)
    else:
        pruned = subforest(forest, decision)
        written = _free_lists(pruned, np.where(pruned.is_split, order.condition[decision.keep], -1).astype(np.int32))
    if len(trees.leaf_weight):
        return written
    return replace(written, leaf_weight=np.empty(0))


def _one_zero(trees: NativeTrees) -> NativeTrees:
    """Return a single leaf with value 0: CatBoost cannot predict with a model without trees."""
    return NativeTrees(
        size=np.zeros(1, np.int32),
        split=np.empty(0, np.int32),
        leaf_value=np.zeros((1, trees.leaf_value.shape[1])),
        leaf_weight=np.zeros(min(len(trees.leaf_weight), 1)),
        step=np.empty((0, 2), np.uint16),
        leaf_id=np.empty(0, np.uint32),
    )


def _symmetric_preorder(trees: NativeTrees) -> Preorder:
    """Return symmetric trees as complete trees in preorder."""
    depth = trees.size.astype(np.int64)
    tree_start = np.concatenate([[0], np.cumsum(2 ** (depth + 1) - 1)])
    right, level, leaf = (np.empty(tree_start[-1], dtype) for dtype in (np.int32, np.int32, np.int64))
    kernels.complete_trees(depth, right, level, leaf)
    return Preorder(tree_start, right, np.append(trees.split, np.int32(-1))[level], leaf)


def _symmetric_lists(trees: NativeTrees, forest: Forest, decision: Decision) -> NativeTrees:
    """Return the lists of symmetric trees after dropping their last levels."""
    size = trees.size.astype(np.int64)
    # A complete tree of depth d has 2^(d + 1) - 1 nodes; a dropped tree gets depth -1.
    depth = np.log2(np.add.reduceat(decision.keep, forest.root, dtype=np.int64) + 1).round().astype(np.int64) - 1
    stays = depth >= 0
    n_leaves = np.where(stays, 2 ** np.maximum(depth, 0), 0)
    first = np.cumsum(n_leaves) - n_leaves
    node = np.empty(n_leaves.sum(), np.int64)
    for before, now in np.unique(np.column_stack([size, depth])[stays], axis=0).tolist():
        members = np.flatnonzero((size == before) & (depth == now))[:, None]
        node[first[members] + np.arange(2**now)] = forest.root[members] + _level(before, now)
    level = np.arange(len(trees.split)) - np.repeat(np.cumsum(size) - size, size)
    return NativeTrees(
        size=depth[stays].astype(np.int32),
        split=trees.split[level < np.repeat(depth, size)],
        leaf_value=apply_decision(forest, decision).value[node],
        leaf_weight=forest.weight[node],
        step=np.empty((0, 2), np.uint16),
        leaf_id=np.empty(0, np.uint32),
    )


def _level(depth: int, level: int) -> Ints:
    """Return the nodes at a level of a complete tree in preorder, ordered by leaf index."""
    nodes = np.zeros(1, np.int64)
    # Invariant: `nodes` are the nodes at level `above`, ordered by the leaf index bits known so far.
    for above in range(level):
        nodes = np.concatenate([nodes + 1, nodes + 2 ** (depth - above)])
    return nodes


def _free_preorder(trees: NativeTrees) -> Preorder:
    """Return trees of any shape in preorder; a leaf stored at its parent's node gets a separate node.

    One traversal visits all trees: they hang below a chain of helper nodes, each with a tree as its left child and the
    next helper as its right child.
    """
    n_trees, n_nodes = len(trees.size), len(trees.split)
    step, index = trees.step.astype(np.int64), np.arange(n_nodes)
    split = (step != 0).any(axis=1)
    shared = np.flatnonzero(split & (step == 0).any(axis=1))
    # Helpers come first; the last one is a leaf that ends the chain.
    first = n_trees + 1
    helper_left = np.concatenate([first + np.cumsum(trees.size, dtype=np.int64) - trees.size, [-1]])
    helper_right = np.concatenate([np.arange(1, n_trees + 1), [-1]])
    children = np.where(step != 0, first + index[:, None] + step, -1)
    children[shared, np.argmin(step[shared], axis=1)] = first + n_nodes + np.arange(len(shared))
    no_child = np.full(len(shared), -1)
    left = np.concatenate([helper_left, children[:, 0], no_child])
    right = np.concatenate([helper_right, children[:, 1], no_child])
    order = kernels.preorder(left, right)
    if len(order) != len(left):
        raise damaged("its nodes do not form trees: one is reached twice or never")
    order = order[order >= first]
    tree = np.repeat(np.arange(n_trees), trees.size)
    tree = np.concatenate([tree, tree[shared]])[order - first]
    if (np.diff(tree) < 0).any():
        raise damaged("a node of one tree has a child in another tree")
    position = np.full(len(left), -1, np.int32)
    position[order] = np.arange(len(order))
    is_split = right[order] != -1
    condition, leaf_id = np.append(trees.split, trees.split[shared]), np.append(trees.leaf_id, trees.leaf_id[shared])
    return Preorder(
        tree_start=np.concatenate([[0], np.cumsum(np.bincount(tree, minlength=n_trees))]),
        right=np.where(is_split, position[right[order]], -1).astype(np.int32),
        condition=np.where(is_split, condition[order - first], -1).astype(np.int32),
        leaf=np.where(is_split, -1, leaf_id[order - first].astype(np.int64) // trees.leaf_value.shape[1]),
    )


def _free_lists(pruned: Forest, condition: NDArray[np.int32]) -> NativeTrees:
    """Return the lists of trees of any shape; a leaf whose sibling is a split is stored at its parent's node."""
    n_nodes, split = pruned.n_nodes, np.flatnonzero(pruned.is_split)
    sides = np.column_stack([split + 1, pruned.right[split]])
    # Leaves whose sibling is a split are stored at their parent's node.
    at_parent = ~pruned.is_split[sides]
    at_parent &= ~at_parent.all(axis=1)[:, None]
    own_node = np.ones(n_nodes, bool)
    own_node[sides[at_parent]] = False
    node = np.cumsum(own_node) - 1
    step = np.zeros((n_nodes, 2), np.int64)
    step[split] = np.where(at_parent, 0, node[sides] - node[split][:, None])
    stored_at = np.where(own_node, node, -1)
    stored_at[sides[at_parent]] = node[np.repeat(split, at_parent.sum(axis=1))]
    leaves = np.flatnonzero(~pruned.is_split)
    leaves = leaves[np.argsort(stored_at[leaves], kind="stable")]
    leaf_id = np.full(int(own_node.sum()), NO_LEAF, np.uint32)
    leaf_id[stored_at[leaves]] = np.arange(len(leaves)) * pruned.n_outputs
    size = np.add.reduceat(own_node, pruned.root) if pruned.n_trees else np.empty(0)
    return NativeTrees(
        size=size.astype(np.int32),
        split=np.maximum(condition, 0)[own_node],
        leaf_value=pruned.value[leaves],
        leaf_weight=pruned.weight[leaves],
        step=step[own_node].astype(np.uint16),
        leaf_id=leaf_id,
    )
