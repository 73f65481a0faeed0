"""Draw a path by your own metric: the smallest pruning within a limit on the balanced accuracy, and a certified one.

The loss that a solver minimises and the metric of the user disagree: balanced accuracy counts the rare class as much as
the frequent one. The points are chosen by the metric; the band is two standard errors of its drop.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

import secateur as sc

DROP = 0.03

X, y = make_classification(4500, 12, n_informative=6, weights=[0.85], flip_y=0.05, random_state=0)
model = RandomForestClassifier(30, random_state=0).fit(X[:1000], y[:1000])
path = sc.prune_path(model, X[1000:2500], y[1000:2500]).thin(30)
path = path.evaluate(X[2500:], y[2500:], scoring="balanced_accuracy")
usual = path.select(max_score_drop=DROP, guard=0.5)
sure = path.select(max_score_drop=DROP, confidence=0.95)

nodes, score, error = (path.table[name] for name in ("n_nodes", "score", "score_se"))
shown = np.flatnonzero(nodes > 4)
_, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
band = {"fmt": ".", "color": "0.6", "ms": 3, "lw": 0.7, "label": "prunings, ± 2 standard errors of the drop"}
ax.errorbar(nodes[shown], score[shown], 2 * error[shown], **band)
ax.axhline(score[0] - DROP, color="tab:red", lw=1, label=f"limit: {DROP} below the unpruned model")
chosen = (usual, "tab:orange", "within the limit on these rows"), (sure, "tab:blue", "certified with 95 % confidence")
for point, color, label in chosen:
    ax.plot(point.row["n_nodes"], point.row["score"], "o", color=color, label=f"{label}: {point.row['n_nodes']} nodes")
ax.set_title("The smallest forest by balanced accuracy")
ax.set(xscale="log", xlabel="nodes", ylabel="balanced accuracy on 2,000 validation rows")
ax.legend(frameon=False, loc="lower right")

print(sure.guarantee["text"])
print(f"{nodes[0]} nodes before; certified {sure.row['n_nodes']}, by the estimate {usual.row['n_nodes']}")
