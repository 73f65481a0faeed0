"""Pessimistic error: how many standard errors?

Half an error is added for every leaf, and a subtree is kept only if it is better than a leaf by some number of standard
errors. No held-out rows are needed. The number of standard errors is a free parameter; one is usual.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
standard_errors = [0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]
leaves, wrong = np.zeros((2, 5, len(standard_errors)))
for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
    tree = DecisionTreeClassifier(max_features=5, random_state=0).fit(X[train], y[train])
    for k, number in enumerate(standard_errors):
        path = sc.prune_path(tree, X[train], y[train], solver=sc.solvers.PessimisticError(number))
        pruned = path.evaluate(X[test], y[test])[-1]
        leaves[fold, k], wrong[fold, k] = pruned.row["n_leaves"], pruned.row["loss"]

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.plot(standard_errors, leaves.mean(axis=0), "-o", color="#2b87c8", label="leaves")
ax.set(xlabel="standard errors", ylabel="leaves, mean of five folds", ylim=(0, None))
error = ax.twinx()
error.plot(standard_errors, 100 * wrong.mean(axis=0), "--s", color="#e08a1e", label="wrong labels")
error.set(ylabel="wrong labels on the fold left out (%)", ylim=(0, 10))
fewer = 1 - leaves[:, 4].sum() / leaves[:, 0].sum()
ax.set_title(f"With one standard error a tree has {fewer:.0%} fewer leaves than with none")
ax.legend(handles=[*ax.lines, *error.lines], frameon=False, loc="lower left")
