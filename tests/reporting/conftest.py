"""Paths to report on: a single tree with nested prunings, a forest with new values, and features that cost."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import secateur as sc


@pytest.fixture(autouse=True)
def short_timing(monkeypatch):
    """Spend little time on measuring latencies; no test depends on their values."""
    monkeypatch.setattr("secateur.reporting.description.SECONDS_PER_POINT", 0.01)


def thirds(X, y):
    """Return rows to train, to prune and to choose by."""
    return [(X[k::3], y[k::3]) for k in range(3)]


@pytest.fixture(scope="session")
def single():
    data = load_iris(as_frame=True)
    train, prune, choose = thirds(data.data, data.target_names[data.target])
    model = DecisionTreeClassifier(random_state=0).fit(*train)
    path = sc.prune_path(model, *prune, solver="weakest_link").evaluate(*choose)
    return SimpleNamespace(model=model, path=path, prune=prune, choose=choose)


@pytest.fixture(scope="session")
def ensemble():
    data = load_breast_cancer(as_frame=True)
    train, prune, choose = thirds(data.data, data.target)
    model = RandomForestClassifier(30, random_state=0).fit(*train)
    solver = sc.solvers.BlockDescent(ridge=25.0, penalties=12)
    path = sc.prune_path(model, *prune, solver=solver).evaluate(*choose)
    return SimpleNamespace(model=model, path=path, prune=prune, choose=choose)


@pytest.fixture(scope="session")
def priced():
    X, y = load_breast_cancer(return_X_y=True)
    train, prune, choose = thirds(X, y)
    model = RandomForestClassifier(8, max_depth=5, random_state=0).fit(*train)
    cost = sc.costs.FeatureCost(np.linspace(0, 3, X.shape[1]), groups={"lab": (2.0, [3, 4, 5])})
    path = sc.prune_path(model, *prune, cost=cost, solver="min_cut").evaluate(*choose)
    return SimpleNamespace(model=model, path=path, prune=prune, choose=choose, cost=cost)
