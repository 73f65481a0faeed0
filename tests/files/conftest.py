import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier


@pytest.fixture
def tree():
    """Return a small fitted tree."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
