"""Reads OpenVINO's models in XML: as converted, after a pass, and as the plugin runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from irscope.capture.operation_graphs import ITEM, Names, Operation, Tensor
from irscope.capture.rewrites import inherited, sources_of
from irscope.vocabulary.records import dataclass

_HIDDEN = frozenset(
    ("shape", "element_type", "offset", "size", "execOrder", "execTimeMcs", "originalLayersNames", "outputPrecisions")
)
"""Attributes that say nothing about the operation, or what the annotation says."""
_INPUTS, _CONSTANTS, _RESULTS = ("Parameter", "Input"), ("Const", "Constant"), ("Result", "Output")
_DTYPES = {
    "FP64": "float64", "FP32": "float32", "FP16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """A layer of a model.

    Args:
        fused: The names of its layers, as far as OpenVINO kept them.
        inputs: Name and number of the result of the layers that it takes.
        traced: The nodes of the program that may have made its first result, by what OpenVINO calls this.
    """

    name: str
    type: str
    attributes: tuple[tuple[str, str], ...]
    fused: tuple[str, ...]
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[Tensor, ...]
    traced: tuple[str, ...]
    has_body: bool


def read_layers(text: str) -> list[Layer]:
    """The layers of a model, each after those that it takes.  Raises ValueError if the text is not a model."""
    try:
        net = ElementTree.fromstring(text)
        return list(_layers(net))
    except (ElementTree.ParseError, KeyError) as error:
        raise ValueError(f"not a model of OpenVINO: {error}") from error


def _layers(net: ElementTree.Element) -> Iterator[Layer]:
    elements = net.findall("./layers/layer")
    names = {one.attrib["id"]: one.attrib["name"] for one in elements}
    ports = {one.attrib["id"]: [port.attrib["id"] for port in one.findall("./output/port")] for one in elements}
    taken: dict[str, dict[int, tuple[str, int]]] = {id: {} for id in names}
    for edge in net.findall("./edges/edge"):
        maker = edge.attrib["from-layer"]
        number = ports[maker].index(edge.attrib["from-port"])
        taken[edge.attrib["to-layer"]][int(edge.attrib["to-port"])] = names[maker], number
    for one in elements:
        data = one.find("./data")
        attributes = dict(data.attrib) if data is not None else {}
        kept = attributes.get("originalLayersNames", "")
        for attribute in one.findall("./rt_info/attribute"):
            if attribute.attrib.get("name") == "fused_names":
                kept = attribute.attrib.get("value", "")
        inputs = taken[one.attrib["id"]]
        yield Layer(
            one.attrib["name"],
            one.attrib["type"],
            tuple(sorted((name, value) for name, value in attributes.items() if name not in _HIDDEN)),
            tuple(name.strip() for name in kept.split(",") if name.strip()),
            tuple(inputs[number] for number in sorted(inputs)),
            tuple(_tensor(port) for port in one.findall("./output/port")),
            _traced(one),
            any(child.tag.endswith("body") for child in one),
        )


def _traced(element: ElementTree.Element) -> tuple[str, ...]:
    """A layer is called ``NODE/OPERATOR/TYPE`` or has tensors called ``NODE:0``; a pass may drop either."""
    port = element.find("./output/port")
    tensors = port.attrib.get("names", "") if port is not None else ""
    return (element.attrib["name"].partition("/")[0], *(name.removesuffix(":0") for name in tensors.split(",") if name))


def _tensor(port: ElementTree.Element) -> Tensor:
    sizes = [int(dim.text or -1) for dim in port.findall("./dim")]
    precision = port.attrib.get("precision", "")
    return Tensor(_DTYPES.get(precision, precision.lower()), tuple("?" if size < 0 else size for size in sizes))


class ModelReader:
    """Turns the models of one compile into operations, each with what it came from in the graph before.

    Args:
        program: The operations of the program that was converted.
    """

    def __init__(self, program: Sequence[Operation]) -> None:
        self._names = Names(one.name for one in program if one.op == "call_function")
        self._before: Sequence[Operation] = program

    def read(self, layers: Sequence[Layer]) -> list[Operation]:
        """The operations of a model that follows the one that was read last."""
        order = {one.name: number for number, one in enumerate(self._before)}
        operations = list(self._operations(layers, order))
        fused = {self._value_of(one, order): [self._named(name) for name in one.fused] for one in layers}
        hints = {self._value_of(one, order): next((name for name in one.traced if name in order), "") for one in layers}
        sources = sources_of(self._before, operations, lambda one: hints.get(one.name, ""))
        before = {one.name: one for one in self._before}
        found = []
        for one in operations:
            told = [name for name in fused.get(one.name, ()) if name in before]
            all_of_it = sorted({*sources[one.name], *told}, key=order.__getitem__)
            found.append(inherited(one, {one.name: all_of_it}, before))
        self._before = found
        return found

    def _operations(self, layers: Sequence[Layer], order: dict[str, int]) -> Iterator[Operation]:
        names = {one.name: self._value_of(one, order) for one in layers}
        several = {one.name for one in layers if len(one.outputs) > 1}
        results: list[str] = []

        def written(value: tuple[str, int]) -> str:
            maker, number = value
            return self._names.of(f"{names[maker]}.{number}") if maker in several else names[maker]

        for one in layers:
            inputs = tuple(written(value) for value in one.inputs)
            name, value = names[one.name], one.outputs[0] if one.outputs else None
            if one.type in _RESULTS:
                results += inputs
            elif one.type in _INPUTS:
                yield Operation(name, "placeholder", one.name, value=value)
            elif one.type in _CONSTANTS:
                yield Operation(name, "get_attr", name, value=value)
            else:
                given = (*inputs, *(f"{key}={_literal(text)}" for key, text in one.attributes))
                target = f"openvino.{re.sub(r'[^A-Za-z0-9_]', '_', one.type)}"
                yield Operation(name, "call_function", target, inputs, given, None if one.name in several else value)
                for number, each in enumerate(one.outputs if one.name in several else ()):
                    item = written((one.name, number))
                    yield Operation(item, "call_function", ITEM, (name,), (name, str(number)), each)
        yield Operation("output", "output", "output", tuple(results), tuple(results))

    def _value_of(self, layer: Layer, order: dict[str, int]) -> str:
        """What a layer is called: by the last of its operations, whose value it gives."""
        known = [name for name in map(self._named, layer.fused) if name in order] if _is_run(layer) else []
        return max(known, key=order.__getitem__) if known else self._named(layer.name)

    def _named(self, layer: str) -> str:
        """``linear/aten.linear.default/MatMul`` → ``linear_MatMul``."""
        node, _, rest = layer.partition("/")
        return self._names.of(layer, f"{node}_{rest.rpartition('/')[2]}" if rest else "")


def _is_run(layer: Layer) -> bool:
    """Whether it is of the graph that a plugin runs, which names a fused layer after the first of its parts."""
    return any(name == "primitiveType" for name, _ in layer.attributes) and layer.type not in (*_CONSTANTS, *_INPUTS)


def _literal(text: str) -> str:
    if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text):
        return text
    if re.fullmatch(r"-?\d+(, ?-?\d+)+", text):
        return f"[{text}]"
    return {"true": "True", "false": "False"}.get(text) or repr(text)
