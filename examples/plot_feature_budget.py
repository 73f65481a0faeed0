"""A budget for features

Each of the thirty measurements has a price, and a diagnosis may cost at most 20. Grey bars count the splits of the
unpruned forest by feature, blue bars those of the pruned forest; the numbers are the prices.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.5, random_state=0)
forest = RandomForestClassifier(50, max_depth=4, random_state=0).fit(X_train, y_train)

prices = {name: 5.0 if name.startswith("worst") else 1.0 for name in X.columns}
cost = sc.costs.FeatureCost(prices)
path = sc.prune_path(forest, X_train, y_train, cost=cost).evaluate(X_val, y_val)
chosen = path.select(max_cost=20)

ax = path.plot("features", point=chosen, prices=cost)
was, now = path.table["cost"][0], chosen.row["cost"]
n_features = chosen.row["n_features"]
ax.set_title(f"{n_features} of {X.shape[1]} features are left: {now:.1f} is paid per row, not {was:.1f}")
after, before = chosen.row["loss"], path.table["loss"][0]
path.plot(mark=chosen).set_title(f"{after:.1%} wrong labels at a cost of {now:.1f}, unpruned {before:.1%} at {was:.1f}")
