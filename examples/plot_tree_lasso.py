"""Tree lasso: one weight per tree

Every tree gets a weight, and the lasso sets many weights to 0. At each number of trees, its loss on validation rows is
compared with that of keeping as many of the best trees unweighted. Many weights are fitted to few rows: on the right,
where the penalty is small, the validation loss rises although the loss on the pruning rows falls.
"""

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_diabetes(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.66, random_state=0)
X_prune, X_val, y_prune, y_val = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestRegressor(100, random_state=0).fit(X_train, y_train)


def path_of(solver):
    return sc.prune_path(forest, X_prune, y_prune, solver=solver).evaluate(X_val, y_val)


ax = path_of("tree_lasso").plot(x="n_trees", label="tree lasso", baselines={"fewer trees": path_of("fewer_trees")})
ax.set_title("Beyond some 40 trees the lasso fits noise")
