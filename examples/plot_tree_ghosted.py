"""The nodes that were removed

A fully grown tree and its best pruning with at most five leaves in one picture. Kept nodes show their splits and
predictions; removed nodes are grey and dashed. Leaves show the class, its probability, and the fraction of the training
rows that end there.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import secateur as sc

data = load_breast_cancer(as_frame=True)
names = data.target.map(lambda k: str(data.target_names[k]))
X_train, X_val, y_train, y_val = train_test_split(data.data, names, test_size=0.5, random_state=0)
tree = DecisionTreeClassifier(random_state=0).fit(X_train, y_train)

path = sc.prune_path(tree, X_train, y_train).evaluate(X_val, y_val)
small = path.select(max_leaves=5)

ax = path.plot("tree", point=small)
change = small.row["loss"] / path.table["loss"][0] - 1
ax.set_title(f"{small.row['n_leaves']} of {path.forest.n_leaves} leaves; Brier score on other rows {change:+.0%}")
