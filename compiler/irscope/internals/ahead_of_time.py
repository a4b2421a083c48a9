"""Compiles that the script asks for ahead of time: ``torch.compile(f, fullgraph=True).aot_compile(…)``.

PyTorch traces such a function in a separate compile, but writes no ``dynamo_start``, and runs the backend after that
compile has ended.  So its records say neither which function they are of nor, from the backend on, which compile.
"""

from __future__ import annotations

import functools
import threading
import types
from typing import Any, Protocol

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


class Receiver(Protocol):
    """Receives these compiles, by PyTorch's names (``0/0``)."""

    def began(self, compile: str, code: types.CodeType, program: Any) -> None:
        """A compile of a function begins."""

    def traced(self, compile: str, operations: int) -> None:
        """Dynamo has made the graph, with so many operations."""

    def failed(self, compile: str) -> None:
        """An exception, which goes to the script, ends the compile; called while it is handled."""


class _OfThread(threading.local):
    """The compile that goes on in this thread; ``is_named``: Dynamo has taken its name."""

    id: Any = None
    is_named = False


def hook(receiver: Receiver) -> Hook:
    """Has all that belongs to such a compile happen in one compile of PyTorch's."""

    def apply(module: types.ModuleType) -> Undo:
        from torch import _guards  # imported already, as a part of Dynamo

        convert: Any = module.__dict__["convert_frame"]
        compile_of, name_of, capture = (
            vars(module)["aot_compile_fullgraph"],
            convert.get_compile_id,
            convert.fullgraph_capture,
        )
        guards: Any = _guards
        here = _OfThread()

        @functools.wraps(name_of)
        def get_compile_id(*args: Any, **kwargs: Any) -> Any:
            if here.id is None or here.is_named:
                return name_of(*args, **kwargs)
            here.is_named = True
            return here.id

        @functools.wraps(capture)
        def fullgraph_capture(*args: Any, **kwargs: Any) -> Any:
            try:
                made = capture(*args, **kwargs)
            except Exception:
                if here.id is not None:
                    receiver.failed(str(here.id))  # before PyTorch writes its metrics, which do not say it
                raise
            if here.id is not None and made.backend_input is not None:
                nodes = made.backend_input.graph_module.graph.nodes
                receiver.traced(str(here.id), sum(node.op.startswith("call_") for node in nodes))
            return made

        @functools.wraps(compile_of)
        def aot_compile_fullgraph(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                code = convert.get_traced_fn(model)[0].__code__
            except Exception:  # noqa: BLE001  PyTorch raises it to the script
                return compile_of(model, *args, **kwargs)
            before = here.id, here.is_named
            here.id, here.is_named = name_of({}), False
            compile = str(here.id)
            try:
                with guards.compile_context(guards.CompileContext(here.id)):
                    receiver.began(compile, code, model)
                    return compile_of(model, *args, **kwargs)
            except Exception:
                receiver.failed(compile)
                raise
            finally:
                here.id, here.is_named = before

        return undo_all(
            [
                replace_attribute(convert, "get_compile_id", get_compile_id),
                replace_attribute(convert, "fullgraph_capture", fullgraph_capture),
                replace_attribute(module, "aot_compile_fullgraph", aot_compile_fullgraph),
            ]
        )

    return Hook("functions that aot_compile compiles", "torch._dynamo.aot_compile", "2.11 to 2.14", apply)
