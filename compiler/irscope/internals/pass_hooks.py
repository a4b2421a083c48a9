"""Hooks around Inductor's passes over a graph.

PyTorch runs most of its passes, and the user's own, under a ``GraphTransformObserver``; others are plain functions.
AOTAutograd runs one of its own before them.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Protocol

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all

_VERSIONS = "2.9 to 2.15"
_PHASES = ("_recursive_pre_grad_passes", "_recursive_joint_graph_passes", "_recursive_post_grad_passes")
# Passes that have no observer, by the module that calls them.  One that is missing in a version of torch is found all
# the same, by what it changed, but not by its name.
_PLAIN = {
    "torch._inductor.fx_passes.pre_grad": ("numpy_compat_normalization", "sink_cat_after_pointwise"),
    "torch._inductor.fx_passes.joint_graph": ("canonicalize_aten_ir_passes", "replace_random_passes"),
    "torch._inductor.fx_passes.post_grad": ("micro_pipeline_tp_pass", "stable_topological_sort"),
    "torch._inductor.freezing": ("view_to_reshape", "replace_params_with_constants", "constant_fold"),
}


class PassEvents(Protocol):
    """What happens while passes run.  The methods run inside PyTorch and must not raise."""

    @property
    def is_open(self) -> bool:
        """Whether a phase is going on in this thread."""

    def phase_begins(self, function: str, module: Any) -> None:
        """The passes that a function of Inductor's runs begin on a graph module."""

    def phase_ends(self, result: Any) -> None:
        """They have ended; ``result``: what they returned, None if they failed or returned nothing."""

    def scalars_begin(self, module: Any) -> None:
        """AOTAutograd's pass over a graph that Python numbers are inputs of begins; it runs with any backend."""

    def scalars_end(self, module: Any, name: str | None) -> None:
        """That pass has ended; ``name`` is None if it failed, after which Dynamo traces again."""

    def pass_begins(self, module: Any) -> None:
        """A pass begins on a graph module, while a phase is open."""

    def pass_ends(self, module: Any, name: str) -> None:
        """That pass has ended."""


def pass_hooks(events: PassEvents) -> list[Hook]:
    """Reports every pass."""

    def hook(what: str, module: str, apply: Any) -> Hook:
        return Hook(what, module, _VERSIONS, apply)

    return [
        hook("which pass changed a graph", "torch._inductor.compile_fx", lambda fx: _wrap_phases(fx, events)),
        hook(
            "the names of the passes that changed a graph",
            "torch.fx.passes.graph_transform_observer",
            lambda module: _wrap_observer(module.GraphTransformObserver, events),
        ),
        hook(
            "which dead nodes were removed",
            "torch.fx.graph",
            lambda graph: _wrap_method(graph.Graph, "eliminate_dead_code", events),
        ),
        hook(
            "which pass changed a graph with parameters as constants",
            "torch._inductor.freezing",
            lambda freezing: _wrap_freezing(freezing, events),
        ),
        *(
            hook(f"passes of {module}", module, functools.partial(_wrap_plain, names, events))
            for module, names in _PLAIN.items()
        ),
        hook(
            "which Python numbers became tensors",
            "torch._functorch._aot_autograd.graph_compile",
            lambda graph_compile: _wrap_tensorify(graph_compile, events),
        ),
    ]


def _wrap_phases(compile_fx: types.ModuleType, events: PassEvents) -> Undo:
    return undo_all([_wrap_phase(compile_fx, name, events) for name in _PHASES])


def _wrap_phase(compile_fx: types.ModuleType, name: str, events: PassEvents) -> Undo:
    original = getattr(compile_fx, name)

    @functools.wraps(original)
    def passes(gm: Any, *args: Any, **kwargs: Any) -> Any:
        if events.is_open:  # a graph module below the one that is at hand
            return original(gm, *args, **kwargs)
        events.phase_begins(name, gm)
        result = None
        try:
            result = original(gm, *args, **kwargs)
        finally:
            events.phase_ends(result)
        return result

    return replace_attribute(compile_fx, name, passes)


def _wrap_freezing(freezing: types.ModuleType, events: PassEvents) -> Undo:
    original: Any = freezing.freeze

    @functools.wraps(original)
    def freeze(dynamo_gm: Any, aot_autograd_gm: Any, *args: Any, **kwargs: Any) -> Any:
        if events.is_open:
            return original(dynamo_gm, aot_autograd_gm, *args, **kwargs)
        events.phase_begins("freeze", aot_autograd_gm)
        graph = None
        try:
            graph, kept = original(dynamo_gm, aot_autograd_gm, *args, **kwargs)
        finally:
            events.phase_ends(graph)
        return graph, kept

    return replace_attribute(freezing, "freeze", freeze)


def _wrap_tensorify(graph_compile: types.ModuleType, events: PassEvents) -> Undo:
    original: Any = graph_compile.tensorify_python_scalars

    @functools.wraps(original)
    def tensorify_python_scalars(gm: Any, *args: Any, **kwargs: Any) -> Any:
        if events.is_open:
            return original(gm, *args, **kwargs)
        events.scalars_begin(gm)
        name = None
        try:
            result = original(gm, *args, **kwargs)
            name = original.__name__
        finally:
            events.scalars_end(gm, name)
        return result

    return replace_attribute(graph_compile, "tensorify_python_scalars", tensorify_python_scalars)


def _wrap_observer(observer: Any, events: PassEvents) -> Undo:
    enter, leave = observer.__enter__, observer.__exit__
    undo = [_name_functions(observer, name) for name in ("apply_gm_pass", "apply_graph_pass")]

    def __enter__(this: Any) -> Any:
        entered = enter(this)
        if events.is_open:
            events.pass_begins(this.gm)
        return entered

    def __exit__(this: Any, *error: Any) -> Any:
        if events.is_open:
            events.pass_ends(this.gm, getattr(this, "_irscope_name", None) or this.passname)
        return leave(this, *error)

    undo.append(replace_attribute(observer, "__enter__", __enter__))
    undo.append(replace_attribute(observer, "__exit__", __exit__))
    return undo_all(undo)


def _name_functions(observer: Any, name: str) -> Undo:
    original = getattr(observer, name)

    @functools.wraps(original)
    def apply(this: Any, pass_fn: Any) -> Any:
        if "custom" in this.passname:
            this._irscope_name = f"{this.passname}({_function_name(pass_fn)})"
        return original(this, pass_fn)

    return replace_attribute(observer, name, apply)


def _function_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _wrap_plain(names: tuple[str, ...], events: PassEvents, module: types.ModuleType) -> Undo:
    return undo_all([_wrap_method(module, name, events) for name in names if hasattr(module, name)])


def _wrap_method(holder: Any, name: str, events: PassEvents) -> Undo:
    original = getattr(holder, name)

    @functools.wraps(original)
    def passed(graph: Any, *args: Any, **kwargs: Any) -> Any:
        module = getattr(graph, "owning_module", graph)
        if not events.is_open or module is None:
            return original(graph, *args, **kwargs)
        events.pass_begins(module)
        try:
            return original(graph, *args, **kwargs)
        finally:
            events.pass_ends(module, name)

    return replace_attribute(holder, name, passed)
