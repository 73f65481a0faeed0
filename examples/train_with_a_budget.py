"""Train a forest that takes feature prices into account; tune `alpha` by grid search, and prune with these prices."""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split

import secateur as sc
from secateur.training import BudgetForestClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

prices = {name: 5.0 if name.startswith("worst") else 1.0 for name in X.columns}
cost = sc.costs.FeatureCost(prices, groups={"microscope": (10.0, ["mean texture", "mean smoothness"])})

search = GridSearchCV(BudgetForestClassifier(cost, random_state=0), {"alpha": [0.0, 1.0, 2.0, 4.0]}, cv=3)
search.fit(X_train, y_train)
budget = search.best_estimator_
thrifty = BudgetForestClassifier(cost, alpha=4.0, reuse_price=0.5, random_state=0).fit(X_train, y_train)
path = sc.prune_path(budget, X_train, y_train, cost=cost, solver=sc.solvers.MinCut()).evaluate(X_prune, y_prune)

models = {
    "random forest": RandomForestClassifier(40, random_state=0).fit(X_train, y_train),
    f"budget forest, alpha={budget.alpha:g}": budget,
    "  pruned to cost 5": path.select(max_cost=5).to_model(),
    "alpha=4, reuse_price=0.5": thrifty,
}
print(f"{'':24}  price  accuracy  nodes")
for name, model in models.items():
    nodes = sc.as_forest(model).n_nodes
    print(f"{name:24}  {cost.mean_price(model, X_test):5.1f}  {model.score(X_test, y_test):8.3f}  {nodes:5}")
