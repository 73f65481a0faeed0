"""Symmetric trees, of which only whole levels can go."""

import itertools

import numpy as np
import pytest

import secateur as sc
from secateur import Decision, Forest
from secateur.forest import check_forest
from secateur.forest.subforest import check_keep
from secateur.solvers import BlockDescent, FewerTrees, OptimalSize, TreeLasso, WeakestLink
from secateur.solvers.single_tree._symmetric import chains_of


def symmetric_forest(rng, depths=(3, 0, 2, 1), width=1, **facts):
    """Return oblivious trees of some depths with random questions and values."""
    parts = [_symmetric_tree(rng, depth) for depth in depths]
    sizes = [len(part[0]) for part in parts]
    start = np.concatenate([[0], np.cumsum(sizes)])
    right = np.concatenate([np.where(part[0] == -1, -1, part[0] + s) for part, s in zip(parts, start, strict=False)])
    forest = Forest(
        tree_start=start.astype(np.int64),
        right=right.astype(np.int32),
        feature=np.concatenate([part[1] for part in parts]).astype(np.int32),
        threshold=np.concatenate([part[2] for part in parts]),
        default_left=np.zeros(start[-1], bool),
        value=rng.normal(size=(start[-1], width)),
        weight=np.ones(start[-1]),
        tree_weight=np.ones(len(depths)),
        tree_output=np.full(len(depths), 0 if width == 1 else -1, np.int32),
        base=np.zeros(width),
        link="identity",
        n_features=4,
        symmetric=True,
        **facts,
    )
    check_forest(forest)
    return forest


def _symmetric_tree(rng, depth):
    """Return right, feature and threshold of a complete tree with one question per level, in preorder."""
    questions = [(int(rng.integers(4)), float(rng.integers(-1, 2))) for _ in range(depth)]
    right, feature, threshold = [], [], []

    def grow(level):
        here = len(right)
        right.append(-1)
        feature.append(-1 if level == depth else questions[level][0])
        threshold.append(0.0 if level == depth else questions[level][1])
        if level < depth:
            grow(level + 1)
            right[here] = len(right)
            grow(level + 1)

    grow(0)
    return np.array(right), np.array(feature), np.array(threshold)


def data(rng, n_rows=60):
    return rng.integers(-2, 3, (n_rows, 4)).astype(float), rng.normal(size=n_rows)


def test_a_mask_that_cuts_through_a_level_is_refused():
    forest = symmetric_forest(np.random.default_rng(0))
    keep = np.ones(forest.n_nodes, bool)
    twig = next(v for v in range(forest.n_nodes) if forest.depth[v] == 2)
    keep[twig + 1 : forest.end[twig]] = False
    with pytest.raises(ValueError, match="cuts through a level"):
        check_keep(forest, keep)
    keep = np.ones(forest.n_nodes, bool)
    keep[: forest.tree_start[1]] = forest.depth[: forest.tree_start[1]] <= 1
    check_keep(forest, keep)
    keep[forest.tree_start[2] : forest.tree_start[3]] = False
    check_keep(forest, keep)


@pytest.mark.parametrize("seed", range(20))
def test_weakest_link_is_the_best_choice_of_levels_at_every_penalty(seed):
    rng = np.random.default_rng(seed)
    forest = symmetric_forest(rng, depths=(3, 2))
    X, y = data(rng)
    path = sc.prune_path(forest, X, y, solver=WeakestLink())
    risk, (as_leaf, as_split) = path_problem(forest, X, y)
    tree = np.repeat([0, 1], np.diff(forest.tree_start))
    for penalty in rng.uniform(0, 2 * path.table["penalty"].max(), 5):
        best = min(
            _objective(forest, tree, cut, risk, as_leaf, as_split, penalty)
            for cut in itertools.product(range(4), range(3))
        )
        point = np.flatnonzero(path.table["penalty"] <= penalty)[-1]
        keep = path.masks.keep(int(point))
        cut = [int(forest.depth[keep & (tree == t)].max()) for t in (0, 1)]
        assert _objective(forest, tree, cut, risk, as_leaf, as_split, penalty) == pytest.approx(best)


def path_problem(forest, X, y):
    from secateur.costs import NodeCost
    from secateur.data.rows import read_sample
    from secateur.libraries import adapt
    from secateur.losses import SquaredError
    from secateur.problem import Problem

    problem = Problem(forest, read_sample(adapt(forest), X, y), SquaredError(), NodeCost())
    return problem.risk, problem.prices


def _objective(forest, tree, cut, risk, as_leaf, as_split, penalty):
    limit = np.asarray(cut)[tree]
    leaf = (forest.depth == limit) | (~forest.is_split & (forest.depth < limit))
    split = forest.is_split & (forest.depth < limit)
    return risk[leaf].sum() + penalty * (as_leaf[leaf].sum() + as_split[split].sum())


@pytest.mark.parametrize(
    "solver",
    [BlockDescent(granularity="layer"), BlockDescent(granularity="layer", values="keep"), FewerTrees(), TreeLasso()],
)
def test_solvers_that_take_levels_cut_nothing_else(solver):
    rng = np.random.default_rng(3)
    forest = symmetric_forest(rng, depths=(3, 3, 2, 1))
    X, y = data(rng, 200)
    path = sc.prune_path(forest, X, y + forest_predictions(forest, X), solver=solver)
    assert len(path) > 2
    for point in range(len(path)):
        check_keep(forest, path.masks.keep(point))


def forest_predictions(forest, X):
    from secateur.forest.routing import raw_scores, route

    return raw_scores(forest, route(forest, X))[:, 0]


def test_solvers_that_cut_nodes_say_why_not():
    rng = np.random.default_rng(0)
    forest = symmetric_forest(rng)
    with pytest.raises(ValueError, match="only whole levels can be cut"):
        sc.prune_path(forest, *data(rng), solver=OptimalSize())


def test_auto_takes_levels_and_meets_a_budget():
    rng = np.random.default_rng(1)
    forest = symmetric_forest(rng, depths=(3,) * 6)
    X, y = data(rng, 300)
    small = sc.prune(forest, X, y + forest_predictions(forest, X), max_nodes=30)
    assert small.symmetric
    assert small.n_nodes <= 30


def test_a_chain_has_a_link_for_every_level():
    forest = symmetric_forest(np.random.default_rng(0), depths=(2, 0, 1))
    chains = chains_of(forest)
    assert chains.right.tolist() == [2, -1, 4, -1, -1, -1, 8, -1, -1]
    assert chains.parent.tolist() == [-1, 0, 0, 2, 2, -1, -1, 6, 6]
    assert np.bincount(chains.link_index).tolist() == [1, 0, 2, 0, 4, 1, 1, 0, 2]


def test_the_pruned_forest_is_symmetric_too():
    forest = symmetric_forest(np.random.default_rng(0))
    keep = forest.depth <= 1
    assert sc.subforest(forest, Decision(keep)).symmetric
