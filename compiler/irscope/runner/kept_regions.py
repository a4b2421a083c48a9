"""Writes the graphs between breaks into files, from which `region_script` makes programs again in another process.

A graph module is not pickled: FX would trace its code again, which fails for control flow.  Its code is kept as text, with
what the code names, and with the tensors and modules that it reads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from irscope.runner.rounds import Measured
from irscope.vocabulary.visible import bounded

FOLDER = "regions"
"""In the folder of a comparison: the driver makes it where it wants the graphs."""
_MOST_BYTES = 8 << 30
"""The most bytes of all tensors: models of a few billion parameters."""


class KeptRegions:
    """The files of one run.

    Args:
        folder: Folder of the comparison.  Nothing is written if it has no folder `FOLDER`.
    """

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, FOLDER)
        self._folder = path if os.path.isdir(path) else ""
        self._bytes = self._count = 0

    def keep(self, one: Measured) -> dict[str, Any]:
        """Writes a graph with the inputs of one call; returns its number as ``kept``, or says why it has none."""
        if not self._folder:
            return {}
        torch: Any = sys.modules["torch"]
        try:
            about = {
                "name": module_name(self._count), "graph": described(one.program), "args": one.args,
                "grad": one.grad, "inference": one.inference,
            }  # fmt: skip
            self._bytes += sum(tensor.nbytes for tensor in _tensors(torch, about))
            if self._bytes > _MOST_BYTES:
                return {"why_not_kept": f"The tensors of the graphs take more than {_MOST_BYTES >> 30} GiB."}
            torch.save(about, os.path.join(self._folder, f"{self._count}.pt"))
        except Exception as error:  # noqa: BLE001  one that cannot be written is not compared
            why = bounded(f"{type(error).__name__}: {error}".splitlines()[0])
            return {"why_not_kept": f"Its graph cannot be written: {why}"}
        self._count += 1
        return {"kept": self._count - 1}


def module_name(number: int) -> str:
    """What the module of a graph is called in the other process, and its file there."""
    return f"Region{number}"


def described(graph: Any) -> dict[str, Any]:
    """The code of a graph module, what it names, and what it reads; of modules inside likewise.

    Raises:
        AttributeError: The graph names something that its module does not have.
    """
    torch: Any = sys.modules["torch"]
    code = graph.graph.python_code("self")
    targets = [str(node.target) for node in graph.graph.nodes if node.op in ("get_attr", "call_module")]
    attributes = {name: _kept(torch, graph, name) for name in dict.fromkeys(targets)}
    return {
        "text": code.src,
        "modules": {name: one.__name__ for name, one in code.globals.items() if isinstance(one, ModuleType)},
        "names": {name: one for name, one in code.globals.items() if not isinstance(one, ModuleType)},
        "attributes": attributes,
    }


def _kept(torch: Any, graph: Any, name: str) -> Any:
    value = graph
    for part in name.split("."):
        value = getattr(value, part)
    return {"inner": described(value)} if isinstance(value, torch.fx.GraphModule) else {"value": value}


def _tensors(torch: Any, value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.state_dict().values()
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(torch, one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(torch, one)
