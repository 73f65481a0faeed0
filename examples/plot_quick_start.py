"""A forest a few hundred times smaller, as accurate as before

The call and the curve of the quick start, on Friedman's first problem: five of ten features matter, and the noise has
variance 1. The star is the smallest pruning whose loss on the validation rows is at most five per cent higher.
"""

from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = make_friedman1(8000, noise=1.0, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestRegressor(100, random_state=0).fit(X_train, y_train)

chosen = sc.prune(forest, X_train, y_train, validation=(X_val, y_val), max_loss_increase=0.05, return_pruned=True)
before, after = forest.score(X_test, y_test), chosen.model.score(X_test, y_test)

ax = chosen.plot()
factor = sc.as_forest(forest).n_nodes / chosen.row["n_nodes"]
ax.set_title(f"{factor:.0f} times fewer nodes, R² on test rows {before:.3f} before and {after:.3f} after")
