"""Which pass of Inductor changed a graph, and how: one version of the stage per pass that did.

PyTorch runs most of its passes, and the user's own, under a ``GraphTransformObserver``; others are plain functions.
Both are timed here, as is the one that AOTAutograd runs before them.  Before and after each the graph is compared node
by node (operation, target, arguments, order), so that only a graph that did change is printed.  What a pass changes in
metadata alone is no version.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.sympytext import remembered_text

_PHASE_OF = {
    "_recursive_pre_grad_passes": "pre-grad-graph",
    "_recursive_joint_graph_passes": "joint-graph",
    "_recursive_post_grad_passes": "post-grad-graph",
}
# Passes that are no observer's, by the module that calls them.  One that is missing in a version of torch is found
# all the same, by what it changed, but not by its name.
_PLAIN = {
    "torch._inductor.fx_passes.pre_grad": ("numpy_compat_normalization", "sink_cat_after_pointwise"),
    "torch._inductor.fx_passes.joint_graph": ("canonicalize_aten_ir_passes", "replace_random_passes"),
    "torch._inductor.fx_passes.post_grad": ("micro_pipeline_tp_pass", "stable_topological_sort"),
}
UNNAMED = "between_passes"
_Shape = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass
class PassRun:
    """One run of a pass.

    Parameters
    ----------
    seconds
        What it took, without the capture.
    subgraph
        The graph module below the outermost one that it ran over; empty for the outermost.
    added, removed, changed
        Names of nodes.  ``changed`` have another target or other arguments.
    moved
        Whether others changed places.
    text
        The graph after it, printed as PyTorch does; nothing where it changed nothing.
    nodes
        How many nodes that graph has, the outermost alone.
    data
        What is known of the nodes that it added or changed.
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
        """As it stands in the data of a stage."""
        return {
            "pass": self.name, "seconds": round(self.seconds, 6), "subgraph": self.subgraph, "added": list(self.added),
            "removed": list(self.removed), "changed": list(self.changed), "moved": self.moved,
        }  # fmt: skip


@dataclass
class Phase:
    """The passes of one kind over one graph.  ``stage`` is the stage whose versions they make."""

    stage: str
    root: Any
    runs: list[PassRun] = field(default_factory=list)
    shapes: dict[int, _Shape] = field(default_factory=dict)
    depth: int = 0
    began: float = 0.0


