"""Meet a budget per prediction: features have prices, two share a group price, and each is bought once per row."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestClassifier(100, max_depth=4, random_state=0).fit(X_train, y_train)

prices = {name: 5.0 if name.startswith("worst") else 1.0 for name in X.columns}
cost = sc.costs.FeatureCost(prices, groups={"microscope": (10.0, ["mean texture", "mean smoothness"])})

path = sc.prune_path(forest, X_train, y_train, cost=cost, solver=sc.solvers.MinCut()).evaluate(X_prune, y_prune)
jump = path.table["jump"].argmax()
print(f"{len(path)} prunings are optimal at some penalty, with costs from {path.table['cost'].max():.1f} down to 0;")
print(f"the largest step between them is {path.table['jump'][jump]:.0%} of that")
for budget in (100, 60, 30, 10):
    chosen = path.select(max_cost=budget)
    small, proof = chosen.to_model(), chosen.summary()["optimality"]
    print(
        f"at most {budget:3}: {cost.mean_price(small, X_test):5.1f} paid on test rows, accuracy "
        f"{small.score(X_test, y_test):.3f}; risk {chosen.row['risk']:.4f}, at least {proof['least_risk']:.4f}"
    )
print(f"unpruned   : {cost.mean_price(forest, X_test):5.1f} paid, accuracy {forest.score(X_test, y_test):.3f}")
