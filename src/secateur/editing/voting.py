"""Let the trees of a forest vote for labels, instead of averaging what their leaves say of all classes."""

from typing import Any

import numpy as np

from secateur.forest.subforest import Decision
from secateur.libraries import adapt


def majority_vote(model: Any) -> Any:
    """Return a copy of a trained forest, of the same type, in which every tree has one vote.

    Each leaf gives all of its weight to its likeliest class, so that the average over trees is the share of votes, and
    the label is that of the majority (of equals the first). Forests of scikit-learn average leaf distributions, which
    is usually better after pruning: leaves are no longer pure.

    Parameters
    ----------
    model : fitted model or Forest
        A bagged classifier.

    Raises
    ------
    ValueError
        If trees have no labels of their own, as in boosting, or the model has no place for new values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=1, random_state=0).fit(X, y)
    >>> forest.predict_proba(X)[57].round(2).tolist()
    [0.32, 0.4, 0.29]
    >>> majority_vote(forest).predict_proba(X)[57].tolist()
    [0.4, 0.4, 0.2]
    """
    adapter = adapt(model)
    forest = adapter.forest
    reason = adapter.why_immutable("value")
    if forest.link != "probability" or reason:
        raise ValueError(
            f"The trees of this {type(model).__name__} cannot be made to vote: "
            f"{reason or f'they add to {forest.link}, and say no label alone.'} Use a random forest of classes."
        )
    value = np.zeros_like(forest.value)
    start = 0
    for n_classes in forest.n_classes:
        likeliest = forest.value[:, start : start + n_classes].argmax(axis=1)
        value[np.arange(forest.n_nodes), start + likeliest] = 1.0
        start += n_classes
    return adapter.write(Decision(np.ones(forest.n_nodes, bool), value=value))
