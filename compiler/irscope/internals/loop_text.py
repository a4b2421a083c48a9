"""The bodies of Inductor's loops as text, each printed once, and not compiled.

Inductor prints a body by making a module of its graph, which compiles it; that is half of what it takes to print its
IR.  The same bodies are printed before and after fusion, and every layer of a model has the same ones again.
"""

from __future__ import annotations

import re
import types
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_MOST = 20_000
"""Texts that are kept; a body has about ten lines."""


def hook() -> Hook:
    """While it is applied, a body that does the same as one that was printed is not printed again."""

    def apply(loop_body: types.ModuleType) -> Undo:
        block: Any = loop_body.LoopBodyBlock
        original = block.debug_str
        known: dict[tuple[str, str], str] = {}
        alike: list[bool] = []  # whether the first body was printed as Inductor prints it

        def printed(body: Any, name: str) -> Any:
            if alike == [False]:
                return original(body, name)
            text = _text(body.graph, name)
            if not alike:
                expected = original(body, name)
                alike.append(text == expected)
                return expected
            return text

        def debug_str(self: Any, name: str = "block") -> Any:
            try:
                key = (name, _meaning(self.graph))
            except Exception:  # noqa: BLE001  a graph that is not as expected is printed as ever
                return original(self, name)
            text = known.get(key)
            if text is None:
                if len(known) >= _MOST:
                    known.clear()
                text = known[key] = printed(self, name)
            return text

        return replace_attribute(block, "debug_str", debug_str)

    return Hook(
        "fast printing of loop bodies: Inductor's IR takes longer", "torch._inductor.loop_body", "2.9 to 2.15", apply
    )


def _text(graph: Any, name: str) -> str:
    """As Inductor prints it, from the code that its module would have."""
    code = str(graph.python_code("self").src)
    return re.sub(r";[^\n]*", "", code.strip().replace("def forward(", f"def {name}("))


def _meaning(graph: Any) -> str:
    """All of a graph that its printed code tells: of each node its name, what it calls, and with what."""
    return "\n".join(
        f"{node.name}|{node.op}|{node.target}|{node.args!r}|{node.kwargs!r}|{node.type!r}" for node in graph.nodes
    )
