"""What tells a kernel from its neighbours in a list: its operations, its module, and forward or backward."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.ir.nodes import NodeFacts, facts_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, Kernel, Report, StageRef
from irscope.provenance import chain
from irscope.provenance.kernels import output_code_of
from irscope.provenance.statements import VIEWS
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.results import KernelChoice
from irscope_server.stages.tree import TextOf, UriOf, kernel_items

_VARIABLE = re.compile(r"^[LG]\['(?P<name>\w+)'\]")
"""PyTorch's path of a module begins with a local or a global variable: ``L['self'].blocks.0``."""


@dataclass(frozen=True)
class KernelFacts:
    """What is known about a kernel besides its name; whatever is not known is empty.

    Parameters
    ----------
    ops
        The operations of the user's program that it computes, in the order of the graph: ``div``, ``softmax``.  Views
        are left out where there is anything else.
    module
        The path of the ``nn.Module`` that most of them are in: ``blocks.0.attention``.  For a library function that is
        called in several modules it is empty.
    direction
        ``forward`` or ``backward``, of a compile that has both.
    function
        What was compiled: ``Trainer.loss``.
    """

    ops: tuple[str, ...] = ()
    module: str = ""
    direction: str = ""
    function: str = ""


class KernelFactsOfRun:
    """Reads what the stages of a run know about its kernels; each graph is read once."""

    def __init__(self, store: Store, report: Report) -> None:
        self._store, self._run = store, report.run
        self._compiles = {compile.id: compile for compile in report.compiles}
        self._nodes: dict[str, dict[str, NodeFacts]] = {}
        self._calls: dict[str, dict[str, list[str]]] = {}

    def of(self, kernel: Kernel) -> KernelFacts:
        """The facts of one kernel."""
        compile = self._compiles.get(kernel.compile)
        if compile is None:
            return KernelFacts()
        codes = chain.codes_by_folder(compile.stages)
        id = output_code_of(codes, kernel)
        code = next((stage for stage in codes.values() if stage.id == id), None)
        if code is None:
            return KernelFacts(function=compile.title)
        try:
            nodes = self._nodes_of(compile, code, kernel)
        except (LookupError, TypeError, ValueError, AttributeError):  # data of another version, or from elsewhere
            nodes = []
        both = any(chain.is_backward(stage) for stage in codes.values())
        direction = ("backward" if chain.is_backward(code) else "forward") if both else ""
        ops = _ops(nodes) if kernel.is_generated else (kernel.name.rpartition(".")[2],)
        return KernelFacts(ops, _module(nodes, kernel.is_generated), direction, compile.title)

    def _nodes_of(self, compile: Compile, code: StageRef, kernel: Kernel) -> list[NodeFacts]:
        """The nodes of the last graph that it computes."""
        if code.id not in self._calls:
            data = self._store.stage_data(self._run, code.id)
            found: dict[str, list[str]] = {}
            for call in (data.get("calls") if isinstance(data, dict) else None) or ():
                found.setdefault(str(call["kernel"]), []).extend(str(name) for name in call["origins"])
            self._calls[code.id] = found
        graph = _last_graph(compile, chain.is_backward(code))
        if graph is None:
            return []
        if graph.id not in self._nodes:
            facts = facts_of(self._store.stage_data(self._run, graph.id))
            self._nodes[graph.id] = {node.name: node for node in facts}
        known = self._nodes[graph.id]
        return [known[name] for name in dict.fromkeys(self._calls[code.id].get(kernel.name, ())) if name in known]


def _last_graph(compile: Compile, backward: bool) -> StageRef | None:
    """The graph that was lowered to kernels."""
    graphs = [
        stage
        for stage in chain.pipeline(compile)
        if stage_kind(stage.name).role is Role.GRAPH
        and (chain.is_shared(stage) or chain.is_backward(stage) == backward)
    ]
    return graphs[-1] if graphs else None


def _ops(nodes: Iterable[NodeFacts]) -> tuple[str, ...]:
    """``aten._softmax.default`` is ``softmax``."""
    names = []
    for node in nodes:
        if node.op.startswith("call_") and (target := node.original_aten or node.target):
            names.append((target.split(".")[1:] or [target])[0].removeprefix("_"))
    own = [name for name in names if name not in VIEWS and f"_{name}" not in VIEWS]
    return tuple(dict.fromkeys(own or names))


def _module(nodes: Iterable[NodeFacts], of_several: bool) -> str:
    paths = Counter(node.module[0] for node in nodes if node.module is not None and not node.is_view)
    if not paths or (len(paths) > 1 and not of_several):
        return ""
    path = _VARIABLE.sub(r"\g<name>", paths.most_common(1)[0][0])
    return path.removeprefix("self.")


def kernel_choices(
    store: Store, report: Report, kernels: Sequence[Kernel], uri_of: UriOf, text_of: TextOf
) -> tuple[KernelChoice, ...]:
    """Kernels as a client lists them for a choice."""
    facts = KernelFactsOfRun(store, report)
    bytes_of = {stage.id: stage.bytes for compile in report.compiles for stage in compile.stages}
    found = []
    for kernel, item in zip(kernels, kernel_items(report, kernels, uri_of, text_of), strict=True):
        known = facts.of(kernel)
        size = bytes_of.get(kernel.stage, 0) if kernel.is_generated else 0
        found.append(KernelChoice(**vars(item), **vars(known), bytes=size))
    return tuple(found)
