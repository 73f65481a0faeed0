import builtins
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import secateur as sc

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.text import Text  # noqa: E402

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
OLD, NEW = (X[::2], y[::2]), (X[1::2], y[1::2])


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(15, max_depth=4, random_state=0).fit(*OLD)


@pytest.fixture(scope="module")
def of_tree():
    return sc.prune_path(DecisionTreeClassifier(random_state=0).fit(*OLD), *OLD).evaluate(*NEW)


@pytest.fixture(scope="module")
def of_forest(forest):
    return sc.prune_path(forest, *OLD, solver=sc.solvers.BlockDescent(penalties=12)).evaluate(*NEW)


@pytest.fixture(scope="module")
def of_features(forest):
    return sc.prune_path(forest, *OLD, solver="min_cut").evaluate(*NEW)


def named(ax, gid):
    return [artist for artist in ax.get_children() if artist.get_gid() == gid]


def line_of(ax, gid="line"):
    (line,) = named(ax, gid)
    return line.get_xdata(), line.get_ydata()


def test_the_line_is_the_table(of_tree):
    x, loss = line_of(of_tree.plot())
    assert np.array_equal(x, of_tree.table["n_nodes"][::-1])
    assert np.array_equal(loss, of_tree.table["loss"][::-1])


def test_of_points_of_the_same_size_the_line_has_the_lowest(of_tree):
    nodes, loss = of_tree.table["n_nodes"].copy(), of_tree.table["loss"].copy()
    nodes[2], loss[1], loss[2] = nodes[1], 0.5, 0.25
    x, height = line_of(replace(of_tree, table={**of_tree.table, "n_nodes": nodes, "loss": loss}).plot())
    assert height[x == nodes[1]].tolist() == [0.25]


def test_the_band_is_one_standard_error(of_tree):
    (band,) = named(of_tree.plot(), "band")
    edges = band.get_paths()[0].vertices[:, 1]
    table = of_tree.table
    assert edges.min() == pytest.approx((table["loss"] - table["loss_se"]).min())
    assert edges.max() == pytest.approx((table["loss"] + table["loss_se"]).max())


def test_any_column_can_be_the_axis_and_bytes_are_measured(of_tree):
    for x in ("n_leaves", "n_trees", "cost", "depth"):
        assert set(line_of(of_tree.plot(x=x))[0]) == set(of_tree.table[x])
    ax = of_tree.plot(x="bytes")
    assert np.array_equal(line_of(ax)[0], np.unique(of_tree.with_bytes().table["bytes"]))
    assert "bytes" in ax.get_xlabel()
    with pytest.raises(ValueError, match=r"no numeric column 'weight'.*n_nodes"):
        of_tree.plot(x="weight")


def test_the_default_axis_is_the_cost_of_the_path(of_features, of_tree):
    assert "price" in of_features.plot().get_xlabel()
    by_leaves = sc.prune_path(of_tree.source.model, *OLD, cost="leaves").plot()
    assert by_leaves.get_xlabel().startswith("leaves")


def test_the_unpruned_model_and_the_chosen_point_are_marked(of_tree):
    chosen = of_tree.select(max_leaves=4)
    for mark in (chosen, chosen.point):
        ax = of_tree.plot(mark=mark)
        assert line_of(ax, "chosen") == ([chosen.row["n_nodes"]], [chosen.row["loss"]])
        assert line_of(ax, "unpruned") == ([of_tree.table["n_nodes"][0]], [of_tree.table["loss"][0]])
    assert any(f"chosen: {chosen.row['n_nodes']}" in text.get_text() for text in ax.get_legend().get_texts())


def test_a_model_with_new_values_is_not_joined_to_the_unpruned_one(of_forest):
    x, _ = line_of(of_forest.plot())
    assert of_forest.values is not None
    assert x.max() <= of_forest.table["n_nodes"][1:].max() < of_forest.table["n_nodes"][0]


