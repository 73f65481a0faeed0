"""Drop whole trees: at random, from the end of a boosting sequence, or in reverse order of greedy forward selection."""

from dataclasses import dataclass
from typing import Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from secateur import kernels
from secateur.forest import Forest
from secateur.path import NestedMasks, Path
from secateur.path.build import trace_path
from secateur.problem import Problem
from secateur.solvers.base import Solver, check_choices
from secateur.solvers.ensemble.additive_model import additive, too_many_pairs

Floats = NDArray[np.float64]
Order = Literal["auto", "random", "best_first", "tail"]
_CHUNK = 2**22
"""Maximum number of entries of a chunk of trees by rows and outputs."""


@final
@dataclass(frozen=True, repr=False)
class FewerTrees(Solver):
    """Drop whole trees one by one; the remaining trees keep their nodes and values.

    A model that averages its trees averages the remaining ones, as a forest grown with k trees would. The path has a
    point for every number of trees, from all to 1; for boosted trees of several classes, for every number of whole
    iterations.

    `order="best_first"` is greedy forward selection. Each step adds to the set S of selected trees the tree that
    minimises

        1/n Σ_rows (y − mean_{t in S} tree_t(x))²

    (the Brier score for classes) on the given rows. The point of k trees keeps the first k. It is a heuristic without a
    guarantee. It takes O(rows · trees²) once and O(trees²) for the whole order. The other orders do not use the rows.

    Parameters
    ----------
    order : "auto", "random", "best_first" or "tail"
        Order in which trees are dropped. "random" drops them in random order, "best_first" in the reverse order of
        forward selection and "tail" in the reverse order of training. "auto" is "best_first" for models that average
        predictions, "random" for isolation forests and "tail" for boosting.
    seed : int
        Seed of the random order.

    References
    ----------
    Caruana et al. (2004), Ensemble selection from libraries of models, ICML.

    Examples
    --------
    >>> import secateur as sc
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(6, max_depth=3, random_state=0).fit(X, y)
    >>> sc.prune_path(forest, X, y, solver=sc.solvers.FewerTrees()).table["n_trees"].tolist()
    [6, 5, 4, 3, 2, 1]
    """

    order: Order = "auto"
    seed: int = 0

    name = "fewer_trees"
    supports_symmetric = True
    uses_ensemble_loss = True

    def __post_init__(self) -> None:
        check_choices(self, order=get_args(Order))

    def unsupported(self, problem: Problem) -> str | None:
        """Return why the order does not apply to the model, or None if it does."""
        forest = problem.forest
        if self.order == "best_first" and not _is_mean_of_predictions(problem):
            return (
                "order='best_first' needs a mean of trees that predict the target, without base score and offsets, but "
                f"this model has aggregation {forest.aggregation!r} and link {forest.link!r}. Use order='auto'."
            )
        if self.order == "random" and forest.aggregation == "sum":
            return (
                "order='random' needs independent trees, but each tree of this model corrects those before it. "
                "Use order='tail', or tree_lasso, which refits the weights of the remaining trees."
            )
        order = _usual_order(problem) if self.order == "auto" else self.order
        reason = too_many_pairs(forest) if order == "best_first" else None
        return reason and f"{reason}Use order='random', or block_descent."

    def path(self, problem: Problem) -> Path:
        """Return the unpruned forest and its subsets of trees, by decreasing size."""
        forest = problem.forest
        rank = self._rank(problem)
        n_points = int(rank.max(initial=0)) + 1
        removed_at = np.repeat(n_points - rank, np.diff(forest.tree_start)).astype(np.int32)
        masks = NestedMasks(removed_at, n_points)
        no_penalty = np.full(n_points, np.nan)
        if forest.aggregation == "median":
            return trace_path(problem, masks, no_penalty, repr(self), ensemble=True)
        return trace_path(problem, masks, no_penalty, repr(self), ensemble=True, risk=_risks(problem, rank))

    def _rank(self, problem: Problem) -> NDArray[np.int64]:
        """Return the rank of each tree, (n_trees,): the number of trees (iterations, for "tail") dropped after it."""
        forest = problem.forest
        order = _usual_order(problem) if self.order == "auto" else self.order
        if order == "tail":
            return _iteration(forest)
        if order == "random":
            return np.random.default_rng(self.seed).permutation(forest.n_trees)
        return np.argsort(choose_forward(error_products(problem), forest.tree_weight))


