"""What a script passes to ``torch.compile``, for pipelines that do not use Dynamo."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute


def hook(take: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Hook:
    """Calls ``take(program)`` in place of ``torch.compile(program, …)`` and uses what it returns."""
    return compiling_hook(lambda program, compile, options: take(program))


def result_hook(see: Callable[[Callable[..., Any], Any], Any]) -> Hook:
    """Calls ``see(program, compiled)`` after ``torch.compile(program, …)`` and uses what it returns."""
    return compiling_hook(lambda program, compile, options: see(program, compile(program, **options)))


def compiling_hook(take: Callable[[Any, Callable[..., Any], dict[str, Any]], Any]) -> Hook:
    """Like `hook`: ``take(program, compile, options)`` gets what ``torch.compile`` was before, and the script's options."""

    def apply(torch: types.ModuleType) -> Undo:
        before: Callable[..., Any] = vars(torch)["compile"]

        def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
            return functools.partial(compile, **options) if model is None else take(model, before, options)

        return replace_attribute(torch, "compile", compile)

    return Hook("the programs that the script passes to torch.compile", "torch", "2.13", apply)


def caller_hook(see: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Hook:
    """Uses what ``see(function)`` returns in place of a function that the script decorates with
    ``torch.compiler.disable(recursive=False)``: plain code around compiled code."""

    def apply(compiler: types.ModuleType) -> Undo:
        before: Callable[..., Any] = vars(compiler)["disable"]

        def disable(fn: Any = None, recursive: bool = True, **options: Any) -> Any:
            if recursive:
                return before(fn, recursive=recursive, **options)
            if fn is None:
                return functools.partial(disable, recursive=recursive, **options)
            return before(see(before(fn, recursive=False, **options)), recursive=False, **options)

        return replace_attribute(compiler, "disable", disable)

    return Hook("the plain functions around compiled ones", "torch.compiler", "2.13", apply)
