"""Prune a fully grown tree until it is readable."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, export_text

import secateur as sc

data = load_breast_cancer(as_frame=False)
X_train, X_rest, y_train, y_rest = train_test_split(data.data, data.target, test_size=0.5, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)

small = sc.prune(tree, X_val, y_val, max_leaves=4)
print(export_text(small, feature_names=list(data.feature_names)))
print(f"{tree.get_n_leaves()} leaves before, {small.get_n_leaves()} after")
print(f"accuracy on test rows: {tree.score(X_test, y_test):.3f} before, {small.score(X_test, y_test):.3f} after")
