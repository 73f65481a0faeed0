"""Write small saved models of the installed CatBoost beside this file, and what they predict.

Run it with the oldest and the newest version that is supported: `python tests/models/make_catboost.py`.
"""

import json
from pathlib import Path

import catboost
import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor, Pool

HERE = Path(__file__).parent
PARAMS = {"iterations": 3, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def rows():
    """Return numbers with gaps, and the same with two columns of categories."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(120, 4)).round(2)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    X[::7, 1] = np.nan
    mixed = X.astype(object)
    mixed[:, 2] = rng.choice(["red", "green", "blue"], 120)
    mixed[:, 3] = rng.choice([str(i) for i in range(15)], 120)
    return X, mixed, y


def models():
    """Return kinds of models, the rows they are for, and the suffix to save them under."""
    X, mixed, y = rows()
    three = np.array(["ash", "birch", "cedar"])[np.digitize(y, [-0.5, 0.5])]
    categories = Pool(mixed, (y > 0).astype(int), cat_features=[2, 3])
    return {
        "regressor": (CatBoostRegressor(**PARAMS).fit(X, y), X, "cbm"),
        "classes": (CatBoostClassifier(**PARAMS).fit(X, three), X, "cbm"),
        "leafwise": (CatBoostRegressor(grow_policy="Lossguide", nan_mode="Max", **PARAMS).fit(X, y), X, "json"),
        "categories": (CatBoostClassifier(one_hot_max_size=1, **PARAMS).fit(categories), mixed, "cbm"),
        "depthwise": (CatBoostClassifier(grow_policy="Depthwise", **PARAMS).fit(categories), mixed, "json"),
    }


def main():
    """Save every kind, and the sums of the first rows."""
    expected = {}
    for kind, (model, X, suffix) in models().items():
        model.save_model(str(HERE / f"catboost-{catboost.__version__}-{kind}.{suffix}"), format=suffix)
        sums = model.predict(X[:40], prediction_type="RawFormulaVal")
        table = [[None if cell != cell else cell for cell in row] for row in X[:40].tolist()]
        expected[f"{kind}.{suffix}"] = {"rows": table, "raw": sums.tolist()}
    (HERE / f"catboost-{catboost.__version__}.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
