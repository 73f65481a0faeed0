"""Write small LightGBM models of the installed version, and what they predict: python tests/models/make_lightgbm.py."""

import json
from pathlib import Path

import lightgbm
import numpy as np

HERE = Path(__file__).parent
PARAMS = {"num_leaves": 5, "min_data_in_leaf": 4, "num_threads": 1, "verbose": -1, "seed": 0}
KINDS = {
    "binary": {"objective": "binary", "sigmoid": 0.8},
    "multiclass": {"objective": "multiclass", "num_class": 3},
    "categories": {"objective": "regression", "min_data_per_group": 1, "cat_smooth": 0.1, "cat_l2": 0.1},
    "zeros": {"objective": "poisson", "zero_as_missing": True},
    "forest": {"objective": "regression", "boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1},
}


def main() -> None:
    """Train each kind on the same rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).round(2)
    X[:, 2] = rng.integers(0, 40, 120)
    X[rng.random(120) < 0.3, 3] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X[:, 0]) + 3 * (X[:, 2] % 3 == 0) + (X[:, 3] == 0)
    rows = np.vstack([X[:10], -X[:10], [[np.inf, -np.inf, np.inf, 0.0], [0.0, 0.0, -1.0, 1e-36]]])
    expected = {}
    for kind, options in KINDS.items():
        y = {"binary": score > 0.5, "multiclass": np.digitize(score, [0.3, 1.2])}.get(kind, np.abs(score))
        columns = [2] if kind == "categories" else "auto"
        data = lightgbm.Dataset(X, y.astype(float), categorical_feature=columns)
        model = lightgbm.train({**PARAMS, **options}, data, 4)
        model.save_model(str(HERE / f"lightgbm-{lightgbm.__version__}-{kind}.txt"))
        expected[kind] = model.predict(rows).tolist()
    content = {"rows": [[repr(x) for x in row] for row in rows.tolist()], "predict": expected}
    (HERE / f"lightgbm-{lightgbm.__version__}.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main()
