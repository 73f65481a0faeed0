"""Predict with features acquired on demand: buy one when a split needs it, stop when the prediction is certain."""

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
