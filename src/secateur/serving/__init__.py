"""Predictions with features bought on demand: each when a tree needs it, until the answer is settled."""

from secateur.serving.lazy_predictor import LazyPredictor
from secateur.serving.results import Answer, Answers, Feature, FeatureUnavailableError
from secateur.serving.sources import Calls, Columns, FeatureSource, Sql, as_source

__all__ = [
    "Answer",
    "Answers",
    "Calls",
    "Columns",
    "Feature",
    "FeatureSource",
    "FeatureUnavailableError",
    "LazyPredictor",
    "Sql",
    "as_source",
]
