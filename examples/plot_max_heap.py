"""Max-heap: fit leaf values and structure together

One tree on one feature, so that its predictions are a curve. Max-heap pruning gives every node a weight, at most that
of its parent in absolute value, and fits all weights together. Steps supported by few rows shrink or vanish.
Weakest-link pruning with the same number of leaves removes other steps and leaves the height of the rest unchanged.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

import secateur as sc

X, y = load_diabetes(return_X_y=True, scaled=False)
X = X[:, [2]]  # the body mass index alone
tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0).fit(X, y)

heap = sc.prune_path(tree, X, y, solver="max_heap").select(max_leaves=20)
link = sc.prune_path(tree, X, y, solver="weakest_link").select(max_leaves=heap.row["n_leaves"])

grid = np.linspace(X.min(), X.max(), 500)[:, None]
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(X, y, ".", color="0.6", ms=3, label="patients")
ax.plot(grid, tree.predict(grid), color="0.6", lw=1, label=f"unpruned, {tree.get_n_leaves()} leaves")
ax.plot(grid, link.predict(grid), color="#e08a1e", lw=1.5, label=f"weakest link, {link.row['n_leaves']} leaves")
ax.plot(grid, heap.predict(grid), color="#2b87c8", lw=2.2, label=f"max-heap, {heap.row['n_leaves']} leaves")
ax.set(
    xlabel="body mass index (kg/m²)",
    ylabel="progression of diabetes after a year",
    title="Max-heap pruning makes steps smaller, not only fewer",
)
ax.legend(frameon=False)
