"""Read .skops files: build only listed types, and validate trees before they are used.

skops does not trust trees, because scikit-learn uses their child and feature indices without bounds checks. A crafted
file could read memory out of bounds. Here these indices are checked, so trees can be on the list of trusted types.
"""

import functools
import gc
import io
import json
import types
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_array

from secateur._util.text import quoted
from secateur.errors import DamagedFileError, UnsupportedFileError
from secateur.files.size_limits import check_unpacked, unpacked_size

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

# Models with at most this many features are tested by predicting one row.
_MAX_FEATURES_TESTED = 10**6

HARMLESS = frozenset(
    {
        # Trusted only as a partial of check_array, see _suspicious.
        "functools.partial",
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
"""Types and functions in fitted tree models, pipelines and searches that skops does not always trust."""

_MOVED = {b'"__module__": "_loss"': b'"__module__": "sklearn._loss._loss"'}
"""Module entries of scikit-learn 1.6, which saves compiled losses without their package, and the current ones."""

SCHEMA = "schema.json"


def read_skops(file: Path, *, trust: bool = False) -> Any:
    """Read a model; without trust, only if all its types are known to be harmless.

    Raises
    ------
    UnsupportedFileError
        If the file has other types.
    DamagedFileError
        If the file is damaged, or contains an invalid tree.
    """
    skops = import_skops()
    with _damage_reported(file):
        size = unpacked_size(file)
    check_unpacked(size, file, "If you trust its origin, load it with skops and pass the model.")
    with _damage_reported(file):
        data = _with_current_modules(file)
        found = skops.get_untrusted_types(data=data)
    unknown = [name for name in found if name not in HARMLESS]
    if unknown and not trust:
        raise UnsupportedFileError(
            f"{file} contains types that are not known to be harmless: {quoted(unknown)}. It was not loaded. "
            "If you trust its origin, pass trust=True (--trust)."
        )
    with _damage_reported(file):
        model = _build(data, found)
        parts = list(_parts(model))
        reasons = (_broken(part) or (None if trust else _suspicious(part)) for part in parts)
        reason = next(filter(None, reasons), None) or next(filter(None, map(_cannot_predict, parts)), None)
    if reason:
        raise DamagedFileError(f"{file} is damaged or was tampered with: {reason}. Save the model again.")
    return model


def untrusted_types(file: Path) -> list[str]:
    """Return the types in a file that skops does not trust; those in `HARMLESS` are among them.

    Raises
    ------
    DamagedFileError
        If the file is damaged.
    ImportError
        If skops is not installed.
    """
    skops = import_skops()
    with _damage_reported(file):
        found: list[str] = skops.get_untrusted_types(data=_with_current_modules(file))
    return found


def _with_current_modules(file: Path) -> bytes:
    """Return the contents of a file, with types that have moved since renamed to their current module."""
    data = file.read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = archive.read(SCHEMA)
        if not any(old in schema for old in _MOVED):
            return data
        for old, new in _MOVED.items():
            schema = schema.replace(old, new)
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as rewritten:
            for name in archive.namelist():
                rewritten.writestr(name, schema if name == SCHEMA else archive.read(name))
    return written.getvalue()


def import_skops() -> Any:
    """Return the module skops.io.

    Raises
    ------
    ImportError
        If skops is not installed.
    """
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "A .skops file needs skops, which is not installed. Run: pip install 'secateur[skops]'; "
            "or use .joblib, which needs trust when it is loaded."
        ) from error
    return skops.io


@contextmanager
def _damage_reported(file: Path) -> Iterator[None]:
    """Convert any exception that damaged bytes raise to a DamagedFileError that explains it."""
    try:
        yield
    except Exception as error:
        text = str(error).strip().splitlines()
        raise DamagedFileError(
            f"{file} cannot be read as a .skops file ({text[0] if text else type(error).__name__}); it is damaged, or "
            "was written with other versions of skops or scikit-learn. Save the model again with the "
            "installed versions."
        ) from error


def _build(data: bytes, trusted: list[str]) -> Any:
    """Return the model, after validating the constructor arguments of trees, which scikit-learn does not check."""
    from skops.io._audit import audit_tree, get_tree
    from skops.io._utils import LoadContext

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read(SCHEMA))
        root = get_tree(schema, LoadContext(src=archive, protocol=schema["protocol"]), trusted=trusted)
        audit_tree(root, trusted=trusted)
        for node in _postorder(root):
            if type(node).__name__ == "TreeNode":
                _check_tree(node.children["args"].construct(), node.children["attrs"].construct())
        return root.construct()


def _postorder(root: Any) -> Iterator[Any]:
    """Yield the construction node of every object, after the nodes of its parts (postorder)."""
    seen, stack = set(), [(root, False)]
    while stack:
        node, opened = stack.pop()
        if opened:
            yield node
        elif hasattr(node, "children") and id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in _children(node)]


def _children(node: Any) -> Iterator[Any]:
    for child in node.children.values():
        yield from child if isinstance(child, list | tuple) else child.values() if isinstance(child, dict) else [child]


