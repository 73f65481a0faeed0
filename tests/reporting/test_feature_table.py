"""Features of a report: splits counted at every point, and bills that add up."""

import numpy as np
import pytest

from secateur.forest.masks import NestedMasks, PackedMasks
from secateur.reporting import describe


@pytest.mark.parametrize("which", ["single", "ensemble", "priced"])
def test_splits_are_those_of_the_pruned_forest(which, request):
    path = request.getfixturevalue(which).path
    features = describe(path)["features"]
    for point in range(len(path)):
        feature = path[point].forest.feature
        for number, steps in zip(features["number"], features["steps"], strict=True):
            assert [count for start, count in steps if start <= point][-1] == (feature == number).sum()


def test_features_beyond_the_list_are_counted(ensemble, monkeypatch):
    monkeypatch.setattr("secateur.reporting.feature_table.MOST_FEATURES", 7)
    features = describe(ensemble.path)["features"]
    assert len(features["names"]) == 7
    assert features["not_shown"] == len(ensemble.path.forest.features_used) - 7


def test_rows_pay_for_the_features_on_their_paths(priced):
    X, y = priced.prune
    description = describe(priced.path, X, y, cost=priced.cost)
    points, bills = description["measured"]["points"], description["measured"]["bills"]
    numbers = description["features"]["number"]
    own = np.linspace(0, 3, X.shape[1])
    for place, point in list(enumerate(points))[:: max(len(points) // 4, 1)]:
        needed = needed_features(priced.path[point].forest, X)
        price = needed @ own + 2.0 * needed[:, 3:6].any(axis=1)
        assert bills["mean"][place] == pytest.approx(price.mean(), rel=1e-12, abs=1e-12)
        assert bills["paid"][place] == pytest.approx((needed.mean(axis=0) * own)[numbers].tolist(), rel=1e-5)
        assert bills["groups"][place] == pytest.approx([2.0 * needed[:, 3:6].any(axis=1).mean()], rel=1e-5)
        assert sum(bills["rows"][place]) == len(X)
        assert bills["quantiles"][place] == pytest.approx(np.quantile(price, [0.1, 0.5, 0.9]).tolist(), rel=1e-5)
        assert bills["mean"][place] == pytest.approx(description["table"]["cost"][point], rel=1e-9, abs=1e-9)


def needed_features(forest, X):
    """Walk every row down every tree and note the features asked for."""
    needed = np.zeros(X.shape, bool)
    rows = X.astype(forest.input_dtype)
    for root in forest.root:
        for i, row in enumerate(rows):
            v = int(root)
            while forest.right[v] != -1:
                needed[i, forest.feature[v]] = True
                v = v + 1 if row[forest.feature[v]] <= forest.threshold[v] else int(forest.right[v])
    return needed


def test_nodes_are_present_where_masks_keep_them():
    rng = np.random.default_rng(0)
    removed_at = rng.integers(0, 6, 21).astype(np.int32)
    nodes = rng.permutation(21)[:13]
    for masks in (NestedMasks(removed_at, 5), PackedMasks.pack(rng.random((5, 21)) < 0.5)):
        expected = np.array([masks.keep(point)[nodes] for point in range(5)])
        np.testing.assert_array_equal(masks.present(nodes), expected)
