"""The whole trade-off, and one point of it

A random forest for handwritten digits is pruned on its training rows. The solid line is the loss on validation rows,
with a band of one standard error. The dotted line is the loss on the training rows, which is optimistic. The star is
the smallest pruning whose loss is at most ten per cent higher.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc

X_train, X_val, y_train, y_val = train_test_split(*load_digits(return_X_y=True), random_state=0)
forest = RandomForestClassifier(40, random_state=0).fit(X_train, y_train)

path = sc.prune_path(forest, X_train, y_train, solver=sc.solvers.BlockDescent(penalties=25)).evaluate(X_val, y_val)
chosen = path.select(max_loss_increase=0.1)

ax = path.plot(mark=chosen)
ax.set_title(f"{chosen.row['n_nodes'] / path.forest.n_nodes:.0%} of the nodes lose at most 10 %")
