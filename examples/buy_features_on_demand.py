"""Buy features one by one from a database until the label is certain, before and after pruning."""

import sqlite3

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import secateur as sc
from secateur.serving import LazyPredictor, Sql

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, random_state=0)
X_prune, X_test, y_prune, y_test = train_test_split(X_rest, y_rest, test_size=0.5, random_state=0)
forest = RandomForestClassifier(60, max_depth=5, random_state=0).fit(X_train, y_train)
small = sc.prune(forest, X_prune, y_prune, max_nodes=200, validation=None)

prices = {name: 5.0 if name.startswith("worst") else 1.0 for name in X.columns}
cost = sc.costs.FeatureCost(prices, groups={"microscope": (10.0, ["mean texture", "mean smoothness"])})
database = sqlite3.connect(":memory:")
X_test.to_sql("patients", database, index_label="id")

patient = X_test.iloc[0]
answer = LazyPredictor(forest, cost).predict_one(patient.get, same="label")
print(f"patient {patient.name}: label {answer.prediction} for {answer.price}, {len(answer.features)} features bought,")
print(f"first {', '.join(answer.features[:3])}; {answer.stopped}\n")

print("              price of a row               accuracy")
print("              all  as needed  same label   same label  at most 15")
for name, model in {"forest": forest, "pruned": small}.items():
    predictor, source = LazyPredictor(model, cost), Sql(database, "patients")
    full = predictor.predict(source, X_test.index, same="leaves")
    sure = predictor.predict(source, X_test.index, same="label")
    short = predictor.predict(source, X_test.index, same="label", max_cost=15)
    print(
        f"{name:9} {predictor.full_price()[0]:7.1f} {full.price.mean():10.1f} {sure.price.mean():11.1f}"
        f" {(sure.prediction == y_test).mean():12.3f} {(short.prediction == y_test).mean():11.3f}"
    )
