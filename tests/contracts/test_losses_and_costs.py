"""What every loss and cost must satisfy; being in the table enrols a class."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import LINK_OUTPUTS, forests, generators, random_forest, random_keep, random_rows, random_target

from secateur import Decision, subforest
from secateur.costs import COSTS, AdditiveCost
from secateur.data.rows import LocalRows
from secateur.forest.masks import NestedMasks, PackedMasks
from secateur.forest.routing import raw_scores, route
from secateur.losses import LOSSES, ClassLoss, default_loss, loss_named
from secateur.problem import Problem

losses = pytest.mark.parametrize("loss", [loss() for loss in LOSSES.values() if loss.additive], ids=lambda x: x.name)
costs = pytest.mark.parametrize("cost", [cost() for cost in COSTS.values()], ids=list(COSTS))
additive = [cost() for cost in COSTS.values() if issubclass(cost, AdditiveCost)]


def forest_for(loss, rng, **facts):
    """Return a forest whose trees predict the target themselves."""
    link = "probability" if loss.task == "classification" else "identity"
    n_classes, n_outputs = LINK_OUTPUTS[link][int(rng.integers(len(LINK_OUTPUTS[link])))]
    return random_forest(rng, link=link, n_classes=n_classes, n_outputs=n_outputs, aggregation="mean", **facts)


def sample_for(forest, rng, n_rows):
    X = random_rows(rng, n_rows, forest.n_features)
    weight = rng.integers(0, 4, n_rows).astype(float)
    weight[0] = 1.0
    return LocalRows(route(forest, X), random_target(rng, forest, n_rows), weight)


@losses
@given(rng=generators)
def test_node_losses_are_the_row_losses_of_the_rows_there(loss, rng):
    forest = forest_for(loss, rng, n_trees=1)
    sample = sample_for(forest, rng, 12)
    totals = loss.nodes(forest, Problem(forest, sample, loss, COSTS["nodes"]()).stats)
    here = forest.root[0] + sample.leaves[0].astype(int)
    for v in range(forest.n_nodes):
        at_v = (here >= v) & (here < forest.end[v])
        raw = np.repeat(forest.value[[v]], at_v.sum(), axis=0)
        expected = sample.weight[at_v] @ loss.rows(forest, raw, sample.y[at_v])
        assert totals[v] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", [loss() for loss in LOSSES.values() if issubclass(loss, ClassLoss) and loss.additive])
@given(rng=generators)
def test_the_loss_of_a_label_is_that_of_a_row_with_it(loss, rng):
    forest = random_forest(rng, link="probability", n_classes=(3,), n_outputs=3, aggregation="mean", n_trees=1)
    table = loss.labels(forest.value)
    for label in range(3):
        y = np.full((forest.n_nodes, 1), label)
        np.testing.assert_allclose(table[:, label], loss.rows(forest, forest.value, y), atol=1e-12)


@losses
@given(rng=generators)
def test_losses_are_never_negative_and_zero_when_perfect(loss, rng):
    forest = forest_for(loss, rng)
    y = random_target(rng, forest, 4)
    if forest.n_classes:
        perfect = np.hstack([np.eye(k)[y[:, t]] for t, k in enumerate(forest.n_classes)])
        worse = np.hstack([rng.dirichlet(np.ones(k), 4) for k in forest.n_classes])
    else:
        perfect, worse = y, y + rng.normal(size=y.shape)
    assert np.allclose(loss.rows(forest, perfect, y), 0.0)
    assert (loss.rows(forest, worse, y) >= 0).all()


@losses
def test_a_loss_for_the_other_task_says_what_to_use(loss):
    other = "probability" if loss.task == "regression" else "identity"
    n_classes, n_outputs = LINK_OUTPUTS[other][0]
    forest = random_forest(np.random.default_rng(0), link=other, n_classes=n_classes, n_outputs=n_outputs)
    reason = loss.unsupported(forest)
    assert loss.name in reason
    fitting = reason.split("one of: ")[1].rstrip(".").split(", ")
    assert all(LOSSES[name]().unsupported(forest) is None for name in fitting)
    with pytest.raises(ValueError, match=loss.name):
        Problem(forest, sample_for(forest, np.random.default_rng(0), 3), loss, COSTS["nodes"]())


@given(forests())
def test_the_default_loss_can_judge_the_forest(forest):
    assert default_loss(forest).unsupported(forest) is None


def test_losses_agree_with_scikit_learn():
    from sklearn.metrics import brier_score_loss, log_loss, mean_squared_error, zero_one_loss

    rng = np.random.default_rng(0)
    forest = random_forest(rng, link="probability", n_classes=(3,), n_outputs=3)
    p, y = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, (50, 1))
    assert LOSSES["log_loss"]().rows(forest, p, y).mean() == pytest.approx(log_loss(y[:, 0], p))
    assert LOSSES["zero_one"]().rows(forest, p, y).mean() == pytest.approx(zero_one_loss(y[:, 0], p.argmax(axis=1)))
    by_class = [brier_score_loss(y[:, 0] == k, p[:, k]) for k in range(3)]  # of all at once from scikit-learn 1.7 on
    assert LOSSES["brier"]().rows(forest, p, y).mean() == pytest.approx(sum(by_class))
    number = random_forest(rng, n_outputs=2)
    a, b = rng.normal(size=(9, 2)), rng.normal(size=(9, 2))
    assert LOSSES["squared_error"]().rows(number, a, b).mean() == pytest.approx(mean_squared_error(b, a))


@pytest.mark.parametrize("text", ["absolute_error", "quantile:0.5", "quantile:0.85", "poisson", "gamma", "tweedie:1.3"])
@pytest.mark.parametrize("link", ["identity", "log"])
def test_losses_of_numbers_agree_with_scikit_learn(text, link):
    from sklearn import metrics

    loss, rng = loss_named(text), np.random.default_rng(1)
    expected = {
        "absolute_error": metrics.mean_absolute_error,
        "quantile": lambda y, p: metrics.mean_pinball_loss(y, p, alpha=float(text.partition(":")[2])),
        "poisson": metrics.mean_poisson_deviance,
        "gamma": metrics.mean_gamma_deviance,
        "tweedie": lambda y, p: metrics.mean_tweedie_deviance(y, p, power=1.3),
    }[loss.name]
    forest = random_forest(rng, link=link)
    raw, y = rng.uniform(0.1, 2, (40, 1)), rng.uniform(0.1, 3, (40, 1))
    if loss.name in ("poisson", "tweedie"):
        y[::3] = 0.0
    mean = forest.response.mean(raw, ())[0]
    assert loss.rows(forest, raw, y).mean() == pytest.approx(expected(y[:, 0], mean[:, 0]))
    assert loss.text == text
    assert loss_named(loss.text) == loss or type(loss_named(loss.text)) is type(loss)
    assert np.allclose(loss.rows(random_forest(rng), y, y), 0.0)


def test_squared_log_error_is_scikit_learn_s():
    from sklearn.metrics import mean_squared_log_error

    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 3, (30, 1)), rng.uniform(0, 3, (30, 1))
    losses = LOSSES["squared_log_error"]().rows(random_forest(rng), a, b)
    assert losses.mean() == pytest.approx(mean_squared_log_error(b, a))


@pytest.mark.parametrize(
    ("name", "y"), [("poisson", -1.0), ("gamma", 0.0), ("tweedie", -2.0), ("squared_log_error", -1.0)]
)
def test_a_target_the_loss_has_no_place_for_is_named(name, y):
    forest = random_forest(np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"such as {y:g}.*{name} needs"):
        LOSSES[name]().rows(forest, np.ones((3, 1)), np.array([[1.0], [y], [2.0]]))


@pytest.mark.parametrize("text", ["quantile:high", "no_such", "poisson:3", "brier:1"])
def test_an_unknown_loss_says_which_are_known(text):
    with pytest.raises(ValueError, match=r"unknown\. The known names are squared_error"):
        loss_named(text)


def test_a_large_mean_does_not_swamp_the_squared_error():
    rng = np.random.default_rng(0)
    forest = random_forest(rng, n_trees=1, aggregation="mean", divisor=1.0)
    leaves = route(forest, random_rows(rng, 40, forest.n_features))
    y = rng.normal(size=(40, 1))
    shifted = replace(forest, value=forest.value + 1e9)
    small = Problem(forest, LocalRows(leaves, y, np.ones(40)), LOSSES["squared_error"](), COSTS["nodes"]())
    large = Problem(shifted, LocalRows(leaves, y + 1e9, np.ones(40)), LOSSES["squared_error"](), COSTS["nodes"]())
    np.testing.assert_allclose(large.risk, small.risk, rtol=1e-6, atol=1e-6)


@costs
@given(forest=forests(), rng=generators)
def test_a_pruning_costs_the_same_in_any_kind_of_masks_and_cutting_never_costs_more(cost, forest, rng):
    X = random_rows(rng, 5, forest.n_features)
    sample = LocalRows(route(forest, X), np.zeros((5, 1)), rng.uniform(0.5, 2, 5))
    removed_at = np.full(forest.n_nodes, 3, np.int32)
    for v in range(forest.n_nodes):
        if forest.parent[v] != -1:
            above = forest.parent[v]
            own = 1 + int(rng.integers(0, 3)) if v == above + 1 else removed_at[above + 1]
            removed_at[v] = min(own, removed_at[above])
    nested = NestedMasks(removed_at, 3)
    packed = PackedMasks.pack(np.array([nested.keep(point) for point in range(3)]))
    total = cost.totals(forest, sample, nested)
    np.testing.assert_allclose(total, cost.totals(forest, sample, packed))
    assert (np.diff(total) <= 1e-9).all()


@pytest.mark.parametrize("cost", additive, ids=lambda cost: cost.name)
@given(forest=forests(), rng=generators)
def test_prices_are_not_negative_and_cutting_never_costs_more(cost, forest, rng):
    reach = rng.random(forest.n_nodes)
    as_leaf, as_split = cost.prices(forest, reach)
    assert as_leaf.shape == as_split.shape == (forest.n_nodes,)
    assert (as_leaf >= 0).all()
    assert (as_split >= 0).all()
    for v in np.flatnonzero(forest.is_split):
        assert as_leaf[v] <= as_split[v] + as_leaf[v + 1] + as_leaf[forest.right[v]]


@given(forests(), generators, st.integers(1, 6))
def test_costs_count_what_their_names_say(forest, rng, n_rows):
    keep = random_keep(rng, forest)
    pruned = subforest(forest, Decision(keep))
    X = random_rows(rng, n_rows, forest.n_features)
    leaves = route(pruned, X)
    depth, met = 0.0, set()
    for tree in range(pruned.n_trees):
        for row, leaf in enumerate(pruned.root[tree] + leaves[tree].astype(int)):
            depth += pruned.depth[leaf] / n_rows
            v = pruned.parent[leaf]
            while v != -1:
                met.add((row, pruned.feature[v]))
                v = pruned.parent[v]
    expected = {"nodes": pruned.n_nodes, "leaves": pruned.n_leaves, "depth": depth, "features": len(met) / n_rows}
    sample = LocalRows(leaves, np.zeros((n_rows, 1)), np.ones(n_rows))
    whole = NestedMasks(np.ones(pruned.n_nodes, np.int32), 1)
    for name, cost in COSTS.items():
        assert cost().totals(pruned, sample, whole)[0] == pytest.approx(expected[name])


@given(forests(links=("identity", "logit", "softmax")), generators)
def test_the_spread_of_a_node_is_how_far_its_collapse_moves_the_tree(forest, rng):
    from secateur.forest.node_sums import node_weight, output_spread

    X = random_rows(rng, 8, forest.n_features)
    leaves, weight = route(forest, X), rng.random(8)
    spread = output_spread(forest, node_weight(forest, leaves, weight))
    for tree in range(forest.n_trees):
        here = forest.root[tree] + leaves[tree].astype(int)
        for v in range(forest.tree_start[tree], forest.tree_start[tree + 1]):
            at_v = (here >= v) & (here < forest.end[v])
            moved = (forest.tree_weight[tree] * (forest.value[here] - forest.value[v])) ** 2
            assert spread[v] == pytest.approx(weight[at_v] @ moved.sum(axis=1)[at_v], abs=1e-9)


def test_raw_scores_of_no_trees_are_the_base():
    forest = random_forest(np.random.default_rng(0))
    empty = subforest(forest, Decision(np.zeros(forest.n_nodes, bool)))
    assert np.array_equal(raw_scores(empty, route(empty, np.zeros((2, forest.n_features)))), [forest.base] * 2)
