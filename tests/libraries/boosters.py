"""Helpers of the XGBoost tests: a booster as JSON, its trees, and our raw predictions."""

import json

import xgboost as xgb
from tests.strategies import everything

from secateur.forest.routing import raw_scores, route
from secateur.path import Pruned


def booster_of(model):
    return model if isinstance(model, xgb.Booster) else model.get_booster()


def saved_json(model):
    return json.loads(booster_of(model).save_raw("json"))


def trees_of(model):
    gradient = saved_json(model)["learner"]["gradient_booster"]
    return gradient.get("gbtree", gradient)["model"]


def raw_of(adapter, X, decision=None):
    forest = Pruned(adapter, decision or everything(adapter.forest), 0, {}, "", {}).forest
    return raw_scores(forest, route(forest, adapter.rows(X)))
