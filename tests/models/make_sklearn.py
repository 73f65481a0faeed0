"""Write small .skops models of the installed scikit-learn beside this file, and what they predict.

Run it with the oldest and the newest version that is supported: `python tests/models/make_sklearn.py`.
"""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from secateur.files.models import save_model

HERE = Path(__file__).parent
SMALL = {"max_depth": 3, "random_state": 0}


def models():
    """Return kinds of fitted models, and the rows they were fitted on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).round(2)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    three = np.array(["ash", "birch", "cedar"])[np.digitize(y, [-0.5, 0.5])]
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    scaled = make_column_transformer((StandardScaler(), [0, 1]), remainder="passthrough")
    return {
        "tree": (DecisionTreeClassifier(**SMALL).fit(gaps, three), gaps),
        "forest": (RandomForestClassifier(4, **SMALL).fit(gaps, three), gaps),
        "numbers": (RandomForestRegressor(4, **SMALL).fit(gaps, y), gaps),
        "boosting": (GradientBoostingClassifier(n_estimators=3, **SMALL).fit(X, three), X),
        "histograms": (HistGradientBoostingRegressor(max_iter=3, categorical_features=[], **SMALL).fit(gaps, y), gaps),
        "classes": (HistGradientBoostingClassifier(max_iter=3, **SMALL).fit(gaps, three), gaps),
        "isolation": (IsolationForest(n_estimators=4, max_samples=32, random_state=0).fit(X), X),
        "pipeline": (make_pipeline(scaled, RandomForestRegressor(4, **SMALL)).fit(X, y), X),
    }


def main():
    """Save every kind, and what it says of the first rows."""
    expected = {}
    for kind, (model, X) in models().items():
        save_model(model, HERE / f"sklearn-{sklearn.__version__}-{kind}.skops", force=True)
        answer = getattr(model, "predict_proba", getattr(model, "score_samples", None)) or model.predict
        rows = [[None if cell != cell else cell for cell in row] for row in X[:30].tolist()]
        expected[kind] = {"rows": rows, "method": answer.__name__, "answer": answer(X[:30]).tolist()}
    (HERE / f"sklearn-{sklearn.__version__}.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