def test_the_risk_is_drawn_where_it_is_the_same_quantity(of_forest, of_features, of_tree):
    def dotted(path):
        return [line for line in path.plot().lines if line.get_linestyle() == ":"]

    assert of_forest.info.judges == "ensemble"
    (line,) = dotted(of_forest)
    assert set(line.get_ydata()) <= set(of_forest.table["risk"])
    assert of_features.info.judges == "trees"
    assert not dotted(of_features)
    (line,) = dotted(of_tree)  # a single tree is the ensemble
    assert of_tree.evaluate(*OLD).table["loss"] == pytest.approx(of_tree.table["risk"])


def test_a_risk_of_another_loss_is_not_drawn(of_forest):
    judged_otherwise = of_forest.evaluate(*NEW, loss=sc.losses.ZeroOne())
    assert not [line for line in judged_otherwise.plot().lines if line.get_linestyle() == ":"]


def test_without_evaluation_the_risk_is_the_line(of_tree):
    path = sc.prune_path(of_tree.source.model, *OLD)
    ax = path.plot()
    assert np.array_equal(line_of(ax)[1], path.table["risk"][::-1])
    assert not named(ax, "band")
    assert ax.get_ylabel() == "Brier score"


def test_the_mean_loss_of_single_trees_is_labelled(forest):
    path = sc.prune_path(forest, *OLD, solver="min_cut")
    assert path.plot().get_ylabel() == "misclassification rate, mean of single trees"
    assert path.evaluate(*NEW).plot().get_ylabel() == "misclassification rate"


def test_wide_steps_of_the_cost_are_shaded(of_features):
    cost = np.unique(of_features.table["cost"])
    wide = [(a, b) for a, b in pairwise(cost) if b - a > 0.1 * of_features.table["cost"][0]]
    assert wide
    ax = of_features.plot()
    shaded = sorted((span.get_x(), span.get_x() + span.get_width()) for span in named(ax, "gap"))
    assert np.allclose(shaded, wide)
    assert not named(of_features.plot(x="n_nodes"), "gap")


def test_the_line_of_several_series_connects_pareto_optimal_points(forest):
    path = sc.prune_path(forest, *OLD, solver=sc.solvers.BlockDescent(ridge=(5.0, 100.0), penalties=8)).evaluate(*NEW)
    ax = path.plot()
    x, loss = line_of(ax)
    size, all_losses = path.table["n_nodes"][1:], path.table["loss"][1:]
    unbeaten = [
        k
        for k in range(len(size))
        if not (
            (size <= size[k]) & (all_losses <= all_losses[k]) & ((size < size[k]) | (all_losses < all_losses[k]))
        ).any()
    ]
    assert set(zip(x, loss, strict=True)) == {(size[k], all_losses[k]) for k in unbeaten}
    assert (np.diff(x) > 0).all()
    assert len(line_of(ax, "points")[0]) + len(x) == len(path) - 1


def test_a_loss_that_could_not_be_measured_is_left_out(of_tree):
    loss = of_tree.table["loss"].copy()
    loss[2] = np.inf
    x, drawn = line_of(replace(of_tree, table={**of_tree.table, "loss": loss}).plot())
    assert np.isfinite(drawn).all()
    assert len(x) == len(of_tree) - 1


def test_baselines_are_further_lines(forest, of_forest):
    other = sc.prune_path(forest, *OLD, solver="fewer_trees").evaluate(*NEW)
    ax = of_forest.plot(baselines={"fewer trees": other}, label="ours")
    own, theirs = named(ax, "line")
    assert (own.get_label(), theirs.get_label()) == ("ours", "fewer trees")
    assert np.array_equal(theirs.get_xdata(), np.unique(other.table["n_nodes"]))
    with pytest.raises(ValueError, match="no measured loss"):
        of_forest.plot(baselines={"b": sc.prune_path(forest, *OLD, solver="fewer_trees")})
    with pytest.raises(ValueError, match="zero_one"):
        of_forest.plot(baselines={"b": other.evaluate(*NEW, loss=sc.losses.ZeroOne())})
    with pytest.raises(ValueError, match="Plot fewer"):
        of_forest.plot(baselines={str(k): other for k in range(9)})


