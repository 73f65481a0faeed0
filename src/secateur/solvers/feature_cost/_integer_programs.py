"""Build the integer programs (IP0) to (IP3) of Nan, Wang and Saligrama (2016) as sparse matrices.

z_h is 1 where node h is a leaf of the pruned tree, w_ki where resource k is bought for row i, and w_ki^(t) where tree t
needs it. p(h) is the set of ancestors of h. A program covers all trees at once; resources without a price are dropped.

References
----------
Nan, Wang, Saligrama (2016): Optimally Pruning Decision Tree Ensembles With Feature Cost.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from secateur.forest import Forest
from secateur.solvers.feature_cost._decomposition import DecomposedProblem

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Program:
    """An integer program: min (errors + penalty · price) · x subject to lower ≤ matrix x ≤ upper, x in {0, 1}.

    The linear relaxation requires x ≥ 0, which implies x ≤ 1.

    Attributes
    ----------
    errors, price : (n_columns,)
    matrix : CSR, (n_rows, n_columns)
        The columns are z, one per node; then w^(t), one per need, in (IP2) and (IP3); then w, one per item.
    lower, upper : (n_rows,)
    n_links : int
        The number of rows w_ki^(t) ≤ w_ki, which come last.
    """

    errors: Floats
    price: Floats
    matrix: Any
    lower: Floats
    upper: Floats
    n_links: int = 0

    def objective(self, penalty: float) -> Floats:
        """Return the objective coefficients at a penalty, (n_columns,)."""
        return self.errors + penalty * self.price


def ancestry(forest: Forest) -> Any:
    """Return the sparse (n_nodes, n_nodes) matrix whose row h sums z_h and its ancestors: z_h + Σ_p(h) z."""
    below, above = [np.arange(forest.n_nodes)], [np.arange(forest.n_nodes)]
    while len(below[-1]):
        up = forest.parent[above[-1]]
        below.append(below[-1][up != -1])
        above.append(up[up != -1])
    entries = (np.concatenate(below), np.concatenate(above))
    return sparse.csr_array((np.ones(len(entries[0])), entries), (forest.n_nodes, forest.n_nodes))


def ip0(decomposed: DecomposedProblem) -> Program:
    """Return (IP0): minimise the errors regardless of cost.

    On the path to every leaf h of the unpruned trees there is exactly one leaf: z_h + Σ_p(h) z = 1.
    """
    forest = decomposed.forest
    rows = ancestry(forest)[~forest.is_split]
    ones = np.ones(rows.shape[0])
    return Program(decomposed.errors, np.zeros(forest.n_nodes), rows, ones, ones)


def ip1(decomposed: DecomposedProblem) -> Program:
    """Return (IP1): (IP0) with w_ki ≥ z_h for every node h that row i reaches after testing feature k.

    Its linear relaxation has fractional vertices.
    """
    errors_only = ip0(decomposed)
    item, node = _later_nodes(decomposed)
    n_nodes, n_items, ones = decomposed.forest.n_nodes, len(decomposed.price), np.ones(len(item))
    number = np.arange(len(item))
    later = sparse.csr_array((-ones, (number, node)), (len(item), n_nodes))
    bought = sparse.csr_array((ones, (number, item)), (len(item), n_items))
    return Program(
        np.concatenate([errors_only.errors, np.zeros(n_items)]),
        np.concatenate([errors_only.price, decomposed.price]),
        sparse.block_array([[errors_only.matrix, None], [later, bought]], format="csr"),
        np.concatenate([errors_only.lower, 0 * ones]),
        np.concatenate([errors_only.upper, np.inf * ones]),
    )


def _later_nodes(decomposed: DecomposedProblem) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return pairs of an item and a node that the row reaches after the first split of the tree that needs it."""
    forest, need = decomposed.forest, decomposed.node
    tree = np.searchsorted(forest.tree_start, need, side="right") - 1
    item, node = decomposed.item, forest.tree_start[tree] + decomposed.leaves[tree, decomposed.row[decomposed.item]]
    items, nodes = [item[:0]], [node[:0]]
    # Walk from the leaf of the row up to the split, which is excluded.
    while len(item):
        below = node != need
        item, node, need = item[below], node[below], need[below]
        items.append(item)
        nodes.append(node)
        node = forest.parent[node]
    return np.concatenate(items), np.concatenate(nodes)


def ip2(decomposed: DecomposedProblem) -> Program:
    """Return (IP2): (IP0) with w_ki + z_u + Σ_p(u) z = 1, eq. (2), where u is the first split at which row i needs k.

    It is valid for one tree, or for several if each pays for its own features: every need must be a separate item.
    """
    errors_only = ip0(decomposed)
    needs, n_needs = ancestry(decomposed.forest)[decomposed.node], len(decomposed.item)
    ones = np.ones(len(errors_only.lower) + n_needs)
    return Program(
        np.concatenate([errors_only.errors, np.zeros(n_needs)]),
        np.concatenate([errors_only.price, decomposed.price[decomposed.item]]),
        sparse.block_array([[errors_only.matrix, None], [needs, sparse.eye_array(n_needs)]], format="csr"),
        ones,
        ones,
    )


def ip3(decomposed: DecomposedProblem) -> Program:
    """Return (IP3): (IP2) for each tree, coupled by w_ki^(t) ≤ w_ki, with the price on w_ki."""
    trees = ip2(decomposed)
    n_nodes, n_needs, n_items = decomposed.forest.n_nodes, len(decomposed.item), len(decomposed.price)
    number, ones = np.arange(n_needs), np.ones(n_needs)
    need_columns = sparse.csr_array((ones, (number, n_nodes + number)), (n_needs, n_nodes + n_needs))
    shared = sparse.csr_array((-ones, (number, decomposed.item)), (n_needs, n_items))
    return Program(
        np.concatenate([trees.errors, np.zeros(n_items)]),
        np.concatenate([np.zeros(n_nodes + n_needs), decomposed.price]),
        sparse.block_array([[trees.matrix, None], [need_columns, shared]], format="csr"),
        np.concatenate([trees.lower, np.full(n_needs, -np.inf)]),
        np.concatenate([trees.upper, np.zeros(n_needs)]),
        n_needs,
    )


PROGRAMS = {"ip0": ip0, "ip1": ip1, "ip2": ip2, "ip3": ip3}
