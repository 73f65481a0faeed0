"""Train forests under feature cost."""

from secateur.training.budget_forest import BudgetForestClassifier

__all__ = ["BudgetForestClassifier"]
