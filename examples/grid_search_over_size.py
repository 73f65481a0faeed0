"""Choose the size of a pruned model by cross-validation, and compare with models that are trained small.

Both use the same folds. The pruned model trains on three quarters of a fold's rows and selects on the last quarter; the
small model trains on all of them and needs no selection. Each size of the small model is another training; the pruned
model, once fitted, holds all sizes in its `path_`.
"""

from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from secateur import PrunedClassifier

LEAVES = [4, 8, 16, 32]  # per tree; a tree with k leaves has 2k − 1 nodes
MODELS = {
    "tree": (1, DecisionTreeClassifier(random_state=0)),
    "10 trees": (10, RandomForestClassifier(10, random_state=0)),
}

print("data     model      nodes   accuracy, pruned   grown small")
for data, load in (("cancer", load_breast_cancer), ("digits", load_digits)):
    X, y = load(return_X_y=True)
    for name, (n_trees, model) in MODELS.items():
        max_nodes = [n_trees * (2 * k - 1) for k in LEAVES]
        pruned = GridSearchCV(PrunedClassifier(model, random_state=0), {"max_nodes": max_nodes}, cv=4).fit(X, y)
        grown = GridSearchCV(model, {"max_leaf_nodes": LEAVES}, cv=4).fit(X, y)
        scores = [search.cv_results_["mean_test_score"] for search in (pruned, grown)]
        for nodes, by_pruning, by_growing in zip(max_nodes, *scores, strict=True):
            print(f"{data:8} {name:8} {nodes:7d} {by_pruning:18.3f} {by_growing:13.3f}")

best = pruned.best_estimator_
print(f"\nThe last search took {pruned.best_params_}: {best.path_}")
print("Another size from the same path, without training:", best.path_.select(max_nodes=100))
