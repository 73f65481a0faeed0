"""Convert a classification forest from averaging leaf distributions to majority voting."""

from typing import Any

import numpy as np

from secateur.errors import UnsupportedModelError
from secateur.forest.subforest import Decision
from secateur.libraries import adapt


def majority_vote(model: Any) -> Any:
    """Return a copy of a trained forest, of the same type, that predicts by majority vote.

    Each leaf gives probability 1 to its most probable class. The average over trees is then the fraction of votes, and
    the label is that of the majority; ties go to the first class. Forests of scikit-learn average leaf distributions
    instead (eq. (13) in Dercksen 2017), which is usually more accurate after pruning, because leaves are no longer
    pure.

    Parameters
    ----------
    model : fitted model or Forest
        A bagged classifier.

    Raises
    ------
    UnsupportedModelError
        If single trees do not predict labels, as in boosting, or the leaf values of the model cannot be changed.

    References
    ----------
    Dercksen (2017): Exploring the Impact of BudgetPrune on Apache Spark Random Forest Performance. BSc thesis, Radboud
    University Nijmegen. Section 3.2.5.

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
        raise UnsupportedModelError(
            f"This {type(model).__name__} cannot predict by majority vote: "
            f"{reason or f'its trees contribute to a sum (link {forest.link!r}) and do not predict classes.'} "
            "Pass a random forest classifier."
        )
    value = np.zeros_like(forest.value)
    start = 0
    for n_classes in forest.n_classes:
        most_probable = forest.value[:, start : start + n_classes].argmax(axis=1)
        value[np.arange(forest.n_nodes), start + most_probable] = 1.0
        start += n_classes
    return adapter.write(Decision(np.ones(forest.n_nodes, bool), value=value))
