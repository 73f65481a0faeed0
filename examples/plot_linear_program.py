"""Linear program and minimum cut agree

The authors of the budget problem formulate it as a linear program with integral solutions. The solutions at twenty
penalties, found by the simplex method, lie on the path that minimum cuts find for all penalties at once.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X[::2], y[::2])
program = sc.prune_path(forest, X[1::2], y[1::2], solver="linear_program")
cut = sc.prune_path(forest, X[1::2], y[1::2], solver="min_cut")

ax = cut.plot(label=f"minimum cut: all {len(cut)} answers")
ax.plot(
    program.table["cost"],
    program.table["risk"],
    "o",
    ms=11,
    mfc="none",
    color="#e08a1e",
    label=f"linear program at {len(program) - 1} penalties",
)
ax.set_title("Every answer of the linear program is a point of the minimum cut's path")
ax.legend(frameon=False)