def test_plots_are_drawn_on_the_given_axes_only(of_tree):
    _, (*given, last) = pyplot.subplots(1, 4)
    for kind, ax in zip(("tradeoff", "tree", "features"), given, strict=True):
        assert of_tree.plot(kind, ax=ax) is ax
        assert ax.has_data()
    assert len(pyplot.get_fignums()) == 1
    assert not last.has_data()
    of_tree.plot()
    assert len(pyplot.get_fignums()) == 2


def test_an_unknown_kind_is_refused_before_a_figure_is_made(of_tree):
    with pytest.raises(ValueError, match=r"'pie'.*'tradeoff', 'tree' or 'features'"):
        of_tree.plot("pie")
    assert not pyplot.get_fignums()


def test_without_matplotlib_the_error_names_the_package_to_install(of_tree, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    for kind in ("tradeoff", "tree", "features"):
        with pytest.raises(ImportError, match=r"needs matplotlib.*pip install 'secateur\[plot\]'"):
            of_tree.plot(kind)


def drawn_and_hidden(ax):
    """Return how many nodes have an artist, and how many are said to be in triangles."""
    shown = sum(len(named(ax, gid)) for gid in ("kept split", "kept leaf", "ghost"))
    numbers = [text.get_text().split()[-1] for text in named(ax, "number hidden")]
    return shown, sum(map(int, numbers))


def test_kept_leaves_have_labels_and_cut_nodes_are_ghosts(of_tree):
    for pruned in of_tree:
        ax = of_tree.plot("tree", point=pruned.point)
        assert len(named(ax, "kept leaf")) == pruned.row["n_leaves"]
        assert len(named(ax, "kept split")) == pruned.row["n_nodes"] - pruned.row["n_leaves"]
        assert len(named(ax, "ghost")) == of_tree.forest.n_nodes - pruned.row["n_nodes"]
        assert len(named(ax, "edge")) == pruned.row["n_nodes"] - 1
        assert len(named(ax, "edge")) + len(named(ax, "ghost edge")) == of_tree.forest.n_nodes - 1


def test_conditions_and_leaf_labels_are_those_of_scikit_learn(of_tree):
    small = of_tree.select(max_leaves=4)
    model, ax = small.to_model(), of_tree.plot("tree", point=small)
    labels = [text.get_text().replace("\n", " ").replace("\xa0", " ") for text in named(ax, "kept split")]
    inner = model.tree_.children_left != -1
    splits = zip(model.tree_.feature[inner], model.tree_.threshold[inner], strict=True)
    assert sorted(labels) == sorted(f"{X.columns[k]} ≤ {threshold:.4g}" for k, threshold in splits)
    leaves = model.tree_.value[~inner, 0]
    share = model.tree_.weighted_n_node_samples[~inner] / model.tree_.weighted_n_node_samples[0]
    labels = [text.get_text().replace("\n", " ") for text in named(ax, "kept leaf")]
    assert sorted(labels) == sorted(
        f"class {value.argmax()} ({value.max():.2f}) {f'{part:.0%}' if part >= 0.005 else '< 1%'} of rows"
        for value, part in zip(leaves, share, strict=True)
    )


def test_labels_of_sixteen_leaves_do_not_overlap():
    data = load_diabetes(as_frame=True)
    tree = DecisionTreeRegressor(max_leaf_nodes=16, random_state=0).fit(data.data, data.target)
    path = sc.prune_path(tree, data.data, data.target)
    for model_names in (data.data.columns, [f"a rather long name of feature {k}" for k in range(10)]):
        source = path.source.__class__(tree)
        source.forest = replace(path.forest, feature_names=tuple(model_names))
        ax = replace(path, source=source).plot("tree", point=0)
        ax.figure.draw_without_rendering()
        boxes = [t.get_bbox_patch().get_window_extent() for t in ax.texts if t.get_gid() in ("kept leaf", "kept split")]
        assert len(boxes) == 31
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        assert min(t.get_fontsize() for t in ax.texts) >= 5


def test_a_large_tree_is_collapsed_and_no_node_is_lost():
    data = load_diabetes()
    tree = DecisionTreeRegressor(random_state=0).fit(data.data, data.target)
    path = sc.prune_path(tree, data.data, data.target)
    for point in (0, len(path) // 2, len(path) - 1):
        ax = path.plot("tree", point=point)
        shown, hidden = drawn_and_hidden(ax)
        assert shown + hidden == path.forest.n_nodes
        assert shown == 63  # 32 tips and the splits above them
    shown, hidden = drawn_and_hidden(path.plot("tree", point=0, max_depth=2))
    assert (shown, shown + hidden) == (7, path.forest.n_nodes)


def test_kept_nodes_are_drawn_before_pruned_ones():
    data = load_diabetes()
    tree = DecisionTreeRegressor(random_state=0).fit(data.data, data.target)
    path = sc.prune_path(tree, data.data, data.target)
    small = path.select(max_leaves=25)
    ax = path.plot("tree", point=small)
    assert len(named(ax, "kept leaf")) == small.row["n_leaves"]
    assert not named(ax, "hidden")


def test_a_dropped_tree_is_all_ghosts(forest):
    path = sc.prune_path(forest, *OLD, solver="fewer_trees")
    keep = path.decision(len(path) - 1).keep
    start = path.forest.tree_start
    gone = next(t for t in range(path.forest.n_trees) if not keep[start[t] : start[t + 1]].any())
    ax = path.plot("tree", point=-1, tree=gone)
    assert len(named(ax, "ghost")) == start[gone + 1] - start[gone]
    assert not named(ax, "kept leaf")
    assert ": 0 of" in ax.get_title()
    with pytest.raises(ValueError, match="trees 0 to 14"):
        path.plot("tree", tree=15)


def test_leaves_of_a_boosted_tree_show_their_contribution():
    data = load_diabetes()
    booster = GradientBoostingRegressor(n_estimators=3, max_depth=1, random_state=0).fit(data.data, data.target)
    path = sc.prune_path(booster, data.data, data.target, solver="weakest_link")
    labels = [text.get_text().split("\n")[0] for text in named(path.plot("tree", point=0, tree=1), "kept leaf")]
    values = booster.learning_rate * booster.estimators_[1, 0].tree_.value[1:, 0, 0]
    assert labels == [f"{value:+.4g}" for value in values]


def test_raised_subtrees_are_drawn_in_their_old_places():
    tree = DecisionTreeClassifier(max_features=2, random_state=1).fit(*OLD)
    path = sc.prune_path(tree, *NEW, solver=sc.solvers.ReducedError(raising=True))
    ax = path.plot("tree", point=-1)
    assert len(named(ax, "kept leaf")) == path.table["n_leaves"][-1]


def test_opacity_increases_with_support(of_tree):
    path = sc.prune_path(of_tree.source.model, *OLD, solver=sc.solvers.MaxHeap(subsamples=10, penalties=8))
    texts = [*named(path.plot("tree", point=0), "kept split")]
    darkness = sorted(text.get_alpha() for text in texts)
    assert darkness == pytest.approx(sorted(0.2 + 0.8 * path.support[path.forest.is_split]))
    assert darkness[0] < darkness[-1]


def test_long_names_and_dollar_signs_are_shown_as_text(of_tree):
    names = tuple(f"$x_{k}^$ {'long' * 20}" for k in range(30))
    source = of_tree.source.__class__(of_tree.source.model)
    source.forest = replace(of_tree.forest, feature_names=names)
    path = replace(of_tree, source=source)
    for kind in ("tree", "features"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # no room left, say
            ax = path.plot(kind, point=1)
            ax.figure.draw_without_rendering()
        assert any("$x_" in text.get_text() for text in ax.findobj(Text))  # the sign itself, not what TeX makes of it
        assert all(not text.get_parse_math() for text in ax.findobj(Text) if "$x_" in text.get_text())


def test_a_pruning_of_a_clone_is_drawn_on_the_clone(forest):
    path = sc.prune_path(forest, *OLD, cost=sc.costs.FeatureCost(), solver="min_cut", regrow=True).evaluate(*NEW)
    clone = next(pruned for pruned in path if pruned.given is not None and pruned.row["n_leaves"] > 15)
    assert repr(clone).startswith("Pruned(RandomForestClassifier, of a clone, ")
    ax = path.plot("tree", point=clone)
    nodes = slice(*clone.source.forest.tree_start[:2])
    assert sum(drawn_and_hidden(ax)) == nodes.stop
    assert len(named(ax, "ghost")) <= (~clone.decision.keep[nodes]).sum()
    assert line_of(path.plot(mark=clone), "chosen") == ([clone.row["cost"]], [clone.row["loss"]])
    used = sum(width > 0 for width in bars(path.plot("features", point=clone), "after").values())
    assert used == len(clone.forest.features_used)


def test_a_pruned_draws_its_own_tree(of_tree):
    small = of_tree.select(max_leaves=3)
    assert len(named(small.plot("tree"), "kept leaf")) == small.row["n_leaves"]


def test_a_pruned_marks_itself_on_its_curve(of_tree):
    small = of_tree.select(max_leaves=3)
    assert line_of(small.plot(), "chosen") == ([small.row["n_nodes"]], [small.row["loss"]])
    with pytest.raises(ValueError, match="belongs to no path"):
        replace(small, path=None).plot()


def bars(ax, gid):
    return {
        tick.get_text(): bar.get_width()
        for tick, bar in zip(ax.get_yticklabels(), named(ax, gid), strict=True)
        if bar.get_width()
    }


def test_bars_count_the_splits_before_and_after(of_features):
    chosen = of_features.select(max_cost=6)
    ax = of_features.plot("features", point=chosen)
    model = chosen.to_model()
    after = np.concatenate([tree.tree_.feature[tree.tree_.feature >= 0] for tree in model.estimators_])
    assert bars(ax, "after") == {X.columns[k]: (after == k).sum() for k in np.unique(after)}
    used = np.unique(of_features.forest.feature[of_features.forest.is_split])
    assert len(named(ax, "before")) == min(len(used), 25)
    assert ax.get_title().startswith(f"{len(np.unique(after))} of {len(used)} features")


def test_prices_are_written_beside_the_bars(of_features):
    chosen = of_features.select(max_cost=6)
    prices = {name: float(k) for k, name in enumerate(X.columns)}
    still = {X.columns[k]: k for k in chosen.forest.features_used}
    total = sum(k for k in np.unique(of_features.forest.feature[of_features.forest.is_split]))
    for given in (prices, list(prices.values()), sc.costs.FeatureCost(prices)):
        ax = of_features.plot("features", point=chosen, prices=given)
        assert sorted(text.get_text() for text in named(ax, "price")) == sorted(str(k) for k in still.values())
        assert all(text.get_text().startswith("saves ") for text in named(ax, "price saved"))
        assert ax.get_title().endswith(f"price {sum(still.values())} of {total}")


def test_prices_of_groups_and_rows_count(of_features):
    from secateur.plotting.feature_bars import feature_prices

    grouped = sc.costs.FeatureCost(np.ones(30), groups={"lab": (10.0, [0, 2])})
    assert feature_prices(of_features.forest, grouped)[:4].tolist() == [11.0, 1.0, 11.0, 1.0]
    by_row = sc.costs.FeatureCost(row_prices=np.vstack([np.zeros(30), np.full(30, 4.0)]))
    assert feature_prices(of_features.forest, by_row).tolist() == [2.0] * 30
    with pytest.raises(ValueError, match="has shape"):
        feature_prices(of_features.forest, [1.0])


def test_text_is_readable_on_dark_backgrounds(of_tree):
    with pyplot.style.context("dark_background"):
        ax = of_tree.plot("tree", point=1)
        box = named(ax, "kept leaf")[0]
        assert matplotlib.colors.to_hex(box.get_color()) == "#ffffff"
        assert matplotlib.colors.to_hex(box.get_bbox_patch().get_facecolor()) == "#000000"


def test_the_code_of_the_page_on_plots_runs():
    page = (Path(__file__).parents[2] / "docs" / "plots.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    exec(compile(code, "plots.md", "exec"), {})
    assert len(pyplot.get_fignums()) == 3
