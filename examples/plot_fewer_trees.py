"""Fewer trees: which trees to keep?

The simplest way to prune a forest is to drop whole trees: random ones, or all but those that reduce the squared error
of the mean the most. Both orders are evaluated on validation rows.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_diabetes(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.66, random_state=0)
X_prune, X_val, y_prune, y_val = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestRegressor(100, random_state=0).fit(X_train, y_train)


def path_of(order, seed=0):
    solver = sc.solvers.FewerTrees(order=order, seed=seed)
    return sc.prune_path(forest, X_prune, y_prune, solver=solver).evaluate(X_val, y_val)


best = path_of("best_first")
ax = best.plot(
    x="n_trees", label="best first", baselines={"random": path_of("random"), "random, other draw": path_of("random", 1)}
)
ax.set_title(
    f"Squared error of the five trees chosen first: {best[95].row['loss']:.0f}; of all: {best[0].row['loss']:.0f}"
)
