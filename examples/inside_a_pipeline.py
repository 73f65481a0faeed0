"""Prune the last step of a fitted Pipeline; the other steps are kept."""

from sklearn.datasets import load_wine
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import secateur as sc

X, y = load_wine(return_X_y=True)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.4, random_state=0)
pipeline = make_pipeline(StandardScaler(), GradientBoostingClassifier(random_state=0)).fit(X_train, y_train)

small = sc.prune(pipeline, X_train, y_train, validation=(X_val, y_val), max_loss_increase=0.05)
print(type(small).__name__, [type(step).__name__ for _, step in small.steps])
print(f"{sc.as_forest(pipeline).n_nodes} nodes before, {sc.as_forest(small).n_nodes} after")
