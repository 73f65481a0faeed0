"""Prune a booster of each library and save it in the library's file format, one of them also as ONNX."""

import tempfile
from pathlib import Path

import catboost
import lightgbm
import onnxruntime
import xgboost
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

import secateur as sc
from secateur.api import prune_point

X, y = make_friedman1(3000, 10, noise=1.0, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

models = {
    "small.ubj": xgboost.XGBRegressor(n_estimators=200, max_depth=5, n_jobs=1),
    "small.txt": lightgbm.LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1),
    "small.cbm": catboost.CatBoostRegressor(iterations=200, thread_count=1, verbose=0, allow_writing_files=False),
}
folder = Path(tempfile.mkdtemp())
for name, model in models.items():
    model.fit(X_train, y_train)
    chosen = prune_point(model, X_train, y_train, validation=(X_prune, y_prune), max_loss_increase=0.01)
    small = chosen.to_model()
    file = chosen.save(folder / name)
    forest = sc.as_forest(file)
    print(
        f"{type(small).__name__:18} {sc.as_forest(model).n_nodes:6} nodes, R² {model.score(X_test, y_test):.3f} -> "
        f"{forest.n_nodes:5} nodes, R² {small.score(X_test, y_test):.3f}; {name}: {file.stat().st_size / 1000:.0f} kB"
    )

session = onnxruntime.InferenceSession(str(chosen.save(folder / "small.onnx")))
predicted = session.run(None, {"X": X_test})[0][:, 0]
print(f"onnxruntime says the same as {type(small).__name__}: {abs(predicted - small.predict(X_test)).max() < 1e-9}")
