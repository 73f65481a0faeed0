"""Time training a budget forest against scikit-learn's random forest, both in one thread."""

from time import process_time

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from benchmarks.discovery import Table
from benchmarks.results import Result, Row, Target
from secateur.training import BudgetForestClassifier

_N_FEATURES = 50
_N_ROWS = 50_000
_CASES = ((2, 40, "sqrt"), (2, 2, None), (10, 2, "sqrt"))
"""Class counts, tree counts, and the number of features the random forest draws at a node; None for all."""
_NOTES = [
    f"make_classification, {_N_ROWS} rows and {_N_FEATURES} features in float32; fit with n_jobs=1; seconds are CPU "
    "seconds, which are less affected by other processes. Kernels are compiled beforehand.",
    "drawn: the number of features evaluated at a node. The budget forest evaluates all by default, as in the "
    "paper; a random forest evaluates the square root of their number.",
    "ratio: seconds / seconds of the random forest with the same number of trees. nodes: the number of nodes of all "
    "trees. Minimax splits are balanced, so budget trees are shallower.",
]


def run(quick: bool) -> Result:
    BudgetForestClassifier(n_estimators=1).fit([[0.0], [1.0]], [0, 1])  # compiles
    rows: list[Row] = []
    for n_classes, n_trees, rival_draws in _CASES:
        size = (300, 2) if quick else (_N_ROWS, n_trees)
        rows += take_case(n_classes, *size, rival_draws)
    ratio = {} if quick else {(row["trees"], row["classes"], row["drawn"]): row["ratio"] for row in rows}
    targets = [
        Target("ratio with 40 trees, all features against sqrt", ratio.get((40, 2, "all")), at_most=3),
        Target("ratio with 40 trees, sqrt against sqrt", ratio.get((40, 2, "sqrt")), at_most=3),
        Target("ratio with 2 trees, all against all", ratio.get((2, 2, "all")), at_most=1),
    ]
    return Result(rows, 1, _NOTES, targets)


def take_case(n_classes: int, n_rows: int, n_trees: int, rival_draws: str | None) -> list[Row]:
    """Return a random forest and the budget forests to compare with it."""
    X, y = make_classification(n_rows, _N_FEATURES, n_informative=15, n_classes=n_classes, random_state=0)
    forests = [RandomForestClassifier(n_trees, max_features=rival_draws, random_state=0, n_jobs=1)]
    for draws in dict.fromkeys((rival_draws, None)):
        for alpha in (0.0, 1.0) if n_classes > 2 else (0.0,):
            options = {"n_estimators": n_trees, "max_features": draws, "alpha": alpha}
            forests.append(BudgetForestClassifier(**options, random_state=0, n_jobs=1))
    rows: list[Row] = []
    for forest in forests:
        start = process_time()
        forest.fit(X.astype("float32"), y)
        seconds = process_time() - start
        rows.append(
            {
                "classes": n_classes,
                "trees": n_trees,
                "forest": type(forest).__name__,
                "drawn": forest.max_features or "all",
                "alpha": getattr(forest, "alpha", None),
                "nodes": sum(int(tree.tree_.node_count) for tree in forest.estimators_),
                "depth": max(int(tree.tree_.max_depth) for tree in forest.estimators_),
                "seconds": seconds,
                "ratio": seconds / rows[0]["seconds"] if rows else 1.0,
            }
        )
    return rows


TABLE = Table("budget_forest_speed", "Training time of budget forests against random forests", run)
