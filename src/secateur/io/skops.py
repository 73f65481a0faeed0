"""The .skops file: types are built only from a list, and trees are looked through before anyone walks them.

skops does not trust trees, because scikit-learn follows their child and feature numbers without looking, so that a
crafted file could read memory it should not. Here those numbers are checked, so trees can be on the list.
"""

import functools
import gc
import io
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_array

_SPLITTERS = (
    *("GroupKFold", "KFold", "LeaveOneOut", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit"),
    *("StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit"),
)
_METRICS = {
    "classification": (
        *("accuracy_score", "balanced_accuracy_score", "brier_score_loss", "cohen_kappa_score", "f1_score"),
        *("jaccard_score", "log_loss", "matthews_corrcoef", "precision_score", "recall_score"),
    ),
    "ranking": ("average_precision_score", "roc_auc_score"),
    "regression": (
        *("explained_variance_score", "max_error", "mean_absolute_error", "mean_absolute_percentage_error"),
        *("mean_gamma_deviance", "mean_poisson_deviance", "mean_squared_error", "mean_squared_log_error"),
        *("median_absolute_error", "r2_score", "root_mean_squared_error", "root_mean_squared_log_error"),
    ),
}
_LOSSES = (
    *("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss"),
    *("HalfPoissonLoss", "HalfSquaredError", "HuberLoss", "PinballLoss"),
)
_LINKS = ("HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink", "MultinomialLogit")

HARMLESS = frozenset(
    {
        "functools.partial",  # only around check_array, see _suspicious
        "numpy.dtype",
        "secateur.costs.features.FeatureCost",
        "secateur.training.budget_forest.BudgetForestClassifier",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._PredictScorer",
        "sklearn.metrics._scorer._ProbaScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.metrics._scorer._ThresholdScorer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        "sklearn.utils.validation.check_array",
        *(f"sklearn._loss._loss.Cy{name}" for name in _LOSSES),
        *(f"sklearn._loss.loss.{name}" for name in _LOSSES),
        *(f"sklearn._loss.link.{name}" for name in _LINKS),
        *(f"sklearn.model_selection._split.{name}" for name in _SPLITTERS),
        *(f"sklearn.metrics._{kind}.{name}" for kind, names in _METRICS.items() for name in names),
    }
)
"""Types and functions that fitted tree models, pipelines and searches hold, and that skops does not always trust."""

_MOVED = {b'"__module__": "_loss"': b'"__module__": "sklearn._loss._loss"'}
"""Words in files of scikit-learn 1.6, which named compiled losses without their package, and the words of today."""

_SCHEMA = "schema.json"


def read_skops(file: Path, *, trust: bool = False) -> Any:
    """Read a model; without trust only if it is made of types known to be harmless.

    Raises
    ------
    ValueError
        If the file holds other types, is damaged, or holds a tree that is not one.
    """
    skops = _import_skops()
    try:
        data = _with_names_of_today(file)
        found = skops.get_untrusted_types(data=data)
    except Exception as error:  # damaged bytes can raise anything
        raise _damaged(file, error) from error
    unknown = [name for name in found if name not in HARMLESS]
    if unknown and not trust:
        raise ValueError(
            f"{file} holds types that are not known to be harmless: {', '.join(unknown)}. Only known types are built "
            "from a file. If you know where it comes from, pass trust=True (--trust)."
        )
    try:
        model = skops.loads(data, trusted=found)
    except Exception as error:
        raise _damaged(file, error) from error
    for part in _parts(model):
        reason = _broken(part) or (None if trust else _suspicious(part))
        if reason:
            raise ValueError(f"{file} is damaged or was tampered with: {reason}. Save the model again.")
    return model


def write_skops(model: Any, stream: IO[bytes]) -> None:
    """Write a model, compressed."""
    _import_skops().dump(model, stream, compression=zipfile.ZIP_DEFLATED)


def _with_names_of_today(file: Path) -> bytes:
    """Return what a file holds, with types that have moved since named where they are now."""
    data = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = archive.read(_SCHEMA)
        if not any(word in schema for word in _MOVED):
            return data
        for then, now in _MOVED.items():
            schema = schema.replace(then, now)
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as renewed:
            for name in archive.namelist():
                renewed.writestr(name, schema if name == _SCHEMA else archive.read(name))
    return written.getvalue()


def _import_skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "A .skops file needs skops, which is not installed. Run: pip install 'secateur[skops]'; "
            "or use .joblib, which needs trust when it is loaded."
        ) from error
    return skops.io


