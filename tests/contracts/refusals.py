"""State which solver must refuse which model and why, from the definitions, independently of the solvers."""

from secateur.forest import Forest
from secateur.libraries.adapter import Adapter
from secateur.solvers import Solver

COUNTS_LABELS = {"min_cut", "partition_cut", "linear_program", "primal_dual"}
COMPARES_TREES_WITH_TARGET = {"reduced_error", "pessimistic_error", "minimum_error"}
ADDS_TREES = {"block_descent", "cost_descent", "tree_lasso", "best_subset"}
WEIGHS_TREES = {"tree_lasso", "best_subset"}
LEARNS_NODE_WEIGHTS = {"max_heap", "rule_lasso"}


def reason_to_refuse(solver: Solver, adapter: Adapter) -> str | None:
    """Return a pattern that the reason must match, or None if the solver must prune the model."""
    reason = _solver_reason(solver, adapter.forest)
    if reason:
        return reason
    patterns = {"value": "not trained on all classes|stores class weights"}
    return next((patterns[name] for name in solver.changes if adapter.why_immutable(name)), None)


def _solver_reason(solver: Solver, forest: Forest) -> str | None:
    classes = len(forest.n_classes) > 0
    several = len(forest.n_classes) > 1 or (not classes and forest.n_outputs > 1)
    bagged = forest.aggregation != "sum" and forest.link.partition(":")[0] in ("identity", "probability")
    link = forest.link.partition(":")[0]
    additive = forest.aggregation != "median" and link not in ("vote", "softplus", "anomaly")
    own_loss = (forest.objective or "").partition(":")[0] in ("quantile", "absolute_error", "huber")
    squares = link in ("identity", "probability") and not own_loss
    reasons: list[tuple[bool, str]] = []
    if solver.name in COUNTS_LABELS:
        reasons = [
            (not classes, "predicts numbers"),
            (several, "one target"),
            (not bagged, "predicts only a contribution"),
        ]
    elif solver.name in COMPARES_TREES_WITH_TARGET:
        reasons = [
            (solver.name == "minimum_error" and not classes, "predicts numbers"),
            (not bagged, "predicts only a contribution"),
        ]
        if getattr(solver, "raising", False):
            reasons += [
                (len(forest.categories.row) > 0, "categorical splits"),
                (classes and several, "raising supports one target"),
            ]
    elif solver.name in ADDS_TREES:
        by_squares = solver.name in WEIGHS_TREES or getattr(solver, "engine", None) == "gram"
        reasons = [(not additive, "needs a sum or mean of trees"), (by_squares and not squares, "needs squared error")]
    elif solver.name in LEARNS_NODE_WEIGHTS:
        reasons = [(not (squares and additive), "targets or labels"), (several, "one target")]
        reasons += [(solver.name == "max_heap" and not getattr(solver, "joint", False) and not bagged, "joint=True")]
    reasons += [(forest.symmetric and not solver.supports_symmetric, "only whole levels can be cut")]
    return next((pattern for applies, pattern in reasons if applies), None)
