"""Minimum cut: exact pruning under feature cost

A row pays for every feature that some tree tests. Each dot is a pruning that is optimal at its penalty, and the stairs
are the best of them within a budget. No penalty reaches the costs between two dots, but the Lagrangian gives a bound
there: no pruning lies below the orange line.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(30, random_state=0).fit(X[::2], y[::2])

path = sc.prune_path(forest, X[1::2], y[1::2], solver="min_cut")
budgets = np.linspace(0, path.table["cost"][1], 500)
found = [path.select(max_cost=budget) for budget in budgets]

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.plot(path.table["cost"][1:], 100 * path.table["risk"][1:], "o", color="#2b87c8", label="best at some penalty")
ax.plot(
    budgets, [100 * best.row["risk"] for best in found], color="#2b87c8", lw=1, label="best found within the budget"
)
ax.plot(budgets, [100 * best.proof["least_risk"] for best in found], color="#e08a1e", label="no pruning is below this")
ax.set(xlabel="features bought for a row, on average", ylabel="wrong labels of single trees (%)")
gap = max(best.proof["gap"] for best in found)
ax.set_title(f"At any budget, at most {100 * gap:.1f} percentage points from the best pruning there is")
ax.legend(frameon=False)
