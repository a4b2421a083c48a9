"""Reads an ONNX model as operations with the user's lines that the exporter wrote into its metadata."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.operation_graphs import ITEM, Frames, Names, Operation, Tensor

_STACK, _NODE = "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"
_SCOPES, _CLASSES = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy"
_LONGEST = 60
"""Characters of a constant in a text."""
RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout")
)
"""Operators that draw random numbers.  What the optimizer leaves of ``Dropout`` is for training."""


class ModelReader:
    """Reads the models of one compile.

    Args:
        frames: Keeps the frames of stack traces that were read once.
        values: Name of an initializer, an input or an output in the model → the node of the exported program that it
            is.
    """

    def __init__(self, frames: NodeWriter, values: dict[str, str]) -> None:
        self._frames, self._values = frames, values
        self._names = Names()

    def read(self, model: Any, shapes: dict[str, Tensor] | None = None) -> list[Operation]:
        """The operations of a model, an ``onnx_ir.Model``.

        Args:
            shapes: What is known about the first result of nodes by name, for those whose model does not say it.
        """
        graph = model.graph
        inputs = [value for value in graph.inputs if not value.is_initializer()]
        found = [
            Operation(self._names.of(value.name), "placeholder", value.name, value=_tensor(value), sources=self._source(value))
            for value in inputs
        ]  # fmt: skip
        nodes = list(_all_nodes(graph))
        used = dict.fromkeys(value for node in nodes for value in node.inputs if value is not None)
        found += [self._initializer(value) for value in (*used, *graph.outputs) if value.is_initializer()]
        for node in nodes:
            found += self._operations(node, shapes or {})
        results = tuple(self._names.of(value.name) for value in graph.outputs)
        return [*found, Operation("output", "output", "output", results, results)]

    def name_of(self, value: str) -> str:
        """What a value of the model is called in the texts."""
        return self._names.of(value)

    def _source(self, value: Any) -> tuple[str, ...]:
        return (self._values[value.name],) if value.name in self._values else ()

    def _initializer(self, value: Any) -> Operation:
        sources = self._source(value)
        return Operation(
            self._names.of(value.name), "get_attr", value.name, value=_tensor(value), sources=sources,
            note="" if sources else _constant(value.const_value),
        )  # fmt: skip

    def _operations(self, node: Any, shapes: dict[str, Tensor]) -> Iterator[Operation]:
        facts = node.metadata_props
        frames: Frames = self._frames.frames(facts.get(_STACK, ""))
        source, module = _traced(node), _module(facts)
        sources = (source,) if source else ()
        inputs = [self._names.of(value.name) if value is not None else "None" for value in node.inputs]
        below = [f"{name}={self._names.of(value.name)}" for name, value in _results_below(node)]
        written = (*inputs, *below, *(f"{name}={text}" for name, text in _attributes(node)))
        given = [*(name for name in inputs if name != "None"), *(one.partition("=")[2] for one in below)]
        space = (node.domain or "onnx").replace(".", "_").replace("-", "_")
        target = f"{space}.{node.op_type}"
        outputs = [value for value in node.outputs if value.name]
        if len(outputs) == 1:
            value = _tensor(outputs[0]) or shapes.get(node.name)
            name = self._names.of(outputs[0].name)
            yield Operation(name, "call_function", target, tuple(given), written, value, frames, module, sources)
            return
        whole = self._names.of(f"{node.name} of {node.op_type}")
        yield Operation(whole, "call_function", target, tuple(given), written, None, frames, module, sources)
        for number, value in enumerate(node.outputs):
            if value.name:
                yield Operation(
                    self._names.of(value.name), "call_function", ITEM, (whole,), (whole, str(number)), _tensor(value),
                    frames, module, sources,
                )  # fmt: skip


def operators_of(model: Any) -> set[str]:
    """The types of all nodes of a model."""
    return {node.op_type for node in _all_nodes(model.graph)}


def node_of(model: Any, name: str) -> str:
    """The node of the exported program that a node of a model came from; empty if that is not known."""
    return next((_traced(node) for node in _all_nodes(model.graph) if node.name == name), "")


def _traced(node: Any) -> str:
    found = re.match(r"%(\w+)", node.metadata_props.get(_NODE, ""))
    return found[1] if found else ""


def node_names(model: Any) -> dict[str, str]:
    """Name of a node → name of its first result."""
    return {node.name: node.outputs[0].name for node in _all_nodes(model.graph) if node.name and node.outputs}


def result_names(model: Any) -> dict[str, str]:
    """Name of a result → name of its node."""
    return {value.name: node.name for node in _all_nodes(model.graph) for value in node.outputs if value.name}


def _all_nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph; those of a branch or a loop come before the node that has it."""
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type.name == "GRAPH":
                yield from _all_nodes(attribute.value)
        yield node


def _results_below(node: Any) -> Iterator[tuple[str, Any]]:
    for name, attribute in node.attributes.items():
        if attribute.type.name == "GRAPH":
            yield from ((name, value) for value in attribute.value.outputs)


def _attributes(node: Any) -> Iterator[tuple[str, str]]:
    for name, attribute in sorted(node.attributes.items()):
        kind, value = attribute.type.name, attribute.value
        if kind == "TENSOR":
            yield name, _constant(value) or "..."
        elif kind in ("STRING", "INT", "FLOAT"):
            yield name, repr(value)
        elif kind in ("INTS", "FLOATS", "STRINGS"):
            yield name, _shortened(repr(list(value)))
        elif kind != "GRAPH":
            yield name, repr(kind.lower())


def _constant(tensor: Any) -> str:
    """The elements of a small constant; empty for any other."""
    if tensor is None or tensor.size > 8:
        return ""
    try:
        return _shortened(repr(tensor.numpy().tolist()))
    except (TypeError, ValueError):  # a data type that NumPy does not have
        return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else repr(f"{text[:_LONGEST]}…")


def _tensor(value: Any) -> Tensor | None:
    if value.dtype is None:
        return None
    shape = value.shape
    sizes = None if shape is None else tuple(one if isinstance(one, int) else str(one) for one in shape)
    return Tensor(DTYPES.get(value.dtype.name, value.dtype.name.lower()), sizes)


DTYPES = {"FLOAT": "float32", "DOUBLE": "float64"}
"""ONNX's names that are not those of PyTorch in capitals."""


def _module(facts: Any) -> tuple[str, str] | None:
    try:
        scopes, classes = ast.literal_eval(facts[_SCOPES]), ast.literal_eval(facts[_CLASSES])
        return (str(scopes[-2]), str(classes[-2])) if len(scopes) > 1 else None
    except (KeyError, ValueError, SyntaxError, IndexError):
        return None
