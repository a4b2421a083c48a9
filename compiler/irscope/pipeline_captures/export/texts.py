"""The texts beside an exported program: its inputs and outputs, and what it asks of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Port:
    """An input or an output of an exported program.

    Args:
        kind: PyTorch's word: ``parameter``, ``user input``, ``buffer mutation``, …
        target: The name in the module of a parameter or buffer; empty if there is none.
        value: Data type and shape, or the constant.
    """

    name: str
    kind: str
    target: str
    value: str


@dataclass(frozen=True)
class Symbol:
    """A dynamic size: the values it may have, and where the inputs have it (``x dimension 0``)."""

    name: str
    lower: str
    upper: str
    places: tuple[str, ...]


def ports_of(exported: Any) -> tuple[list[Port], list[Port]]:
    """The inputs and the outputs of PyTorch's ``ExportedProgram``."""
    signature = exported.graph_signature
    values = {node.name: _value(node.meta.get("val")) for node in exported.graph.nodes}
    return [_port(one, values) for one in signature.input_specs], [_port(one, values) for one in signature.output_specs]


def symbols_of(exported: Any) -> list[Symbol]:
    """The symbols of an exported program with their ranges."""
    places: dict[str, list[str]] = {}
    for node in exported.graph.nodes:
        shape = getattr(node.meta.get("val"), "shape", ()) if node.op == "placeholder" else ()
        for number, size in enumerate(shape):
            if type(size) is not int:
                places.setdefault(str(size), []).append(f"{node.name} dimension {number}")
    return [
        Symbol(str(symbol), str(limits.lower), str(limits.upper), tuple(places.get(str(symbol), ())))
        for symbol, limits in exported.range_constraints.items()
    ]


def signature_text(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    """Inputs and outputs, one a line."""
    return f"Inputs\n{_table(inputs)}\nOutputs\n{_table(outputs)}"


def constraints_text(symbols: Sequence[Symbol], guards: Sequence[str]) -> str:
    """Dynamic sizes with their ranges, and the checks on the inputs."""
    sizes = [
        f"  {one.name}: {_range(one)}" + (f" ({', '.join(one.places)})" if one.places else "") for one in symbols
    ] or ["  none: every size is the one of the first call"]
    checks = [f"  {guard}" for guard in guards] or ["  none besides the sizes and types of the inputs"]
    return "\n".join(["Dynamic shapes", *sizes, "", "Guards", *checks, ""])


def _range(symbol: Symbol) -> str:
    if symbol.upper in ("int_oo", "oo", "inf"):
        return f"{symbol.lower} or more"
    return f"{symbol.lower} to {symbol.upper}"


def _table(ports: Sequence[Port]) -> str:
    rows = [(one.name, one.kind, one.value, one.target) for one in ports]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(f"  {line.rstrip()}\n" for line in lines)


def _port(spec: Any, values: dict[str, str]) -> Port:
    name = getattr(spec.arg, "name", "") or ""
    constant = getattr(spec.arg, "value", None)
    value = values.get(name) or ("" if constant is None else repr(constant))
    return Port(name, spec.kind.name.lower().replace("_", " "), str(spec.target or ""), value)


def _value(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return "" if value is None else str(value)
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
