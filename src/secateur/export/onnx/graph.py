"""Build an ONNX graph operator by operator; the only module that imports onnx."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secateur.errors import UnsupportedModelError

_OPSETS = {"": 18, "ai.onnx.ml": 5}
# The IR version of onnx 1.16, the first with TreeEnsemble. Older runtimes reject newer versions.
_IR_VERSION = 10


class Graph:
    """Collect operators and constants in the order in which they are added; values are referenced by name."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "Writing .onnx needs the onnx package, which is not installed. Run: pip install 'secateur[onnx]'"
            ) from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._outputs: list[Any] = []

    def add(
        self, operator: str, *inputs: "str | NDArray[Any] | np.generic", domain: str = "", **attributes: Any
    ) -> str:
        """Add an operator and return the name of its output; inputs are names, or arrays, which become constants."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        output = f"{operator}_{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, names, [output], name=output, domain=domain)
        node.attribute.extend(self._attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return output

    def _attribute(self, name: str, value: Any) -> Any:
        """Return an attribute; long integer lists bypass onnx's helper, which checks every element."""
        if isinstance(value, np.ndarray):
            attribute = self._onnx.AttributeProto(name=name, type=self._onnx.AttributeProto.INTS)
            attribute.ints.extend(value.tolist())
            return attribute
        if isinstance(value, type):
            value = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(value))
        return self._onnx.helper.make_attribute(name, value)

    def tensor(self, array: "NDArray[Any] | np.generic", name: str = "") -> Any:
        """Return an array as an ONNX tensor."""
        array = np.asarray(array)
        return self._onnx.numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name)

    def constant(self, array: "NDArray[Any] | np.generic") -> str:
        """Add a constant and return its name."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(self.tensor(array, name))
        return name

    def output(self, name: str, value: str, shape: Sequence[int | None], dtype: Any = np.float64) -> None:
        """Make a value an output of the graph under another name."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value(name, shape, np.dtype(dtype)))

    def _value(self, name: str, shape: Sequence[int | None], dtype: np.dtype[Any]) -> Any:
        proto = self._onnx.TensorProto
        kind = proto.STRING if dtype.kind == "U" else self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self._onnx.helper.make_tensor_value_info(name, kind, ["n_rows" if d is None else d for d in shape])

    def file(self, shape: Sequence[int | None], feature_names: Sequence[str] | None) -> bytes:
        """Return the serialised graph; its input is X of this shape.

        Raises
        ------
        UnsupportedModelError
            If it exceeds ONNX's limit of 2 GB.
        """
        helper = self._onnx.helper
        X = self._value("X", shape, np.dtype(np.float64))
        graph = helper.make_graph(self._nodes, "secateur", [X], self._outputs, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        model = helper.make_model(graph, producer_name="secateur", opset_imports=opsets, ir_version=_IR_VERSION)
        if feature_names is not None:
            helper.set_model_props(model, {"feature_names": json.dumps(list(feature_names))})
        if model.ByteSize() >= 2**31:
            raise UnsupportedModelError(
                f"The model takes {model.ByteSize()} bytes as .onnx, but ONNX files are limited to 2 GB. Prune more "
                "nodes, or save the model in another format."
            )
        data: bytes = model.SerializeToString()
        return data
