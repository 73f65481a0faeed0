"""Group models by the traits a solver can see: it gets only a Forest and rows."""

from collections.abc import Hashable, Sequence

import pandas as pd
from tests.cases import adapter_of, case

from secateur.forest.promises import range_of
from secateur.losses import default_loss
from secateur.losses.objectives import objective_of


def traits(name: str) -> tuple[Hashable, ...]:
    """Return the traits of a model and its rows that a solver can see."""
    adapter, rows = adapter_of(name), case(name)
    forest = adapter.forest
    return (
        default_loss(forest).name,
        type(objective_of(forest)).__name__,
        forest.monotone is not None,
        range_of(forest),
        forest.response.linear,
        forest.response.logits,
        forest.aggregation,
        forest.n_trees > 1,
        forest.max_depth > 0,
        len(forest.n_classes),
        forest.n_outputs > 1,
        bool((forest.tree_output >= 0).any()),
        len(set(forest.tree_weight.tolist())) > 1,
        forest.symmetric,
        len(forest.categories.row) > 0,
        adapter.offset(adapter.rows(rows.X[:1])) is not None,
        rows.sample_weight is not None,
    )


def one_of_each_kind(names: Sequence[str]) -> list[str]:
    """Return a model of each kind, one with missing values if there is one: rows are routed before a solver starts."""
    chosen: dict[Hashable, str] = {}
    for name in sorted(names, key=lambda name: not pd.isna(case(name).X).any(axis=None)):
        chosen.setdefault(traits(name), name)
    return [name for name in names if name in chosen.values()]
