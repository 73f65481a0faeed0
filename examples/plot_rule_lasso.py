"""Rule lasso: sparse is not small

Every node is a rule with a weight, and the lasso sets most weights to 0. However, a tree has to keep all ancestors of a
rule with non-zero weight, and their siblings. In max-heap pruning a node of weight 0 has no weights below it, so only
siblings are added: the same number of weights needs fewer nodes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

import secateur as sc

X, y = load_diabetes(return_X_y=True)
tree = DecisionTreeRegressor(min_samples_leaf=3, random_state=0).fit(X, y)


def nodes_and_rules(solver):
    path = sc.prune_path(tree, X, y, solver=solver)
    above = np.maximum(path.forest.parent, 0)
    for point in range(1, len(path)):
        keep, value = path.decision(point).keep, path.decision(point).value[:, 0]
        yield path.table["n_nodes"][point], (np.abs(value - value[above])[keep] > 1e-9).sum()


figure, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
for solver, color in (("rule_lasso", "#2b87c8"), ("max_heap", "#e08a1e")):
    nodes, rules = np.array(list(nodes_and_rules(solver))).T
    ax.plot(rules, nodes, "o-", color=color, label=solver.replace("_", " "))
ax.plot(rules, rules, "--", color="0.6", label="as many nodes as rules")
ax.set(xlabel="nodes with a weight", ylabel="nodes kept", title="With as many weights, the rule lasso keeps more nodes")
ax.legend(frameon=False)
