"""The tensors that a graph of Dynamo's takes as inputs, by the names that the script has for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PART = re.compile(r"\._(?:modules|parameters|buffers)\['([^']+)'\]|\.(\w+)|\[(\d+)\]")


def tensors_of(graph: Any) -> Iterator[tuple[Any, str, Any]]:
    """Each input that is a tensor: its node, its name below the module or function, and the tensor (torch 2.9 to 2.13).

    Only while Dynamo has the graph; it forgets the tensors afterwards.
    """
    for node in graph.graph.nodes:
        argument = node.meta.get("grapharg") if node.op == "placeholder" else None
        if argument is not None and argument.is_tensor and argument.example is not None:
            yield node, _plain(_text(argument.source.name)), argument.example


def _text(name: Any) -> str:
    return str(name() if callable(name) else name)  # torch 2.9 has a method


def _plain(source: str) -> str:
    """``L['self']._modules['a']._parameters['weight']`` is ``a.weight``, and ``L['x']`` is ``x``."""
    root, _, rest = source.partition("]")
    parts = [next(filter(None, found.groups())) for found in _PART.finditer(rest)]
    return ".".join(parts) if parts else root.partition("'")[2].partition("'")[0]
