"""Check the tree ensembles in an ONNX file, whose indices onnxruntime uses without complete checks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from secateur.errors import DamagedFileError, UnsupportedModelError
from secateur.files.check.file_report import FileReport
from secateur.files.check.numbers_of_trees import with_odd_numbers
from secateur.files.check.onnx_trees import Attributes, CheckedTrees, check_by_ids, check_by_positions

_DOMAIN = "ai.onnx.ml"
_CHECKS = {
    "TreeEnsembleClassifier": check_by_ids,
    "TreeEnsembleRegressor": check_by_ids,
    "TreeEnsemble": check_by_positions,
}
_STANDARD = {"", "ai.onnx", _DOMAIN, "ai.onnx.training", "ai.onnx.preview.training"}
_MAX_DEPTH = 50


def check_onnx(file: Path, report: FileReport) -> FileReport:
    """Check every tree ensemble in an ONNX file."""
    model = _read(file)
    nodes = list(_nodes(model))
    foreign = sorted({node.domain for node in nodes} - _STANDARD - {function.domain for function in model.functions})
    named = replace(
        report,
        format=f"ONNX, ai.onnx.ml {_opset(model)}",
        library=model.producer_name[:60] or None,
        version=model.producer_version[:40] or None,
        warnings=_warnings(model, foreign),
    )
    ensembles = [_check_node(node, file, _width(model, node)) for node in nodes if _is_ensemble(node)]
    if not ensembles:
        raise UnsupportedModelError(
            f"{file} contains no TreeEnsemble, TreeEnsembleClassifier or TreeEnsembleRegressor. Only tree models are "
            "checked. Use another tool for this model."
        )
    return _with_ensembles(named, ensembles, _width(model, None))


def _with_ensembles(report: FileReport, ensembles: list[CheckedTrees], width: int | None) -> FileReport:
    """Return the report with the sizes of all ensembles together."""
    sized = replace(
        report,
        trees=sum(trees.n_trees for trees in ensembles),
        nodes=sum(trees.n_nodes for trees in ensembles),
        leaves=sum(trees.n_leaves for trees in ensembles),
        features=max(trees.n_features for trees in ensembles) if width is None else width,
        outputs=max(trees.n_targets for trees in ensembles),
    )
    values = np.concatenate([trees.value for trees in ensembles])
    return with_odd_numbers(sized, values, np.concatenate([trees.threshold for trees in ensembles]))


def _read(file: Path) -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "An .onnx file needs the package onnx, which is not installed. Run: pip install 'secateur[onnx]'"
        ) from error
    try:
        # Tensors in other files are not opened.
        model = onnx.load_model_from_string(file.read_bytes())
    except Exception as error:
        # protobuf raises DecodeError, which is an Exception only.
        raise DamagedFileError(
            f"{file} is not an ONNX model ({str(error)[:100]}). A complete file is needed. Copy it or save it again."
        ) from error
    if not model.graph.node:
        raise DamagedFileError(f"{file} contains no graph of operators. A complete file is needed. Save it again.")
    return model


def _nodes(model: Any) -> Iterator[Any]:
    """Yield the operators of the graph, of graphs inside operators, and of functions."""
    stack = [(node, 0) for nodes in (model.graph.node, *(f.node for f in model.functions)) for node in nodes]
    while stack:
        node, depth = stack.pop()
        yield node
        graphs = [graph for entry in node.attribute for graph in (entry.g, *entry.graphs)]
        if depth < _MAX_DEPTH:
            stack += [(inner, depth + 1) for graph in graphs for inner in graph.node]


def _is_ensemble(node: Any) -> bool:
    return node.domain == _DOMAIN and node.op_type in _CHECKS


def _check_node(node: Any, file: Path, width: int | None) -> CheckedTrees:
    """Return the trees of an operator, checked."""
    name = f"{node.op_type} {node.name[:60]!r}" if node.name else node.op_type
    return _CHECKS[node.op_type](Attributes(_attributes(node, f"{file}: {name}"), f"{file}: {name}"), width)


def _attributes(node: Any, where: str) -> dict[str, Any]:
    """Return the attributes of an operator as numbers, texts and arrays."""
    from onnx import helper, numpy_helper

    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.name in found:
            raise DamagedFileError(f"{where} has the attribute {attribute.name!r} twice. Save the model again.")
        try:
            value = helper.get_attribute_value(attribute)
            is_tensor = hasattr(value, "raw_data") and hasattr(value, "dims")
            found[attribute.name] = numpy_helper.to_array(value) if is_tensor else value
        except Exception as error:
            # onnx raises errors of many types for inconsistent tensors.
            raise DamagedFileError(
                f"{where} has the attribute {attribute.name[:60]!r}, which cannot be read ({str(error)[:100]}). Save "
                "the model again."
            ) from error
    return found


def _width(model: Any, node: Any) -> int | None:
    """Return the number of columns of the graph's only input, if `node` (None: any operator) takes it directly."""
    inputs = model.graph.input
    if len(inputs) != 1 or (node is not None and list(node.input) != [inputs[0].name]):
        return None
    shape = inputs[0].type.tensor_type.shape.dim
    return int(shape[1].dim_value) if len(shape) == 2 and shape[1].dim_value > 0 else None


def _opset(model: Any) -> str:
    return next((str(opset.version) for opset in model.opset_import if opset.domain == _DOMAIN), "not imported")


def _warnings(model: Any, foreign: list[str]) -> tuple[str, ...]:
    external = [tensor for tensor in model.graph.initializer if tensor.external_data]
    found = []
    if external:
        found.append(f"{len(external):,} tensors are in other files, which were not opened.")
    if foreign:
        found.append(f"It needs operators that are not part of ONNX: {', '.join(map(repr, foreign[:5]))}.")
    return tuple(found)
