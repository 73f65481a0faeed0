"""Primal-dual: adjust prices until the trees agree

Each tree is pruned separately at its own prices, and subgradient steps move prices between trees. The optima of the
trees sum to a lower bound that rises step by step, and their prunings are feasible. The exact minimum lies in between.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(40, random_state=0).fit(X[::2], y[::2])
steps = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100]
penalty = 0.008
answers = [
    sc.prune_path(
        forest,
        X[1::2],
        y[1::2],
        solver=sc.solvers.PrimalDual(penalties=(penalty,), max_iterations=number, tolerance=1e-9),
    ).table
    for number in steps
]

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.semilogx(steps, [table["objective"][-1] for table in answers], "-o", color="#2b87c8", label="best pruning so far")
ax.semilogx(steps, [table["bound"][-1] for table in answers], "-s", color="#e08a1e", label="no pruning is below this")
ax.set(xlabel="steps (logarithmic)", ylabel=f"share of wrong labels + {penalty} · cost")
enough = next(
    number for number, table in zip(steps, answers, strict=True) if table["objective"][-1] < 1.001 * table["bound"][-1]
)
ax.set_title(f"After {enough} steps pruning and bound agree to 0.1 %")
ax.legend(frameon=False)
