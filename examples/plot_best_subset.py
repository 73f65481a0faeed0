"""Best subset: the best trees within a node budget, with a bound

Which whole trees within a node budget have the least squared error? Branch and bound searches for them. The line is
the subset found; no subset has an error below the bound. Where the two meet, the subset is proved optimal.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import secateur as sc

X, y = load_diabetes(return_X_y=True)
forest = RandomForestRegressor(25, max_depth=3, random_state=0).fit(X[::2], y[::2])
table = sc.prune_path(forest, X[1::2], y[1::2], solver=sc.solvers.BestSubset(time_limit=1)).table

figure, ax = plt.subplots(figsize=(7, 4.3), layout="constrained")
ax.plot(table["budget"][1:], table["objective"][1:], "-o", color="#2b87c8", label="best subset found")
ax.plot(table["budget"][1:], table["bound"][1:], "_", color="#e08a1e", ms=16, mew=2.5, label="no subset is below this")
ax.set(xlabel="node budget", ylabel="squared error on the rows chosen by")
proved = (table["gap"][1:] < 1e-6).sum()
ax.set_title(f"Proved to be the best at {proved} of {len(table['gap']) - 1} budgets")
ax.legend(frameon=False)
