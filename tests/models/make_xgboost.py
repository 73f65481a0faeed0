"""Write small XGBoost models with what they predict: `python make_xgboost.py`, with any version from 1.7 on installed.

`xgboost-<version>-<kind>.json` or `.ubj` is the model, `xgboost-<version>.json` has rows and sums of every kind.
"""

import json
from pathlib import Path

import numpy as np
import xgboost as xgb

HERE = Path(__file__).parent
QUICK = {"max_depth": 3, "eta": 0.5, "nthread": 1, "seed": 0}


def kinds():
    """Yield the name and suffix of each kind, its parameters, target, types of features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    code = rng.integers(0, 8, 120)
    value = np.nan_to_num(X[:, 0]) + rng.normal(size=120) * 0.3
    three = np.digitize(value, [-0.5, 0.5])
    with_code = np.column_stack([X[:, :3], code]).astype(np.float32)
    yield "regression", "json", {"objective": "reg:squarederror"}, X, value, None
    yield "logistic", "ubj", {"objective": "binary:logistic"}, X, (value > 0).astype(int), None
    yield "classes", "json", {"objective": "multi:softprob", "num_class": 3}, X, three, None
    yield "dart", "ubj", {"booster": "dart", "rate_drop": 0.4, "objective": "count:poisson"}, X, np.abs(three), None
    types = ["q", "q", "q", "c"]
    params = {"tree_method": "hist", "max_cat_to_onehot": 1, "objective": "reg:squarederror"}
    yield "categories", "json", params, with_code, value + code % 2, types


def main():
    """Write all models of the installed version."""
    expected = {}
    for kind, suffix, params, X, y, types in kinds():
        matrix = xgb.DMatrix(X, y, feature_types=types, enable_categorical=types is not None)
        booster = xgb.train(QUICK | params, matrix, 4)
        file = HERE / f"xgboost-{xgb.__version__}-{kind}.{suffix}"
        booster.save_model(file)
        rows = xgb.DMatrix(X[:30], feature_types=types, enable_categorical=types is not None)
        expected[file.name] = {
            "feature_types": types,
            "rows": [[None if np.isnan(x) else float(x) for x in row] for row in X[:30]],
            "raw": booster.predict(rows, output_margin=True).astype(float).tolist(),
            "predict": booster.predict(rows).astype(float).tolist(),
        }
    (HERE / f"xgboost-{xgb.__version__}.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
