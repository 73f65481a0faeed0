"""Prune a tree by hand or by a custom rule, and remove nodes that change no prediction."""

from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.tree import DecisionTreeClassifier, export_text

from secateur import node_views, prune_nodes, simplify

data = load_iris(as_frame=True)
tree = DecisionTreeClassifier(random_state=0).fit(data.data, data.target)

print("the splits that fewer than 10 rows have seen:")
for view in node_views(tree):
    if not view.is_leaf and view.n_samples < 10:
        print(f"  node {view.node}, {view.n_samples} rows:", " and ".join(map(str, view.path)))

by_rule = prune_nodes(tree, lambda node: node.n_samples < 10)
by_hand = prune_nodes(tree, [node.node for node in node_views(tree) if node.depth == 2])
plain = simplify(by_rule, preserve="labels")
print(export_text(plain, feature_names=list(data.feature_names)))
for name, model in [("grown", tree), ("by rule", by_rule), ("same labels", plain), ("by hand", by_hand)]:
    accuracy = model.score(data.data, data.target)
    print(f"{name:12}{model.get_n_leaves():3} leaves, accuracy on the training rows {accuracy:.3f}")

forest = IsolationForest(random_state=0).fit(data.data)
exact = simplify(forest)
before, after = (sum(tree.tree_.node_count for tree in model.estimators_) for model in (forest, exact))
same = (forest.score_samples(data.data) == exact.score_samples(data.data)).all()
print(f"an isolation forest: {before} nodes before, {after} after, the same scores to the last bit: {same}")
