"""Prune a forest of 500 trees on 100 features to a few small trees on a few features, and print them.

Only the first five features are informative, but the forest uses all of them. This is the case study of the ForestPrune
paper (Liu and Mazumder 2023, section 4.3) on synthetic data. `--out trees.png` draws the small trees.
"""

import sys

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor, export_text, plot_tree

import secateur as sc

X, y = make_friedman1(1200, n_features=100, noise=1.0, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
names = [f"x{i + 1}" for i in range(100)]

forest = RandomForestRegressor(500, max_depth=6, max_features=0.3, random_state=0).fit(X_train, y_train)
tree = DecisionTreeRegressor(random_state=0).fit(X_train, y_train)
small, larger = (sc.prune(forest, X_train, y_train, validation=(X_val, y_val), max_trees=most) for most in (10, 30))

print("                       trees  nodes  features  depth   RMSE on test rows")
models = {"forest": forest, "one full tree": tree, "at most 10 trees": small, "at most 30 trees": larger}
for name, model in models.items():
    grown = sc.as_forest(model)
    error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
    size = f"{grown.n_trees:5d} {grown.n_nodes:6d} {len(grown.features_used):9d} {grown.max_depth:6d}"
    print(f"{name:22} {size} {error:15.2f}")

print(f"\nThe prediction is the mean of {len(small.estimators_)} trees:\n")
for member in small.estimators_:
    print(export_text(member, feature_names=names, decimals=1))

if "--out" in sys.argv:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, -(-len(small.estimators_) // 2), figsize=(15, 6), layout="constrained")
    panels = panels.ravel()
    for panel in panels:
        panel.axis("off")
    for panel, member in zip(panels, small.estimators_, strict=False):
        plot_tree(
            member, feature_names=names, impurity=False, label="root", filled=True, precision=1, fontsize=8, ax=panel
        )
    figure.savefig(sys.argv[sys.argv.index("--out") + 1], dpi=100)
