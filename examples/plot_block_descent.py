"""Trees pruned jointly

Three ways to prune the same forest, evaluated on the same validation rows: all trees jointly with refitted leaf values
(block descent), each tree independently (weakest link), and fewer whole trees. Pruning trees independently ignores the
predictions of the other trees and never drops a tree, so weakest-link pruning cannot make a forest small.
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc

X_train, X_val, y_train, y_val = train_test_split(*load_digits(return_X_y=True), random_state=0)
forest = RandomForestClassifier(50, random_state=0).fit(X_train, y_train)


def path_of(solver):
    return sc.prune_path(forest, X_train, y_train, solver=solver).thin(25).evaluate(X_val, y_val)


together = path_of(sc.solvers.BlockDescent(penalties=25))
others = {"weakest link": path_of("weakest_link"), "fewer trees": path_of("fewer_trees")}

ax = together.plot(label="block descent", baselines=others)
losses = [path.select(max_nodes=1000).row["loss"] for path in (together, *others.values())]
ax.set_title(
    "With 1,000 nodes: {:.2f} pruned together, {:.2f} one by one, {:.2f} as whole trees".format(*losses), fontsize=11
)
