"""Cost descent: minimise the loss of the ensemble

The exact minimum cut minimises the errors of single trees. Cost descent minimises the loss of the ensemble and refits
leaf values. Both are evaluated here by the predictions of the whole forest on validation rows. Pale dots are prunings
that are dominated by a cheaper one.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_breast_cancer(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.5, random_state=0)
forest = RandomForestClassifier(40, max_depth=5, random_state=0).fit(X_train, y_train)

descent = sc.prune_path(forest, X_train, y_train, solver="cost_descent").evaluate(X_val, y_val)
cut = sc.prune_path(forest, X_train, y_train, solver="min_cut").evaluate(X_val, y_val, loss=sc.losses.Brier())

ax = descent.plot(label="cost descent", baselines={"minimum cut": cut})
ax.set_title("Cost descent is at or below the minimum cut at nearly every cost")