class PassWatcher:
    """Hears of every pass.

    Parameters
    ----------
    receive
        Gets each phase when its passes are done, or when one of them failed.
    describe
        The data of some nodes of a graph module.
    guarded
        Keeps what goes wrong here away from PyTorch.
    version
        Gets the graph module before the passes of a stage (stage, nothing, module), and after each that changed it.
    """

    def __init__(
        self,
        receive: Callable[[Phase], None],
        describe: Callable[[Any, set[str]], Any],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
        version: Callable[[str, PassRun | None, Any], None] | None = None,
    ) -> None:
        self._describe, self._local, self._version = describe, threading.local(), version
        self._receive, self._begin, self._end = guarded(receive), guarded(self._pass_begins), guarded(self._pass_ends)
        self._start = guarded(self._phase_begins)

    def hooks(self) -> list[Hook]:
        phases = Hook("which pass changed a graph", "torch._inductor.compile_fx", "2.9 to 2.15", self._wrap_phases)
        observer = Hook(
            "the names of the passes that changed a graph",
            "torch.fx.passes.graph_transform_observer",
            "2.9 to 2.15",
            self._wrap_observer,
        )
        dead = Hook(
            "which dead nodes were removed",
            "torch.fx.graph",
            "2.9 to 2.15",
            lambda graph: self._wrap_method(graph.Graph, "eliminate_dead_code"),
        )
        plain = [
            Hook(f"passes of {module}", module, "2.9 to 2.15", functools.partial(self._wrap_plain, names))
            for module, names in _PLAIN.items()
        ]
        numbers = Hook(
            "which Python numbers became tensors",
            "torch._functorch._aot_autograd.graph_compile",
            "2.9 to 2.15",
            self._wrap_tensorify,
        )
        return [phases, observer, dead, *plain, numbers]

    @property
    def _phase(self) -> Phase | None:
        return getattr(self._local, "phase", None)

    # --- what is wrapped ----------------------------------------------------------------------------------------------

    def _wrap_phases(self, compile_fx: types.ModuleType) -> Undo:
        return _together([self._wrap_phase(compile_fx, name, stage) for name, stage in _PHASE_OF.items()])

    def _wrap_phase(self, compile_fx: types.ModuleType, name: str, stage: str) -> Undo:
        original = getattr(compile_fx, name)

        @functools.wraps(original)
        def passes(gm: Any, *args: Any, **kwargs: Any) -> Any:
            if self._phase is not None:  # a graph module below the one that is at hand
                return original(gm, *args, **kwargs)
            self._start(stage, gm)
            try:
                result = original(gm, *args, **kwargs)
                if (phase := self._phase) is not None and result is not None:
                    phase.root = result
                return result
            finally:
                if (phase := self._phase) is not None:
                    self._begin(phase.root)
                    self._end(phase.root, "")
                    self._local.phase = None
                    self._receive(phase)

        return replace_attribute(compile_fx, name, passes)

    def _wrap_tensorify(self, graph_compile: types.ModuleType) -> Undo:
        """AOTAutograd's pass over a graph that Python numbers are inputs of; it runs with any back end."""
        original: Any = graph_compile.tensorify_python_scalars

        @functools.wraps(original)
        def tensorify_python_scalars(gm: Any, *args: Any, **kwargs: Any) -> Any:
            if self._phase is not None:
                return original(gm, *args, **kwargs)
            self._local.phase = phase = Phase("joint-graph", gm)
            try:
                self._begin(gm)
                result = original(gm, *args, **kwargs)  # where it raises, Dynamo traces anew
                self._end(gm, original.__name__)
            finally:
                self._local.phase = None
            if any(run.text is not None for run in phase.runs):
                self._receive(phase)
            return result

        return replace_attribute(graph_compile, "tensorify_python_scalars", tensorify_python_scalars)

    def _wrap_observer(self, module: types.ModuleType) -> Undo:
        observer: Any = module.GraphTransformObserver
        enter, leave = observer.__enter__, observer.__exit__
        undo = [self._name_functions(observer, name) for name in ("apply_gm_pass", "apply_graph_pass")]

        def __enter__(this: Any) -> Any:
            entered = enter(this)
            if self._phase is not None:
                self._begin(this.gm)
            return entered

        def __exit__(this: Any, *error: Any) -> Any:
            if self._phase is not None:
                self._end(this.gm, getattr(this, "_irscope_name", None) or this.passname)
            return leave(this, *error)

        undo.append(replace_attribute(observer, "__enter__", __enter__))
        undo.append(replace_attribute(observer, "__exit__", __exit__))
        return _together(undo)

    def _name_functions(self, observer: Any, name: str) -> Undo:
        original = getattr(observer, name)

        @functools.wraps(original)
        def apply(this: Any, pass_fn: Any) -> Any:
            if "custom" in this.passname:
                this._irscope_name = f"{this.passname}({_function_name(pass_fn)})"
            return original(this, pass_fn)

        return replace_attribute(observer, name, apply)

    def _wrap_plain(self, names: tuple[str, ...], module: types.ModuleType) -> Undo:
        return _together([self._wrap_method(module, name) for name in names if hasattr(module, name)])

    def _wrap_method(self, holder: Any, name: str) -> Undo:
        original = getattr(holder, name)

        @functools.wraps(original)
        def passed(graph: Any, *args: Any, **kwargs: Any) -> Any:
            module = getattr(graph, "owning_module", graph)
            if self._phase is None or module is None:
                return original(graph, *args, **kwargs)
            self._begin(module)
            try:
                return original(graph, *args, **kwargs)
            finally:
                self._end(module, name)

        return replace_attribute(holder, name, passed)

    # --- what is noted ------------------------------------------------------------------------------------------------

    def _phase_begins(self, stage: str, module: Any) -> None:
        self._local.phase = phase = Phase(stage, module)
        for below in _graph_modules(module):
            phase.shapes[id(below)] = _shape(below.graph)
        if self._version is not None:
            self._version(stage, None, module)

    def _pass_begins(self, module: Any) -> None:
        phase = self._phase
        assert phase is not None
        phase.depth += 1
        if phase.depth == 1:
            self._compare(phase, module, UNNAMED, 0.0)
            phase.began = time.perf_counter()

    def _pass_ends(self, module: Any, name: str) -> None:
        phase = self._phase
        assert phase is not None
        phase.depth -= 1
        if phase.depth == 0 and name:
            self._compare(phase, module, name, time.perf_counter() - phase.began)

    def _compare(self, phase: Phase, module: Any, name: str, seconds: float) -> None:
        subgraph = "" if module is phase.root else _path(phase.root, module)
        if subgraph is None:  # the pass works on a graph module of its own, or made a new one of the whole
            if module is None or not _replaces(phase.root, module):
                return
            phase.root, subgraph = module, ""
        before, after = phase.shapes.get(id(module)), _shape(module.graph)
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


def printed(module: Any, stage: str) -> str:
    """A graph module as PyTorch prints it for the stage of this name."""
    options = {"post-grad-graph": {"fast_sympy_print": True}, "joint-graph": {"expanded_def": True}}.get(stage, {})
    with remembered_text():
        text = module.print_readable(print_output=False, include_stride=True, include_device=True, **options)
    return str(text).strip("\n") + "\n"


def _shape(graph: Any) -> _Shape:
    """Names of the nodes in order, and a hash of each with what it calls and what it is given."""
    names, hashes = [], []
    for node in graph.nodes:
        names.append(node.name)
        try:
            hashes.append(hash((node.op, node.target, node.args, node.kwargs or None)))
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


def _function_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _together(undo: list[Undo]) -> Undo:
    def restore() -> None:
        for step in reversed(undo):
            step()

    return restore
