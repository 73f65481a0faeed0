"""How stable is each node?

Stability selection prunes fifty random halves of the rows. The support of a node is the fraction of halves in which it
is kept; darker nodes have more support. Splits near the root are kept almost always; some of those far down depend on
the sample.
"""

from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

import secateur as sc

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
tree = DecisionTreeRegressor(max_leaf_nodes=14, random_state=0).fit(X, y)

path = sc.prune_path(tree, X, y, solver=sc.solvers.MaxHeap(subsamples=50, stable_smallest=0.05))

ax = path.plot("tree", point=0)
sure = (path.support >= 0.9).sum()
ax.set_title(f"{sure} of {path.forest.n_nodes} nodes stay in at least 90 % of the halves")
