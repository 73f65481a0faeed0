"""Targets as a forest sees them."""

import numpy as np
import pytest

from secateur.data.targets import LARGEST, as_real_target, class_codes


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_targets_whose_squares_cannot_be_compared_are_refused(sign):
    assert as_real_target(np.array([[sign * LARGEST]])).item() == sign * LARGEST
    with pytest.raises(ValueError, match="absolute values must be at most"):
        as_real_target(np.array([[0.0], [2 * sign * LARGEST]]))


def test_codes_are_positions_among_the_classes_in_their_order():
    classes = np.array(["b", "a", "c"])
    assert class_codes(np.array(["a", "b", "a"]), classes).tolist() == [1, 0, 1]
