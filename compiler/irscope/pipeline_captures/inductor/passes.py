"""Which pass of Inductor changed a graph, and how: one version of the stage per pass that did.

Every pass is timed: those of Inductor, the user's own, and the one that AOTAutograd runs before them.  Before and after each the graph is compared node
by node (operation, target, arguments, order), so that only a graph that did change is printed.  What a pass changes in
metadata alone is not a version.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from irscope.internals.hooks import Hook
from irscope.internals.pass_hooks import pass_hooks
from irscope.internals.sympy_text import remembered_text
from irscope.pipelines.inductor.stages import JOINT_GRAPH, POST_GRAD_GRAPH, PRE_GRAD_GRAPH
from irscope.vocabulary.records import dataclass

_STAGE_OF = {
    "_recursive_pre_grad_passes": PRE_GRAD_GRAPH.name,
    "_recursive_joint_graph_passes": JOINT_GRAPH.name,
    "_recursive_post_grad_passes": POST_GRAD_GRAPH.name,
    "freeze": JOINT_GRAPH.name,
}
"""The stage whose versions the passes make, by the function of Inductor's that runs them."""
_COPYING = "freeze"
"""The pass among these whose elimination of common subexpressions copies every node."""
UNNAMED = "between_passes"
_Shape = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass
class PassRun:
    """One run of a pass.

    Args:
        seconds: What it took, without the capture.
        subgraph: The graph module below the outermost one that it ran over; empty for the outermost.
        added, removed, changed: Names of nodes.  ``changed`` have another target or other arguments.
        moved: Whether others changed places.
        text: The graph after it, printed as PyTorch does; None if it changed nothing.
        nodes: How many nodes that graph has, the outermost alone.
        data: What is known about the nodes that it added or changed.
    """

    name: str
    seconds: float
    subgraph: str = ""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    moved: bool = False
    text: str | None = None
    data: Any = None
    nodes: int | None = None

    def facts(self) -> dict[str, Any]:
        """As it is in the data of a stage."""
        return {
            "pass": self.name, "seconds": round(self.seconds, 6), "subgraph": self.subgraph, "added": list(self.added),
            "removed": list(self.removed), "changed": list(self.changed), "moved": self.moved,
        }  # fmt: skip


@dataclass
class Phase:
    """The passes of one kind over one graph.

    Args:
        stage: The stage whose versions they make.
        by_text: Whether nodes are compared by the names of what they are given: a pass makes a new graph of other nodes
            with the same names.
    """

    stage: str
    root: Any
    by_text: bool = False
    runs: list[PassRun] = field(default_factory=list)
    shapes: dict[int, _Shape] = field(default_factory=dict)
    depth: int = 0
    began: float = 0.0


