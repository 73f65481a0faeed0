"""Weakest links: nested trees along the penalty

The penalty is the price of a leaf. As it increases, the split that saves the least per leaf is cut next. The trees are
nested: a split that is cut at one penalty is cut at all larger ones. Three points of the path are drawn as trees.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

data = load_iris(as_frame=True)
X, y = data.data, data.target_names[data.target]
tree = DecisionTreeClassifier(random_state=0).fit(X, y)
path = sc.prune_path(tree, X, y, cost="leaves")
leaves, penalty = path.table["n_leaves"], path.table["penalty"]

figure = plt.figure(figsize=(13, 8), layout="constrained")
stairs, *trees = figure.subplot_mosaic("sss;abc", height_ratios=[1, 1.7]).values()
stairs.step(penalty, leaves, where="post", lw=2)
stairs.set(xlabel="penalty (Brier score a leaf must save)", ylabel="leaves", xlim=(0, None))
stairs.set_title(f"{len(path)} trees, each a part of the one before")
for ax, point, letter in zip(trees, (2, 4, 5), "ABC", strict=True):
    stairs.plot(penalty[point], leaves[point], "o", color="#d55e00")
    stairs.annotate(letter, (penalty[point], leaves[point]), (5, 5), textcoords="offset points", weight="bold")
    path.plot("tree", point=point, ax=ax).set_title(f"{letter}: {leaves[point]} leaves")
