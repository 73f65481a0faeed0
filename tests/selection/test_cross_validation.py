"""Cross-validation of a path: which point of a fold's path stands for a point of the whole path."""

import numpy as np

from secateur.selection.cross_validation import typical_penalty


def test_a_point_stands_for_the_middle_of_the_penalties_at_which_it_is_optimal():
    critical = np.array([0.0, 1.0, 4.0, 9.0])
    np.testing.assert_allclose(typical_penalty(critical, critical), [0.5, 2.0, 6.0, np.inf])
    np.testing.assert_allclose(typical_penalty(np.array([1.0]), critical), [2.0])
