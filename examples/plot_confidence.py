"""Draw a path with a certified point: which pruning keeps a limit with 95 % confidence, and which only seems to.

The smallest pruning whose measured loss is within the limit may exceed it in truth. The certified one does not, with a
probability of 95 % over the draw of the validation rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor

import secateur as sc

LIMIT = 0.05

X, y = make_friedman1(4500, noise=1.0, random_state=0)
model = RandomForestRegressor(50, random_state=0).fit(X[:1500], y[:1500])
path = sc.prune_path(model, X[1500:3000], y[1500:3000]).evaluate(X[3000:], y[3000:])
usual = path.select(max_loss_increase=LIMIT, guard=0.5)
sure = path.select(max_loss_increase=LIMIT, confidence=0.95)

nodes, loss, error = (path.table[name] for name in ("n_nodes", "loss", "increase_se"))
near = np.flatnonzero(loss < 1.5 * loss[0])
band = {"fmt": ".", "color": "0.6", "ms": 3, "lw": 0.7, "label": "prunings, ± 2 standard errors of the increase"}
_, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.errorbar(nodes[near], loss[near], 2 * error[near], **band)
ax.axhline((1 + LIMIT) * loss[0], color="tab:red", lw=1, label="limit: 5 % above the unpruned model")
chosen = (usual, "tab:orange", "within the limit on these rows"), (sure, "tab:blue", "certified with 95 % confidence")
for point, color, label in chosen:
    ax.plot(point.row["n_nodes"], point.row["loss"], "o", color=color, label=f"{label}: {point.row['n_nodes']} nodes")
ax.set_title("The smallest forest that surely loses at most 5 %")
ax.set(xscale="log", xlabel="nodes", ylabel="squared error on 1,500 validation rows", ylim=(2.2, 7.2))
ax.legend(frameon=False, loc="upper right")

print(sure.guarantee["text"])
print(f"{nodes[0]} nodes before; certified {sure.row['n_nodes']}, by the estimate {usual.row['n_nodes']}")
