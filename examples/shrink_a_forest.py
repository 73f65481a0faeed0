"""Prune a random forest and inspect the whole trade-off before choosing a point.

The path is computed on the training rows and evaluated on validation rows; the chosen model is tested on separate test
rows.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_diabetes(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestRegressor(100, random_state=0).fit(X_train, y_train)

path = sc.prune_path(forest, X_train, y_train).thin(40).evaluate(X_val, y_val)
print(path)
print("  nodes   validation loss")
for nodes, loss, se in zip(path.table["n_nodes"], path.table["loss"], path.table["loss_se"], strict=True):
    print(f"{nodes:7d}   {loss:7.0f} ± {se:.0f}")

chosen = path.select()  # the smallest within one per cent of the lowest validation loss
small = chosen.to_model()
print(chosen)
print(f"R² on test rows: {forest.score(X_test, y_test):.3f} before, {small.score(X_test, y_test):.3f} after")
