"""Write forests (.secateur) and paths (.npz) in the formats of the installed secateur, and what they answer.

Run it when a format changes, and leave the files of older versions where they are: later versions must read them.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

import secateur as sc
from secateur.files.models import load_model, save_model
from secateur.forest.routing import raw_scores, route

HERE = Path(__file__).parent
FORESTS = {
    "classes": "sklearn-1.9.1-forest.skops",
    "isolation": "sklearn-1.9.1-isolation.skops",
    "histograms": "sklearn-1.9.1-classes.skops",
    "dart": "xgboost-3.2.0-dart.ubj",
    "zeros": "lightgbm-4.7.0-zeros.txt",
    "categories": "lightgbm-4.7.0-categories.txt",
    "symmetric": "catboost-1.2.10-classes.cbm",
}
"""Saved models, each with another kind of sums, splits or answers."""
SOLVERS = ("weakest_link", "block_descent", "fewer_trees", "tree_lasso")
"""Solvers whose paths keep different things: cuts inside each other, any cuts, new values, weights of trees."""


def sums(forest, X):
    """Return what the trees of a forest add up to."""
    return raw_scores(forest, route(forest, X))


def some_rows(n_features):
    """Return numbers with zeros, whole numbers and gaps."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(scale=2, size=(40, n_features)), rng.integers(0, 3))
    return np.where(rng.random(X.shape) < 0.1, np.nan, X)


def main():
    """Save every forest and every path, and what they answer to some rows."""
    expected = {"forests": {}, "paths": {}}
    for kind, name in FORESTS.items():
        forest = sc.as_forest(load_model(HERE / name))
        save_model(forest, HERE / f"secateur-{sc.__version__}-{kind}.secateur", force=True)
        expected["forests"][kind] = sums(forest, some_rows(forest.n_features)).tolist()
    X = some_rows(4)
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 0
    model = RandomForestClassifier(4, random_state=0).fit(X, y)
    for solver in SOLVERS:
        path = sc.prune_path(model, X, y, solver=solver)
        path.save(HERE / f"secateur-{sc.__version__}-{solver}.npz", force=True)
        expected["paths"][solver] = [path[point].raw(X).tolist() for point in range(len(path))]
    (HERE / f"secateur-{sc.__version__}.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