class PassWatcher:
    """Hears of every pass.

    Args:
        receive: Gets each phase when its passes are done, or when one of them failed.
        describe: The data of some nodes of a graph module.
        guarded: Keeps what goes wrong here away from PyTorch.
        version: Gets the graph module before the passes of a stage (stage, None, module), and after each that changed
            it.
    """

    def __init__(
        self,
        receive: Callable[[Phase], None],
        describe: Callable[[Any, set[str]], Any],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
        version: Callable[[str, PassRun | None, Any], None] | None = None,
    ) -> None:
        self._describe, self._local, self._version = describe, threading.local(), version
        self._receive, self._begin, self._end = guarded(receive), guarded(self._note_begin), guarded(self._note_end)
        self._start = guarded(self._note_phase)

    def hooks(self) -> list[Hook]:
        """The hooks through which it sees the passes."""
        return pass_hooks(self)

    # --- what the hooks report ----------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a phase is under way in this thread."""
        return self._phase is not None

    def phase_begins(self, function: str, module: Any) -> None:
        """Begin a phase on a graph module."""
        self._start(_STAGE_OF[function], module, function == _COPYING)

    def phase_ends(self, result: Any) -> None:
        """End the phase and hand it over; `result` replaces its module where it is not None."""
        if (phase := self._phase) is not None:
            if result is not None:
                phase.root = result
            self._begin(phase.root)
            self._end(phase.root, "")
            self._local.phase = None
            self._receive(phase)

    def scalars_begin(self, module: Any) -> None:
        """Begin the phase of AOTAutograd's pass over a graph with Python numbers as inputs."""
        self._local.phase = Phase(JOINT_GRAPH.name, module)
        self._begin(module)

    def scalars_end(self, module: Any, name: str | None) -> None:
        """End that phase; it is handed over where the pass succeeded and changed the graph."""
        if (phase := self._phase) is None:
            return
        if name is not None:
            self._end(module, name)
        self._local.phase = None
        if name is not None and any(run.text is not None for run in phase.runs):
            self._receive(phase)

    def pass_begins(self, module: Any) -> None:
        """Note the graph before a pass."""
        self._begin(module)

    def pass_ends(self, module: Any, name: str) -> None:
        """Note what a pass changed."""
        self._end(module, name)

    @property
    def _phase(self) -> Phase | None:
        return getattr(self._local, "phase", None)

    # --- what is noted ------------------------------------------------------------------------------------------------

    def _note_phase(self, stage: str, module: Any, by_text: bool) -> None:
        self._local.phase = phase = Phase(stage, module, by_text)
        for below in _graph_modules(module):
            phase.shapes[id(below)] = _shape(below.graph, by_text)
        if self._version is not None:
            self._version(stage, None, module)

    def _note_begin(self, module: Any) -> None:
        phase = self._phase
        assert phase is not None
        phase.depth += 1
        if phase.depth == 1:
            self._compare(phase, module, UNNAMED, 0.0)
            phase.began = time.perf_counter()

    def _note_end(self, module: Any, name: str) -> None:
        phase = self._phase
        assert phase is not None
        phase.depth -= 1
        if phase.depth == 0 and name:
            self._compare(phase, module, name, time.perf_counter() - phase.began)

    def _compare(self, phase: Phase, module: Any, name: str, seconds: float) -> None:
        if (subgraph := _subgraph(phase, module)) is None:
            return
        before, after = phase.shapes.get(id(module)), _shape(module.graph, phase.by_text)
        phase.shapes[id(module)] = after
        if before is None or before == after:
            if name != UNNAMED:
                phase.runs.append(PassRun(name, seconds, subgraph))
            return
        old, new = (dict(zip(*shape, strict=True)) for shape in (before, after))
        changed = tuple(node for node, value in new.items() if old.get(node, value) != value)
        added = tuple(node for node in new if node not in old)
        run = PassRun(
            name,
            seconds,
            subgraph,
            added,
            removed=tuple(node for node in old if node not in new),
            changed=changed,
            moved=[node for node in before[0] if node in new] != [node for node in after[0] if node in old],
        )
        run.text = printed(phase.root, phase.stage)
        run.data = self._describe(module, {*added, *changed})
        run.nodes = len(after[0]) if not subgraph else len(phase.root.graph.nodes)
        phase.runs.append(run)
        if self._version is not None:
            self._version(phase.stage, run, phase.root)


def _subgraph(phase: Phase, module: Any) -> str | None:
    """Where the graph module of a pass is in the phase's; None if the pass works on one of its own."""
    subgraph = "" if module is phase.root else _path(phase.root, module)
    if subgraph is None and module is not None and _replaces(phase.root, module):
        phase.root, subgraph = module, ""  # the pass made a new one of the whole
    return subgraph


def printed(module: Any, stage: str) -> str:
    """A graph module as PyTorch prints it for the stage of this name."""
    options = {"post-grad-graph": {"fast_sympy_print": True}, "joint-graph": {"expanded_def": True}}.get(stage, {})
    with remembered_text():
        text = module.print_readable(print_output=False, include_stride=True, include_device=True, **options)
    return str(text).strip("\n") + "\n"


def _shape(graph: Any, by_text: bool = False) -> _Shape:
    """Names of the nodes in order, and a hash of each with what it calls and what it is given."""
    names, hashes = [], []
    for node in graph.nodes:
        names.append(node.name)
        try:
            args, kwargs = (repr(node.args), repr(node.kwargs)) if by_text else (node.args, node.kwargs or None)
            hashes.append(hash((node.op, node.target, args, kwargs)))
        except TypeError:  # slices and symbolic numbers have no hash
            hashes.append(hash((node.op, str(node.target), repr(node.args), repr(node.kwargs))))
    return tuple(names), tuple(hashes)


def _graph_modules(module: Any) -> Iterator[Any]:
    kind = sys.modules["torch.fx"].GraphModule
    return (below for below in module.modules() if isinstance(below, kind))


def _path(root: Any, module: Any) -> str | None:
    return next((name for name, below in root.named_modules() if below is module), None)


def _replaces(root: Any, module: Any) -> bool:
    """Whether a graph module is a new one of the whole graph: it has the same inputs."""
    if not isinstance(module, sys.modules["torch.fx"].GraphModule):
        return False
    old, new = ([node.name for node in graph.graph.nodes if node.op == "placeholder"] for graph in (root, module))
    return bool(old == new)
