"""What a symbolic trace says about a variable, from its text: ``TensorVariable f32[4, 8]cpu = relu from L['x']``."""

from __future__ import annotations

import re

from irscope.vocabulary.records import dataclass

_UNSEEN = "not looked at yet: "
_SOURCE = re.compile(r"^(?P<rest>.*?) from (?P<source>(?:[A-Z]+\[|…|\(|\w+\().*)$", re.DOTALL)
_NODE = re.compile(r"^(?P<rest>.*) = (?P<node>\w+)$", re.DOTALL)
_TENSOR = re.compile(r"^(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?P<device>[\w:]*)$")


@dataclass(frozen=True)
class SymbolicVariable:
    """Something on Dynamo's symbolic stack or among its symbolic locals.

    Args:
        kind: The class of Dynamo's tracker; empty for a value that Dynamo has not looked at yet.
        what: The value, the type, the shape, in short; as the trace has it.
        node: The graph's node that stands for it; empty if there is none.
        source: Where Dynamo finds it when the compiled code runs (``L['x']``: a local of the function); empty if it was
            made while tracing.
        dtype, shape, device: For a tensor: ``f32``, sizes as text, ``cuda:0``; else empty.
    """

    kind: str
    what: str
    node: str = ""
    source: str = ""
    dtype: str = ""
    shape: tuple[str, ...] | None = None
    device: str = ""


def variable_of(text: str) -> SymbolicVariable:
    """Reads the words that `events.trackers` makes; what it does not understand stays ``what``."""
    source = ""
    if (match := _SOURCE.match(text)) is not None:
        text, source = match["rest"], match["source"]
    if text.startswith(_UNSEEN):
        return SymbolicVariable("", text[len(_UNSEEN) :], source=source)
    kind, _, what = text.partition(" ")
    if kind == "ConstantVariable" or (match := _NODE.match(what)) is None:
        return SymbolicVariable(kind, what, source=source)
    what, node = match["rest"], match["node"]
    tensor = _TENSOR.match(what)
    if tensor is None:
        return SymbolicVariable(kind, what, node, source)
    sizes = tuple(size.strip() for size in tensor["shape"].split(",") if size.strip())
    return SymbolicVariable(kind, what, node, source, tensor["dtype"], sizes, tensor["device"])
