from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import secateur as sc
from secateur.libraries.adapter import Adapter

X, y = load_breast_cancer(return_X_y=True)
EVIL = "<script>alert('x')</script>\"&"


class Page(HTMLParser):
    """Parsed HTML: tags in order, cells of tables by row, and all text."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.rows, self.words = [], [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on")
            assert name not in ("href", "src")
            assert "url(" not in (value or "")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture(scope="module")
def path():
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X[::2], y[::2])
    return sc.prune_path(forest, X[::2], y[::2], solver="weakest_link").evaluate(X[1::2], y[1::2])


def test_a_path_shows_one_row_per_size_along_its_front(path):
    page = Page(path._repr_html_())
    head, *rows = page.rows
    assert head == ["point", "nodes", "trees", "leaves", "risk", "loss (brier)", "changed"]
    assert 5 <= len(rows) <= 11
    assert int(rows[0][0]) == 0
    for row in rows:
        facts = path[int(row[0])].row
        assert int(row[1]) == facts["n_nodes"]
        assert row[5] == f"{facts['loss']:.4g} ± {facts['loss_se']:.2g}"
        assert row[6] == f"{facts['changed']:.1%}"
        if row is not rows[0]:  # no other point is as small and loses less
            assert path.table["loss"][path.table["n_nodes"] <= facts["n_nodes"]].min() == facts["loss"]
    sizes = [int(row[1]) for row in rows]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == path.table["n_nodes"].min()
    assert f"WeakestLink(), pruned with {len(X[::2])} rows" in page.text
    assert "the rows passed to evaluate" in page.text


def test_the_rows_of_a_long_front_are_spread_over_all_sizes():
    forest = RandomForestClassifier(30, random_state=0).fit(X[::2], y[::2])
    path = sc.prune_path(forest, X[::2], y[::2])
    _, *rows = Page(path._repr_html_()).rows
    sizes = np.log([int(row[1].replace(",", "")) for row in rows])
    # The unpruned model, above the front, is the first row.
    assert 6 <= len(rows) <= 12
    assert np.abs(np.diff(sizes[1:])).max() < 0.35 * (sizes[1] - sizes[-1])


def test_a_forest_shows_its_sizes(path):
    page = Page(path.forest._repr_html_())
    table = dict(page.rows)
    assert table["nodes"] == f"{path.forest.n_nodes:,}"
    assert table["trees"] == "20"
    assert table["features used"] == f"{len(path.forest.features_used)} of 30"
    assert "classes: 2; link: probability" in page.text


def test_a_path_that_was_not_evaluated_shows_its_risk():
    tree = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0).fit(*load_diabetes(return_X_y=True))
    path = sc.prune_path(tree, *load_diabetes(return_X_y=True))
    page = Page(path._repr_html_())
    assert len(page.rows) == 1 + len(path)
    assert "front" not in page.text
    assert page.rows[0][-1] == "risk"
    assert "risk by nodes" in page.text


def test_a_risk_of_another_loss_says_which(path):
    judged_otherwise = path.evaluate(X[1::2], y[1::2], loss=sc.losses.ZeroOne())
    assert Page(judged_otherwise._repr_html_()).rows[0][4:6] == ["risk (brier)", "loss (zero_one)"]


def test_another_cost_has_a_column(path):
    by_features = sc.prune_path(path.source.model, X[::2], y[::2], solver="min_cut")
    page = Page(by_features._repr_html_())
    column = page.rows[0].index("cost")
    assert page.rows[1][column] == f"{by_features.table['cost'][0]:,.4g}"
    assert "cost (features)" in page.text


def test_the_sketch_falls_where_the_loss_falls(path):
    html = path._repr_html_()
    points = html.split('<polyline points="')[1].split('"')[0]
    across, down = np.array([list(map(float, pair.split(","))) for pair in points.split()]).T
    assert (np.diff(across) >= 0).all()
    loss = path.table["loss"][np.argsort(path.table["n_nodes"], kind="stable")]
    assert np.corrcoef(down, -loss)[0, 1] > 0.999
    assert ((across >= 0) & (across <= 260) & (down >= 0) & (down <= 120)).all()


def test_one_point_has_a_table_but_no_sketch():
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, np.zeros(len(X)))
    page = Page(sc.prune_path(stump, X, np.zeros(len(X)))._repr_html_())
    assert len(page.rows) == 2
    assert "svg" not in page.tags


def test_a_pruned_shows_before_and_after(path):
    chosen = path.select(max_nodes=150)
    page = Page(chosen._repr_html_())
    table = {row[0]: row[1:] for row in page.rows[1:]}
    assert table["nodes"][:2] == [str(path.forest.n_nodes), str(chosen.forest.n_nodes)]
    assert table["leaves"][:2] == [str(path.forest.n_leaves), str(chosen.forest.n_leaves)]
    assert table["depth"][:2] == [str(path.forest.max_depth), str(chosen.forest.max_depth)]
    assert table["features"][:2] == [str(len(path.forest.features_used)), str(len(chosen.forest.features_used))]
    assert table["loss (brier)"][0] == f"{path.table['loss'][0]:.4g}"
    assert f"Point {chosen.point} by WeakestLink()" in page.text


def test_names_that_are_tags_are_escaped(path):
    evil = replace(path, solver=EVIL).with_info(loss=EVIL, evaluated_on=EVIL, cost=EVIL)
    model = type(EVIL, (), {})()
    evil = replace(evil, source=replace_model(path.source, model))
    for html in (evil._repr_html_(), evil[1]._repr_html_()):
        page = Page(html)
        assert "script" not in page.tags
        assert "<script" not in html
        assert EVIL in page.text


def replace_model(adapter: Adapter, model):
    """Return the adapter of another model with the same forest."""
    other = type(adapter)(adapter.model)
    other.forest = adapter.forest
    other.model = model
    return other


def test_nothing_is_pickled_or_written(path, monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(type(path.source), "n_bytes", refuse)
    monkeypatch.setattr(type(path.source), "write", refuse)
    path._repr_html_()
    path[1]._repr_html_()


def test_losses_that_are_infinite_are_left_out_of_the_sketch(path):
    loss = path.table["loss"].copy()
    loss[[0, 5]] = np.inf
    html = replace(path, table={**path.table, "loss": loss})._repr_html_()
    svg = html[html.index("<svg") : html.index("</svg>")]
    assert "nan" not in svg
    assert "inf" not in svg


def test_reprs_are_one_line(path):
    assert repr(path) == (
        f"Path({len(path)} points, {path.forest.n_nodes} to 20 nodes, brier {path.table['loss'].min():.4g} to "
        f"{path.table['loss'].max():.4g}, solver=WeakestLink())"
    )
    row = path[3].row
    assert repr(path[3]) == (
        f"Pruned(RandomForestClassifier, {row['n_nodes']} of {path.forest.n_nodes} nodes, 20 of 20 trees, "
        f"brier {path.table['loss'][0]:.4g} → {row['loss']:.4g}, point 3)"
    )


def test_reprs_omit_losses_that_were_not_measured(path):
    tree = path.source.model.estimators_[0]
    bare = sc.prune_path(tree, X, y)
    assert repr(bare) == f"Path({len(bare)} points, {bare.forest.n_nodes} to 1 nodes, solver=WeakestLink())"
    assert repr(bare[0]) == (
        f"Pruned(DecisionTreeClassifier, {bare.forest.n_nodes} of {bare.forest.n_nodes} nodes, point 0)"
    )
