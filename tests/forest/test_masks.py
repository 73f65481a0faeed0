import numpy as np
from hypothesis import given
from tests.strategies import forests, generators, random_keep

from secateur.path import NestedMasks, PackedMasks


def nested(rng, forest, n_points=4):
    """Return a few random nested masks and the same as a matrix."""
    keeps = [np.ones(forest.n_nodes, bool)]
    for _ in range(n_points - 1):
        keeps.append(keeps[-1] & random_keep(rng, forest))
    keeps = np.array(keeps)
    return NestedMasks(keeps.sum(axis=0).astype(np.int32), n_points), keeps


@given(forests(links=("identity", "softmax")), generators)
def test_nested_and_packed_masks_say_the_same(forest, rng):
    masks, keeps = nested(rng, forest)
    packed = PackedMasks.pack(keeps)
    assert packed.n_points == masks.n_points
    assert all(np.array_equal(masks.keep(i), packed.keep(i)) for i in range(len(keeps)))
    for name, column in masks.sizes(forest).items():
        assert np.array_equal(column, packed.sizes(forest)[name]), name
    as_leaf, as_split = rng.random((2, forest.n_nodes))
    np.testing.assert_allclose(
        masks.totals(forest, as_leaf, as_split), packed.totals(forest, as_leaf, as_split), atol=1e-9
    )


@given(forests(links=("identity", "softmax")), generators)
def test_taking_points_keeps_their_masks(forest, rng):
    masks, keeps = nested(rng, forest)
    points = np.array([0, 2, 3])
    for taken in (masks.take(points), PackedMasks.pack(keeps).take(points)):
        assert taken.n_points == 3
        assert all(np.array_equal(taken.keep(i), keeps[p]) for i, p in enumerate(points))
