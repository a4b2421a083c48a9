"""Calls of ``torch.export`` and AOTInductor by the script itself, which leave no record in PyTorch's trace."""

from __future__ import annotations

import functools
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.exporting import flatten
from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_irscope_file, is_torch_file
from irscope.vocabulary.records import dataclass

_VERSIONS = "2.13"
Shape = tuple[Any, ...]
Inputs = tuple[tuple[str, Shape], ...]
"""Names and sizes."""
packages: list[str] = []
"""The packages of AOTInductor that the script has made."""


@dataclass(frozen=True)
class Mismatch:
    """An input of a package whose size is not the one that the package was compiled for.

    Args:
        name: The input.
        dimension: From 0.
        compiled, called: The size.
    """

    name: str
    dimension: int
    compiled: int
    called: int


def exports(receive: Callable[[Any], None]) -> Hook:
    """Calls back with what the script's own ``torch.export.export`` raises, while it is being handled, and with the
    program that ``draft_export`` made."""

    def apply(export: types.ModuleType) -> Undo:
        return undo_all(
            [
                replace_attribute(export, "export", _failing(vars(export)["export"], receive)),
                replace_attribute(export, "draft_export", _failing(vars(export)["draft_export"], receive, receive)),
            ]
        )

    return Hook("why torch.export fails", "torch.export", _VERSIONS, apply)


def made_programs(receive: Callable[[Any, Any, float], None]) -> Hook:
    """Calls back with what the script's own ``torch.export.export`` or ``draft_export`` is given and makes, and the seconds
    that it takes."""

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def called(program: Any, *args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            made = original(program, *args, **kwargs)
            if _calls_itself():
                receive(program, made, time.perf_counter() - start)
            return made

        return called

    def apply(export: types.ModuleType) -> Undo:
        names = ("export", "draft_export")
        return undo_all([replace_attribute(export, name, timed(vars(export)[name])) for name in names])

    return Hook("what the script exports by itself", "torch.export", _VERSIONS, apply)


def failed_packages(receive: Callable[[BaseException], None]) -> Hook:
    """Calls back with what AOTInductor raises when the script compiles an exported program with it."""

    def apply(inductor: types.ModuleType) -> Undo:
        names = ("aoti_compile_and_package", "aot_compile")
        return undo_all([replace_attribute(inductor, name, _failing(vars(inductor)[name], receive)) for name in names])

    return Hook("why AOTInductor fails", "torch._inductor", _VERSIONS, apply)


def _failing(
    original: Callable[..., Any], failed: Callable[[BaseException], None], made: Callable[[Any], None] | None = None
) -> Callable[..., Any]:
    """A function that tells what it raises, and what it returns, if neither irscope nor PyTorch calls it."""

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            result = original(*args, **kwargs)
        except Exception as error:
            if _calls_itself():
                failed(error)
            raise
        if made is not None and _calls_itself():
            made(result)
        return result

    return called


def _calls_itself() -> bool:
    """Whether the script, or a package that it uses, calls the function that is replaced here."""
    files = (frame.f_code.co_filename for frame in callers())
    caller = next(file for file in files if file != _calls_itself.__code__.co_filename)
    return not is_irscope_file(caller) and not is_torch_file(caller)


def wrong_sizes(receive: Callable[[Mismatch], None]) -> Hook:
    """Calls back when the script calls a package of AOTInductor with a size that it was not compiled for.

    A package does not check this by itself, and what it returns then may be wrong (torch 2.13).
    """
    known: dict[str, Inputs] = {}
    loaded_inputs: weakref.WeakKeyDictionary[Any, Inputs] = weakref.WeakKeyDictionary()
    undo: list[Undo] = []
    watched: set[type] = set()

    def watch(model: type) -> None:
        """From now on looks at the calls of loaded packages; they stay objects of PyTorch's own class."""
        original = model.__call__

        @functools.wraps(original)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            for mismatch in _mismatches(loaded_inputs.get(self, ()), args, kwargs):
                receive(mismatch)
            return original(self, *args, **kwargs)

        watched.add(model)
        undo.append(replace_attribute(model, "__call__", called))

    def apply(inductor: types.ModuleType) -> Undo:
        compile, load = vars(inductor)["aoti_compile_and_package"], vars(inductor)["aoti_load_package"]

        @functools.wraps(compile)
        def compiled(exported: Any, *args: Any, **kwargs: Any) -> Any:
            path = compile(exported, *args, **kwargs)
            if _calls_itself():
                packages.append(str(path))
                known[str(path)] = _inputs_of(exported)
            return path

        @functools.wraps(load)
        def loaded(path: Any, *args: Any, **kwargs: Any) -> Any:
            program = load(path, *args, **kwargs)
            if str(path) in known:
                loaded_inputs[program] = known[str(path)]
                if type(program) not in watched:
                    watch(type(program))
            return program

        undo.append(replace_attribute(inductor, "aoti_compile_and_package", compiled))
        undo.append(replace_attribute(inductor, "aoti_load_package", loaded))
        return undo_all(undo)

    return Hook("calls of AOTInductor's packages with other sizes", "torch._inductor", _VERSIONS, apply)


def _inputs_of(exported: Any) -> Inputs:
    """The inputs of an exported program that the caller passes: names and sizes, of which those that are not a number may
    be others at each call."""
    by_name = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    names = exported.graph_signature.user_inputs
    return tuple((str(name), tuple(getattr(by_name.get(name), "shape", ()))) for name in names)


def _mismatches(inputs: Inputs, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Mismatch]:
    leaves, _ = flatten((args, kwargs))
    for (name, compiled), leaf in zip(inputs, leaves, strict=False):
        called = getattr(leaf, "shape", ())
        for dimension, (before, now) in enumerate(zip(compiled, called, strict=False)):
            if type(before) is int and before != now:
                yield Mismatch(name, dimension, before, int(now))
