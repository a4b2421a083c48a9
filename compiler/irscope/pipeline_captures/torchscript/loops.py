"""The loops that TorchScript's tensor-expression fuser (NNC) makes of a group of operations.

The optimized graph has the groups that the executor has fused, and the fuser is asked for each of them once more: it gives
its loops as text.  A buffer in them is called after its operation, the second one of a kind ``aten_mul_1``.  What a store
computes is that operation and all those before it that have no buffer.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.internals.torchscript import Fuser, fuser, fuser_loops
from irscope.ir.torchscript import Block, parse_script
from irscope.pipeline_captures.torchscript.naming import PROFILES
from irscope.pipeline_captures.torchscript.printing import PrintedGraph

GROUP = "prim::TensorExprGroup"
_STORE = re.compile(r"^\s*(?P<buffer>\w+)\[.*\] = ")


@dataclass(frozen=True)
class Loops:
    """The loops of one group.

    Args:
        lines: The number of a line, from 1, and the name of a node of the optimized graph that it computes.
    """

    text: str
    lines: list[tuple[int, str]]


def loops_of(text: str, graph: PrintedGraph) -> Iterator[Loops]:
    """The loops of the groups in an optimized graph.  Raises RuntimeError for a group that the fuser cannot compile.

    Args:
        text: The graph as logged.
        graph: The same, as printed.
    """
    parsed = parse_script(text)
    statements = [one for one in parsed.statements() if one.kind not in PROFILES]
    printed_as = {id(one): named.names for one, named in zip(statements, graph.operations, strict=True)}
    for name, block in parsed.below.items():
        if name.startswith(GROUP):
            loops = fuser_loops(_source(text, name))
            names = {
                value.name: found[0]
                for one in block.body
                for value in one.outputs
                if (found := printed_as.get(id(one), ()))
            }
            yield Loops(loops, lines_of(loops, block, names))


def _source(text: str, name: str) -> str:
    """The graph of a group, as a separate graph."""
    _, _, rest = text.partition(f"with {name} = ")
    return rest.partition("\nwith ")[0]


def lines_of(loops: str, block: Block, names: dict[str, str]) -> list[tuple[int, str]]:
    """Which operations of a group each line of its loops computes.

    Args:
        names: Value of the group → name of its node in the optimized graph.
    """
    buffers: dict[str, str] = {}
    counts: dict[str, int] = defaultdict(int)
    inputs: dict[str, tuple[str, ...]] = {}
    for statement in block.body:
        for value in statement.outputs:
            inputs[value.name] = statement.inputs
            stem = statement.kind.replace("::", "_")
            buffers[f"{stem}_{counts[stem]}" if counts[stem] else stem] = value.name
            counts[stem] += 1
    rows = loops.split("\n")
    stored = {number: match["buffer"] for number, row in enumerate(rows, 1) if (match := _STORE.match(row))}
    written = {buffers[one] for one in stored.values() if one in buffers}
    found: list[tuple[int, str]] = []
    for number, buffer in stored.items():
        todo = [buffers[buffer]] if buffer in buffers else []
        seen: set[str] = set()
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += [given for given in inputs.get(one, ()) if given not in written]
        found += [(number, names[one]) for one in inputs if one in seen and one in names]
    return found


def fuser_facts(groups: int) -> str:
    """What the fuser may do in this process, and what it did."""
    now: Fuser = fuser()
    rows = [
        f"fused groups: {groups}",
        f"tensor-expression fuser (NNC): {'on' if now.is_on else 'off'}",
        f"fuses on the CPU: {'yes' if now.on_cpu else 'no'}",
        f"fuses on GPUs: {'yes' if now.on_gpu else 'no'}{'' if _has_gpu() else ' (this machine has none)'}",
        f"LLVM in this build of PyTorch: {'yes' if now.has_llvm else 'no'}",
    ]
    if not groups and not now.on_cpu:
        rows += ["", "PyTorch fuses on the CPU only if it was built with LLVM or if the script turns it on."]
    if not now.has_llvm:
        rows += ["", "Without LLVM there is no LLVM IR and no assembly of the loops."]
    elif groups:
        rows += ["", "irscope does not show the code that the fuser makes of the loops."]
    return "\n".join(rows) + "\n"


def _has_gpu() -> bool:
    return bool(sys.modules["torch"].cuda.is_available())
