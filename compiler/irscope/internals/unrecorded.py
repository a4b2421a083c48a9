"""Hooks for errors of which PyTorch's trace has no record, since they are raised outside of any compile."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.dynamo_frames import generator_asked
from irscope.internals.hooks import Hook, Undo, replace_attribute


def guard_failures(receive: Callable[[BaseException], None]) -> Hook:
    """Calls back with the error that the stance ``fail_on_recompile`` raises."""

    def apply(eval_frame: Any) -> Undo:
        original = eval_frame._callback_from_stance

        def callback_from_stance(callback: Any) -> Any:
            chosen = original(callback)
            if eval_frame._stance.stance != "fail_on_recompile" or not callable(chosen):
                return chosen

            # With its attributes, by which PyTorch finds the compiled code that belongs to this backend.
            @functools.wraps(chosen)
            def failing(*args: Any, **kwargs: Any) -> Any:
                try:
                    return chosen(*args, **kwargs)
                except RuntimeError as error:
                    receive(error)
                    raise

            return failing

        return replace_attribute(eval_frame, "_callback_from_stance", callback_from_stance)

    return Hook(
        what="guard failures under torch.compiler.set_stance('fail_on_recompile')",
        module="torch._dynamo.eval_frame",
        versions="2.9 to 2.13",
        apply=apply,
    )


def refused_generators(receive: Callable[[types.CodeType, bool], None]) -> Hook:
    """Calls back with the generator functions that Dynamo was asked to compile, and whether with ``fullgraph=True``.

    A generator that runs below a compiled function is refused too; there it is the break above it that matters.
    """

    def apply(convert_frame: Any) -> Undo:
        original = convert_frame.is_generator

        def is_generator(code: types.CodeType) -> Any:
            found = original(code)
            if found and (fullgraph := generator_asked()) is not None:
                receive(code, fullgraph)
            return found

        return replace_attribute(convert_frame, "is_generator", is_generator)

    return Hook(
        what="generator functions that are compiled themselves",
        module="torch._dynamo.convert_frame",
        versions="2.9 to 2.15",
        apply=apply,
    )


def unknown_backends(receive: Callable[[str], None]) -> Hook:
    """Calls back with the name of a backend that is not registered, on the stack of its error."""

    def apply(exc: Any) -> Undo:
        original = exc.InvalidBackend.__init__

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            receive(str(kwargs.get("name", args[0] if args else "")))

        return replace_attribute(exc.InvalidBackend, "__init__", init)

    return Hook(
        what="unknown backend names",
        module="torch._dynamo.exc",
        versions="2.9 to 2.15",
        apply=apply,
    )
