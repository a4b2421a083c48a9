"""TVM's importer of exported programs, which is told to name the values of Relax after the nodes that they came from."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any


class ImportFailedError(Exception):
    """TVM cannot import a program: it lacks these operators, or fails at the last of them.

    Args:
        nodes: PyTorch's ``torch.fx.Node`` of each; none if TVM failed elsewhere.
        why: What it says; empty if it does not have the operators.
    """

    def __init__(self, nodes: list[Any], why: str) -> None:
        super().__init__(why)
        self.nodes, self.why = nodes, why


@dataclasses.dataclass(frozen=True)
class Imported:
    """A module of Relax.

    Args:
        nodes: Variable of Relax → name of the node that it came from.
        parameters: The names of what its function takes.
    """

    module: Any
    nodes: dict[str, str]
    parameters: tuple[str, ...]


def import_program(program: Any) -> Imported:
    """Imports an exported program in core ATen, with its parameters as inputs.  Raises ImportFailedError."""
    translator = importlib.import_module("tvm.relax.frontend.torch.exported_program_translator")
    importer = _importer(translator.ExportedProgramImporter)()
    missing = [one for one in program.graph.nodes if importer.lacks(one)]
    if missing:
        raise ImportFailedError(missing, "")
    try:
        module = importer.from_exported_program(_WithTensors(program), True, False, False, None)
    except Exception as error:
        at = [importer.node] if importer.node is not None else []
        raise ImportFailedError(at, _first_line(error)) from error
    return Imported(module, importer.made_by, tuple(str(one.name) for one in module["main"].params))


class _WithTensors:
    """An exported program that takes tensors only: other arguments are constants of its graph, and TVM refuses them."""

    def __init__(self, program: Any) -> None:
        self._program = program
        signature = program.graph_signature
        inputs = [spec for spec in signature.input_specs if not hasattr(spec.arg, "value")]
        self.graph_signature = dataclasses.replace(signature, input_specs=inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


def _importer(base: Any) -> Any:
    class Importer(base):  # type: ignore[misc]
        """Knows which node it imports."""

        def __init__(self) -> None:
            self.node: Any = None
            self.made_by: dict[str, str] = {}
            self._builder: Any = None
            super().__init__()
            known: dict[str, Callable[..., Any]] = self.convert_map  # type: ignore[has-type]
            self.convert_map = {name: self._noting(convert) for name, convert in known.items()}

        def lacks(self, node: Any) -> bool:
            """Whether it has no translation of a node."""
            return node.op == "call_function" and node.target.__name__ not in self.convert_map

        def _noting(self, convert: Callable[..., Any]) -> Callable[..., Any]:
            def converted(node: Any, *rest: Any) -> Any:
                self.node = node
                found = convert(node, *rest)
                self.node = None
                return found

            return converted

        @property
        def block_builder(self) -> Any:
            """What it emits the bindings with."""
            return self._builder

        @block_builder.setter
        def block_builder(self, builder: Any) -> None:
            self._builder = None if builder is None else _NamingBuilder(builder, self)

    return Importer


class _NamingBuilder:
    """Names each binding after the node that is imported."""

    def __init__(self, builder: Any, importer: Any) -> None:
        self._builder, self._importer = builder, importer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)

    def emit(self, value: Any, name_hint: str = "") -> Any:
        """Like that of TVM's ``BlockBuilder``."""
        node = self._importer.node
        if getattr(getattr(value, "op", None), "name", "") == "relax.take" and value.attrs.mode == "fast":
            value = self._checked_take(value)
        variable = self._builder.emit(value, name_hint or ("" if node is None else node.name))
        if node is not None:
            self._importer.made_by[str(variable.name)] = node.name
        return variable

    def _checked_take(self, value: Any) -> Any:
        """With indices that are clipped: an index out of bounds would read other memory, or end the process."""
        take: Any = importlib.import_module("tvm.relax").op.take
        axis = value.attrs.axis
        return take(value.args[0], value.args[1], axis=None if axis is None else int(axis), mode="clip")


def _first_line(error: BaseException) -> str:
    told = next((line.strip() for line in str(error).split("\n") if line.strip()), "")
    return told or type(error).__name__
