"""What a kernel computes, and the path of that: the lines and the modules that lead to it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from irscope.ir.modules import COMPILED_MODULE, attribute_path
from irscope.ir.nodes import VIEWS, Frame, NodeFacts, facts_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, FileLines, Kernel, Origin, Report, StageRef
from irscope.provenance import SOURCE, Element, Provenance, chain
from irscope.provenance.kernels import elements_of, output_code_of
from irscope.store.store import Store
from irscope.usercode.user_files import is_package_file, is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role

Modules = tuple[tuple[str, str], ...]
"""Path and class of modules around each other, outermost first."""


_MOST_STAGES = 12
"""Stages above a kernel in which its lines are looked for."""


@dataclass(frozen=True)
class KernelPath:
    """What is known about a kernel besides its name; whatever is not known is empty.

    Args:
        ops: The operations of the user's program that it computes, in the order of the graph: ``div``, ``softmax``.
            Views are left out where there is anything else.
        modules: The module that most of them are in, and those around it, by attribute path.
        direction: ``forward`` or ``backward``, of a compile that has both.
        innermost, lines: As those of a `Kernel`.
    """

    ops: tuple[str, ...] = ()
    modules: Modules = ()
    direction: str = ""
    innermost: Origin | None = None
    lines: tuple[FileLines, ...] = ()


class KernelPaths:
    """Reads what the stages of a run know about its kernels; each graph is read once."""

    def __init__(self, store: Store, report: Report) -> None:
        self._store, self._report, self._run = store, report.whole, report.run
        self._compiles = {compile.id: compile for compile in self._report.compiles}
        self._codes = {id: chain.codes_by_folder(compile.stages) for id, compile in self._compiles.items()}
        self._nodes: dict[tuple[str, bool], list[dict[str, NodeFacts]]] = {}
        self._calls: dict[str, dict[str, list[str]]] = {}

    def of(self, kernel: Kernel) -> KernelPath:
        """The path of one kernel."""
        compile = self._compiles.get(kernel.compile)
        codes = self._codes.get(kernel.compile, {})
        id = output_code_of(codes, kernel)
        code = next((stage for stage in codes.values() if stage.id == id), None)
        if compile is None or code is None:
            return KernelPath()
        try:
            nodes = self._nodes_of(compile, code, kernel)
        except (LookupError, TypeError, ValueError, AttributeError):  # data of another version, or from elsewhere
            nodes = []
        both = any(chain.is_backward(stage) for stage in codes.values())
        direction = ("backward" if chain.is_backward(code) else "forward") if both else ""
        ops = _ops(nodes) if kernel.is_generated else (_op(kernel.name),)
        modules = _modules(nodes, kernel.is_generated)
        if not modules and (compiled_class := self._compiled_class(compile, code)):
            modules = (("", compiled_class),)
        return KernelPath(ops, modules, direction, _innermost(nodes, modules), _lines(nodes))

    def _nodes_of(self, compile: Compile, code: StageRef, kernel: Kernel) -> list[NodeFacts]:
        """The nodes of the last graph that it computes."""
        if code.id not in self._calls:
            data = self._store.stage_data(self._run, code.id)
            calls: dict[str, list[str]] = defaultdict(list)
            for call in (data.get("calls") if isinstance(data, dict) else None) or ():
                calls[str(call["kernel"])] += map(str, call["origins"])
            self._calls[code.id] = calls
        names = self._calls[code.id].get(kernel.name, ())
        return self.nodes_of(compile, code, names, lambda: elements_of(self.thread, kernel))

    def nodes_of(
        self, compile: Compile, code: StageRef, names: Iterable[str], elements: Callable[[], Iterable[Element]]
    ) -> list[NodeFacts]:
        """The nodes that output code names, of the last graph; where a pass has made all of these, the nearest nodes
        with a line or a module that led to the elements."""
        key = compile.id, chain.is_backward(code)
        if key not in self._nodes:
            graph = _last_graph(compile, chain.is_backward(code))
            data = self._store.stage_data(self._run, graph.id) if graph is not None else None
            self._nodes[key] = _by_graph(data)
        wanted = dict.fromkeys(names)
        nodes = max(([graph[name] for name in wanted if name in graph] for graph in self._nodes[key]), key=len)
        if not any(self._nodes[key]) or any(node.stack or node.modules for node in nodes):
            return nodes
        return self._nodes_above(elements())

    def _compiled_class(self, compile: Compile, code: StageRef) -> str:
        """The class of the module whose method was compiled, or called what was compiled: it is around all.  Empty if
        there is none."""
        if compile.module_class:
            return compile.module_class
        owner, _, function = compile.qualified.rpartition(".")
        paths = (
            node.modules[0][0]
            for graph in self._nodes.get((compile.id, chain.is_backward(code)), ())
            for node in graph.values()
            if node.modules
        )
        if function == "forward" or any(path.startswith(COMPILED_MODULE) for path in paths):
            return compile.program.partition(".")[0] or owner
        return ""

    def _nodes_above(self, elements: Iterable[Element]) -> list[NodeFacts]:
        """The nearest nodes with a line or a module that led to elements."""
        level = dict.fromkeys(elements)
        for _ in range(_MOST_STAGES):
            level = dict.fromkeys(parent for element in level for parent in self.thread.parents(element))
            items = [self.thread.item(element) for element in level if element.stage != SOURCE]
            if nodes := [item.facts for item in items if item.facts and (item.facts.stack or item.facts.modules)]:
                return nodes
        return []

    @functools.cached_property
    def thread(self) -> Provenance:
        """The links of the run."""
        return Provenance(self._store, self._report)


def keep_paths(store: Store, run: str) -> None:
    """Keeps the paths of the kernels of a run that has ended."""
    report = store.report(run)
    paths = KernelPaths(store, report)
    kernels = []
    for kernel in report.whole.kernels:
        path = paths.of(kernel)
        module, module_class = path.modules[-1] if path.modules else ("", "")
        kernels.append(
            dataclasses.replace(
                kernel, innermost=path.innermost, lines=path.lines, module=module, module_class=module_class
            )
        )
    if kernels:
        with store.transaction():
            store.put_kernels(run, kernels)


def _by_graph(data: Any) -> list[dict[str, NodeFacts]]:
    """The nodes of a graph by name, then those of each graph in it, without what calls that."""
    inner = data.get("subgraphs") if isinstance(data, dict) else None
    parts = [data, *inner.values()] if isinstance(inner, dict) else [data]
    nodes = (
        (node for node in _with_modules(facts_of(part)) if node.op != "get_attr" and "subgraph" not in node.target)
        for part in parts
    )
    return [{node.name: node for node in graph} for graph in nodes]


def _with_modules(nodes: Iterable[NodeFacts]) -> Iterator[NodeFacts]:
    """Nodes in the order of their graph.  Where autograd adds up gradients it tells the line alone: the module is that of
    the node before it with the same call stack."""
    last: dict[tuple[Frame, ...], tuple[tuple[str, str], ...]] = {}
    for node in nodes:
        if node.modules:
            last[node.stack] = node.modules
        elif node.stack in last and node.stack:
            node = node._replace(modules=last[node.stack])
        yield node


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
    names = []
    for node in nodes:
        if node.op.startswith("call_") and (target := node.original_aten or node.target):
            names.append(_op(target))
    own = [name for name in names if name not in VIEWS and f"_{name}" not in VIEWS]
    return tuple(dict.fromkeys(own or names))


def _op(target: str) -> str:
    """``softmax`` of ``aten._softmax.default``, ``cumsum`` of ``torch.ops.aten.cumsum.default``."""
    return (target.removeprefix("torch.ops.").split(".")[1:] or [target])[0].removeprefix("_")


def _modules(nodes: Sequence[NodeFacts], is_one: bool) -> Modules:
    """The modules around most of the nodes; around all of them where these are not one kernel."""
    chains = [node.modules for node in nodes if node.modules and not node.is_view]
    chains = chains or [node.modules for node in nodes if node.modules]
    if not chains:
        return ()
    if is_one:
        around = Counter(chains).most_common(1)[0][0]
    else:
        depth = next((i for i, level in enumerate(zip(*chains, strict=False)) if len(set(level)) > 1), None)
        around = chains[0][: min(map(len, chains)) if depth is None else depth]
    return _attribute_paths(around)


def _innermost(nodes: Sequence[NodeFacts], modules: Modules) -> Origin | None:
    """The innermost line of the node that is computed last, of those in the module if there are any."""
    path = modules[-1][0] if modules else ""
    inside = [node for node in nodes if node.module is not None and attribute_path(node.module[0]) == path]
    for candidates in (inside, nodes):
        for of_views in (False, True):
            for node in reversed(candidates):
                frames = frames_of(node)
                if frames and node.is_view is of_views:
                    return Origin(frames[-1].file, frames[-1].line)
    return None


def modules_of(node: NodeFacts) -> Modules:
    """The modules around a node."""
    return _attribute_paths(node.modules)


def _attribute_paths(modules: Iterable[tuple[str, str]]) -> Modules:
    return tuple((attribute_path(path), kind) for path, kind in modules)


def frames_of(node: NodeFacts) -> list[Frame]:
    """The lines that led to a node, outermost first, without torch's own."""
    return [frame for frame in node.stack if is_user_file(frame.file) or is_package_file(frame.file)]


def _lines(nodes: Iterable[NodeFacts]) -> tuple[FileLines, ...]:
    files: dict[str, set[int]] = defaultdict(set)
    for node in {node.stack: node for node in nodes}.values():
        for frame in frames_of(node):
            files[frame.file].add(frame.line)
    return tuple(FileLines(file, tuple(sorted(lines))) for file, lines in files.items())
