"""Minimum error: the weight of the prior

Class counts at a node are smoothed by m additional rows with the class frequencies of the whole data. The larger m, the
less weight small leaves have, and the smaller the tree. Five-fold cross-validation chooses m.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
prior = [0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 200]
leaves, wrong = np.zeros((2, 5, len(prior)))
for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
    tree = DecisionTreeClassifier(max_features=5, random_state=0).fit(X[train], y[train])
    for k, m in enumerate(prior):
        path = sc.prune_path(tree, X[train], y[train], solver=sc.solvers.MinimumError(m=m))
        pruned = path.evaluate(X[test], y[test])[-1]
        leaves[fold, k], wrong[fold, k] = pruned.row["n_leaves"], pruned.row["loss"]

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.semilogx(prior, leaves.mean(axis=0), "-o", color="#2b87c8", label="leaves")
ax.set(xlabel="m: rows the prior is worth (logarithmic)", ylabel="leaves, mean of five folds", ylim=(0, None))
error = ax.twinx()
error.semilogx(prior, 100 * wrong.mean(axis=0), "--s", color="#e08a1e", label="wrong labels")
error.set(ylabel="wrong labels on the fold left out (%)", ylim=(0, 10))
fewer = 1 - leaves[:, 5].sum() / leaves[:, 0].sum()
ax.set_title(f"A tree whose prior is worth 10 rows has {fewer:.0%} fewer leaves than with 0.1")
ax.legend(handles=[*ax.lines, *error.lines], frameon=False, loc="lower left")