def _is_mean_of_predictions(problem: Problem) -> bool:
    """Return whether the model is the mean of trees that predict the target, without base and offset."""
    forest = problem.forest
    plain = problem.sample.offset is None and not forest.base.any()
    return forest.aggregation == "mean" and forest.trees_predict_target and plain


def _usual_order(problem: Problem) -> Order:
    """Return the order that "auto" stands for."""
    if _is_mean_of_predictions(problem):
        return "best_first"
    return "random" if problem.forest.link == "anomaly" else "tail"


def _iteration(forest: Forest) -> NDArray[np.int64]:
    """Return the boosting iteration of each tree: the number of earlier trees of the same output, (n_trees,)."""
    iteration = np.empty(forest.n_trees, np.int64)
    for output in np.unique(forest.tree_output):
        same = forest.tree_output == output
        iteration[same] = np.arange(same.sum())
    return iteration


def error_products(problem: Problem) -> Floats:
    """Return Σ_rows weight · error_s · error_t for all pairs of trees, summed over outputs, (n_trees, n_trees).

    The squared error of the mean with tree weights w is w'Pw / (Σ w)², with P the matrix returned.
    """
    forest, rows = problem.forest, additive(problem)
    (n_rows, n_outputs), n_trees = rows.target.shape, forest.n_trees
    products = np.zeros((n_trees, n_trees))
    step = max(_CHUNK // max(n_trees * n_outputs, 1), 1)
    for chunk in (slice(first, first + step) for first in range(0, n_rows, step)):
        error = np.empty((n_trees, *rows.target[chunk].shape))
        for tree in range(n_trees):
            error[tree] = 0.0
            _add_tree(forest, rows.leaves[tree, chunk], tree, 1 / forest.unit, error[tree])
            error[tree] -= rows.target[chunk]
        weighted = error * rows.weight[chunk, None]
        products += weighted.reshape(n_trees, -1) @ error.reshape(n_trees, -1).T
    return products


def choose_forward(products: Floats, tree_weight: Floats) -> NDArray[np.intp]:
    """Return the trees in the order of greedy forward selection, (n_trees,); ties go to the first tree."""
    left = np.ones(len(products), bool)
    order = np.empty(len(products), np.intp)
    # Loop invariant: with w the weights of the trees selected so far, along = Pw, square = w'Pw and total = Σ w.
    along, square, total = np.zeros(len(products)), 0.0, 0.0
    for position in range(len(order)):
        new = square + 2 * tree_weight * along + tree_weight**2 * np.diag(products)
        loss = np.where(left, new / (total + tree_weight) ** 2, np.inf)
        tree = int(loss.argmin())
        order[position], left[tree] = tree, False
        square, total = float(new[tree]), total + float(tree_weight[tree])
        along = along + tree_weight[tree] * products[tree]
    return order


def _risks(problem: Problem, rank: NDArray[np.int64]) -> Floats:
    """Return the loss of each point, the unpruned forest first, from scores to which trees are added one by one."""
    forest, sample = problem.forest, problem.sample
    sums = np.tile(forest.base, (len(sample), 1))
    if sample.offset is not None:
        sums += sample.offset
    risks, total = [], 0.0
    order = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank))[:-1]
    # Trees of equal rank are one boosting iteration, and are added together.
    for trees in np.split(order, ends):
        for tree in trees.tolist():
            _add_tree(forest, sample.leaves[tree], tree, float(forest.tree_weight[tree]), sums)
            total += forest.unit * float(forest.tree_weight[tree])
        raw = sums
        if forest.aggregation == "mean":
            raw = sums / total if total else np.ones_like(sums)
        risks.append(np.average(problem.loss.rows(forest, raw, sample.y), weights=sample.weight))
    return np.array(risks[::-1])


def _add_tree(forest: Forest, leaves: NDArray[np.unsignedinteger], tree: int, weight: float, out: Floats) -> None:
    """Add to `out` the prediction of one tree, times `weight`, for rows with these leaves."""
    nodes = slice(forest.tree_start[tree], forest.tree_start[tree + 1])
    size = nodes.stop - nodes.start
    kernels.add_trees(
        np.ascontiguousarray(leaves[None]),
        np.array([0, size]),
        np.arange(size, dtype=np.int32),
        forest.value[nodes],
        np.array([weight]),
        forest.tree_output[tree : tree + 1],
        np.empty((0, 0), bool),
        out,
    )
