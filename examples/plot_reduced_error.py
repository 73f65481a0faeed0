"""Reduced error: pruning on held-out rows

A fully grown tree makes no error on its training rows and many on other rows. Reduced-error pruning finds the smallest
of the most accurate prunings on held-out rows. On those the error falls by construction; the test rows, which were not
used before, show how much of the gain remains.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)
path = sc.prune_path(tree, X_prune, y_prune, solver="reduced_error")

rows = {"training rows": (X_train, y_train), "rows pruned by": (X_prune, y_prune), "test rows": (X_test, y_test)}
wrong = np.array([path.evaluate(*some).table["loss"] for some in rows.values()])

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
place = np.arange(3)
before = ax.bar(
    place - 0.2, 100 * wrong[:, 0], 0.38, color="0.65", label=f"unpruned, {path.table['n_leaves'][0]} leaves"
)
after = ax.bar(
    place + 0.2, 100 * wrong[:, -1], 0.38, color="#2b87c8", label=f"pruned, {path.table['n_leaves'][-1]} leaves"
)
for bars in (before, after):
    ax.bar_label(bars, fmt="%.1f")
ax.set_xticks(place, rows)
ax.set(ylabel="wrong labels (%)", title="The gain on the rows pruned by is not the gain on new rows")
ax.margins(y=0.12)
ax.legend(frameon=False)
