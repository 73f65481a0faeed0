"""The best tree of every size

Weakest-link pruning finds the corners of the convex hull: the trees that are optimal at some penalty. The best tree
with exactly k leaves exists for every k, and dynamic programming finds it, also where it lies above the hull. (Trees
with fewer than four leaves are outside the picture.)
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
tree = DecisionTreeClassifier(max_features=3, random_state=3).fit(X, y)

every = sc.prune_path(tree, X, y, solver="optimal_size", cost="leaves").table
hull = sc.prune_path(tree, X, y, solver="weakest_link", cost="leaves", loss="zero_one").table

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.plot(hull["n_leaves"], len(y) * hull["risk"], "-s", color="#e08a1e", ms=9, mfc="none", label="best at some penalty")
ax.plot(every["n_leaves"], len(y) * every["risk"], "o", color="#2b87c8", ms=4, label="best with so many leaves")
ax.set(xlabel="leaves", ylabel="training rows with a wrong label", xlim=(3, None), ylim=(-1, 32))
n_sizes, n_corners = ((table["n_leaves"] > 3).sum() for table in (every, hull))
ax.set_title(f"From 4 leaves on {n_sizes} sizes, of which the weakest link finds {n_corners}")
ax.legend(frameon=False)