def _damaged(file: Path, error: Exception) -> ValueError:
    text = str(error).strip().splitlines()
    return ValueError(
        f"{file} cannot be read as a .skops file ({text[0] if text else type(error).__name__}); it is damaged, or "
        "was written with other versions of skops or scikit-learn. Save the model again with the versions installed."
    )


def _parts(root: Any) -> Iterator[Any]:
    """Yield every object inside `root`, itself included, once."""
    seen: dict[int, Any] = {}  # holding the objects keeps their ids from being used again
    stack = [root]
    while stack:
        part = stack.pop()
        if id(part) in seen or isinstance(part, type | types.ModuleType | types.FunctionType):
            continue
        seen[id(part)] = part
        yield part
        stack.extend(part.ravel().tolist() if _holds_objects(part) else gc.get_referents(part))


def _holds_objects(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype == object


def _suspicious(part: Any) -> str | None:
    """Return why a call that is stored in the file must not be made, or None."""
    if isinstance(part, functools.partial) and part.func is not check_array:
        return f"it holds a call of {part.func!r}"
    return None


def _broken(part: Any) -> str | None:
    """Return why a part of a model must not be walked, or None if it may."""
    if isinstance(part, Tree):
        leaf = part.children_left == -1
        return _broken_nodes(part.children_left, part.children_right, part.feature, leaf, part.n_features)
    if isinstance(part, BaseDecisionTree):
        fits = not hasattr(part, "tree_") or part.tree_.n_features == part.n_features_in_
        return None if fits else "a tree expects other features than its model"
    if isinstance(part, BaseGradientBoosting):
        return _broken_stages(part)
    if isinstance(part, BaseHistGradientBoosting):
        return _broken_predictors(part)
    return None


def _broken_nodes(
    left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], leaf: NDArray[np.bool_], n_features: int
) -> str | None:
    """Return what is wrong with the nodes of a tree; every library numbers children after their parent."""
    node = np.arange(len(leaf))[~leaf]
    for child in (left[~leaf].astype(np.int64), right[~leaf].astype(np.int64)):
        if (child <= node).any() or (child >= len(leaf)).any():
            return "a tree has a child outside itself"
    used = feature[~leaf]
    if not len(leaf) or (used < 0).any() or (used >= n_features).any():
        return "a tree has no nodes, or looks at a feature that is not there"
    return None


def _broken_stages(model: Any) -> str | None:
    """Return what is wrong with the trees of a GradientBoosting model, which are walked without a look at each."""
    stages = getattr(model, "estimators_", None)
    if stages is None:
        return None
    n_classes = getattr(model, "n_classes_", 1)
    if stages.ndim != 2 or stages.shape[1] != (n_classes if n_classes > 2 else 1):
        return "the stages do not match the classes"
    fits = all(tree.tree_.n_features == model.n_features_in_ for tree in stages.ravel())
    return None if fits else "a tree expects other features than its model"


def _broken_predictors(model: Any) -> str | None:
    """Return what is wrong with the trees of a HistGradientBoosting model."""
    for predictor in (predictor for stage in getattr(model, "_predictors", ()) for predictor in stage):
        nodes, bitsets = predictor.nodes, predictor.raw_left_cat_bitsets
        leaf = nodes["is_leaf"].astype(bool)
        reason = _broken_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], leaf, model.n_features_in_)
        if reason:
            return reason
        split = nodes[~leaf & nodes["is_categorical"].astype(bool)]
        if not len(split):
            continue
        if (split["bitset_idx"] >= len(bitsets)).any() or bitsets.shape[1:] != (8,):
            return "a categorical split has no list of categories"
        if not np.asarray(model._bin_mapper.is_categorical_)[split["feature_idx"]].all():
            return "a categorical split looks at a numeric feature"
    return None
