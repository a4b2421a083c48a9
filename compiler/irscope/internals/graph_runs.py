"""What runs while a compiled function is called: graphs in Python, and the interpreter of graphs.

It needs the standard library alone and nothing of irscope's: the trial of a backend is this text and a few lines more
(`irscope.pipelines.dynamo`).
"""

from __future__ import annotations

import sys
from typing import Any


class Watch:
    """Sees which graphs run as Python while it is open; a context manager.

    Attributes:
        graphs: The code objects of graphs that ran as Python, one PyTorch operation after the other.
        interpreted: By ``id()`` the graph modules of which PyTorch's interpreter ran nodes.
        can_see: Whether it saw anything: not where the script itself has a profile function.
    """

    def __init__(self) -> None:
        self.graphs: set[Any] = set()
        self.interpreted: set[int] = set()
        self.can_see = sys.getprofile() is None

    def __enter__(self) -> Watch:
        if self.can_see:
            sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        if self.can_see:
            sys.setprofile(None)

    def _see(self, frame: Any, event: str, _arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith("<eval_with_key>"):  # how PyTorch names the Python of a graph
            self.graphs.add(code)
        elif code.co_name == "run_node" and code.co_filename.replace("\\", "/").endswith("torch/fx/interpreter.py"):
            self.interpreted.add(id(getattr(frame.f_locals.get("self"), "module", None)))


def text_of(graph: Any) -> str:
    """The operations of a graph module as text, for comparisons."""
    return str(graph.graph)


def is_graph_itself(returned: Any, graph: Any) -> bool:
    """Whether what a backend returned is the graph that it got, or a method of it."""
    return returned is graph or getattr(returned, "__self__", None) is graph


def ran_itself(watch: Watch, graph: Any) -> bool:
    """Whether the graph that the backend got ran as Python."""
    code = getattr(type(graph).forward, "__code__", None)
    return code in watch.graphs or id(graph) in watch.interpreted
