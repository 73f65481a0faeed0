"""Models grown here, with trees that are cheap to ask to begin with."""

from secateur.training.budget_forest import BudgetForestClassifier

__all__ = ["BudgetForestClassifier"]
