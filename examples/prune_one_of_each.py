"""Prune one ensemble of each kind, then stack the pruned ones.

The models are trained on training rows, pruned with validation rows, and compared on separate test rows. The stack
learns the weights of its members from validation rows, because on training rows the members look too accurate.
"""

from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

X, y = make_classification(4000, 12, n_informative=6, n_classes=3, flip_y=0.2, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)

models = {
    "bagging": BaggingClassifier(n_estimators=20, random_state=0),
    "random forest": RandomForestClassifier(n_estimators=20, random_state=0),
    "extra trees": ExtraTreesClassifier(n_estimators=20, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=40, random_state=0),
    "hist gradient boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "AdaBoost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=5), n_estimators=20, random_state=0),
}
pruned = {}
for name, model in models.items():
    model.fit(X_train, y_train)
    pruned[name] = sc.prune(model, X_train, y_train, validation=(X_val, y_val))


def stack(members):
    return StackingClassifier(list(members.items()), cv="prefit").fit(X_val, y_val)


def show(name, before, after, nodes_before, nodes_after):
    scores = before.score(X_test, y_test), after.score(X_test, y_test)
    print(f"{name:24} {nodes_before:6d} {nodes_after:6d}   {scores[0]:.3f}  {scores[1]:.3f}")


nodes = {name: (sc.as_forest(models[name]).n_nodes, sc.as_forest(pruned[name]).n_nodes) for name in models}
print("                           nodes          test accuracy")
print("                         before  after   before  after")
for name in models:
    show(name, models[name], pruned[name], *nodes[name])
show("a stack of the six", stack(models), stack(pruned), *(sum(counts) for counts in zip(*nodes.values(), strict=True)))