def _check_tree(arguments: Any, state: Any) -> None:
    """Raise DamagedFileError unless a tree has a class count per output, and as many nodes as declared."""
    n_features, n_classes, n_outputs = arguments
    counts = (n_features, n_outputs, state["node_count"], state["max_depth"])
    if any(type(number) is not int or not 0 <= number < 2**31 for number in counts):
        raise DamagedFileError("a tree has a count that is not a valid integer")
    if not isinstance(n_classes, np.ndarray) or n_classes.dtype != np.intp or n_classes.shape != (n_outputs,):
        raise DamagedFileError("the class counts of a tree do not match its outputs")
    if not n_outputs or n_classes.min() < 1 or n_classes.max() >= 2**31:
        raise DamagedFileError("a tree has an output without classes")
    nodes = state["nodes"]
    if not isinstance(nodes, np.ndarray) or nodes.shape != (state["node_count"],) or not len(nodes):
        raise DamagedFileError("the number of nodes of a tree differs from its node_count")


def _parts(root: Any) -> Iterator[Any]:
    """Yield every object inside `root`, including `root`, once."""
    # References to the objects prevent their ids from being reused.
    seen: dict[int, Any] = {}
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
    """Return why a call stored in the file must not be made, or None."""
    if isinstance(part, functools.partial) and part.func is not check_array:
        return f"it contains a call of {part.func!r}"
    return None


def _broken(part: Any) -> str | None:
    """Return why a part of a model must not be used for prediction, or None."""
    if isinstance(part, Tree):
        leaf = part.children_left == -1
        reason = _broken_nodes(part.children_left, part.children_right, part.feature, leaf, part.n_features)
        return reason or ("a tree is deeper than its max_depth" if _depth(part) > part.max_depth else None)
    if isinstance(part, BaseDecisionTree) and hasattr(part, "tree_"):
        fits = part.tree_.n_features == part.n_features_in_ and _same_classes(part, part.tree_.n_classes)
        return None if fits else "the features or classes of a tree differ from those of its model"
    if isinstance(part, BaseForest) and hasattr(part, "estimators_"):
        fits = all(_same_classes(part, tree.tree_.n_classes) for tree in part.estimators_)
        return None if fits else "the classes of a tree differ from those of its forest"
    if isinstance(part, BaseGradientBoosting):
        return _broken_stages(part)
    if isinstance(part, BaseHistGradientBoosting):
        return _broken_predictors(part)
    return None


def _same_classes(model: Any, n_classes: NDArray[np.intp]) -> bool:
    """Return whether a model has labels for as many classes as its tree, for each output."""
    if model.n_outputs_ != len(n_classes):
        return False
    if not is_classifier(model):
        return True
    labels = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    declared = np.atleast_1d(model.n_classes_)
    return np.array_equal(declared, n_classes) and [len(names) for names in labels] == declared.tolist()


def _cannot_predict(model: Any) -> str | None:
    """Return why a fitted ensemble fails to predict a row of zeros, or None.

    Models that transform their rows are not tested. Trees must have been validated before, because this traverses them.
    """
    if not isinstance(model, BaseForest | BaseGradientBoosting | BaseHistGradientBoosting):
        return None
    transforms_rows = getattr(model, "_preprocessor", None) is not None or _has_custom_init(model)
    if not hasattr(model, "n_features_in_") or transforms_rows or model.n_features_in_ > _MAX_FEATURES_TESTED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict(np.zeros((1, model.n_features_in_)))
    except Exception as error:
        # Inconsistent attributes can make scikit-learn raise any exception.
        return f"its predict method fails ({type(error).__name__})"
    return None


def _has_custom_init(model: Any) -> bool:
    """Return whether boosting starts from an estimator that may need other rows than numeric ones."""
    first = getattr(model, "init_", None)
    return not (first is None or isinstance(first, str | DummyClassifier | DummyRegressor))


def _broken_nodes(
    left: NDArray[Any], right: NDArray[Any], feature: NDArray[Any], leaf: NDArray[np.bool_], n_features: int
) -> str | None:
    """Return what is wrong with the nodes of a tree, or None; every library numbers children after their parent."""
    node = np.arange(len(leaf))[~leaf]
    for child in (left[~leaf].astype(np.int64), right[~leaf].astype(np.int64)):
        if (child <= node).any() or (child >= len(leaf)).any():
            return "a child index is outside its tree"
    used = feature[~leaf]
    if not len(leaf) or (used < 0).any() or (used >= n_features).any():
        return "a tree has no nodes, or a split uses a feature that does not exist"
    return None


def _depth(tree: Tree) -> int:
    """Return the depth of a tree; scikit-learn allocates buffers of the declared depth."""
    level, depth = np.zeros(1, np.intp), -1
    while len(level):
        depth += 1
        level = level[tree.children_left[level] != -1]
        level = np.unique(np.concatenate([tree.children_left[level], tree.children_right[level]]))
    return depth


def _broken_stages(model: Any) -> str | None:
    """Return what is wrong with the trees of a GradientBoosting model, whose predict does not check each, or None."""
    stages = getattr(model, "estimators_", None)
    if stages is None:
        return None
    n_classes = getattr(model, "n_classes_", 1)
    if stages.ndim != 2 or stages.shape[1] != (n_classes if n_classes > 2 else 1):
        return "the number of trees per stage does not match the classes"
    fits = all(tree.tree_.n_features == model.n_features_in_ for tree in stages.ravel())
    return None if fits else "the number of features of a tree differs from that of its model"


def _broken_predictors(model: Any) -> str | None:
    """Return what is wrong with the trees or the baseline of a HistGradientBoosting model, or None."""
    if getattr(model, "_baseline_prediction", np.zeros(1)).dtype != np.float64:
        return "its baseline prediction is not float64"
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
            return "a categorical split uses a numeric feature"
    return None
