"""Calls of ``torch.export`` and AOTInductor by the script itself, which leave no record in PyTorch's trace."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.exporting import flatten
from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_irscope_file
from irscope.vocabulary.records import dataclass

_VERSIONS = "2.13"
Shape = tuple[Any, ...]
packages: list[str] = []
"""The packages of AOTInductor that the script has made."""


@dataclass(frozen=True)
class Mismatch:
    """An input of a package whose size is not the one that the package was compiled for.

    Parameters
    ----------
    name
        The input.
    dimension
        From 0.
    compiled, called
        The size.
    """

    name: str
    dimension: int
    compiled: int
    called: int


def failed_exports(receive: Callable[[BaseException], None]) -> Hook:
    """Calls back with what the script's own ``torch.export.export`` raises, while it is being handled."""

    def apply(export: types.ModuleType) -> Undo:
        return undo_all(
            [replace_attribute(export, name, seen(vars(export)[name])) for name in ("export", "draft_export")]
        )

    def seen(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                if not is_irscope_file(next(callers()).f_code.co_filename):
                    receive(error)
                raise

        return called

    return Hook("why torch.export fails", "torch.export", _VERSIONS, apply)


def wrong_sizes(receive: Callable[[Mismatch], None]) -> Hook:
    """Calls back when the script calls a package of AOTInductor with a size that it was not compiled for.

    A package does not check this by itself, and what it returns then may be wrong (torch 2.13).
    """
    known: dict[str, tuple[tuple[str, Shape], ...]] = {}

    def apply(inductor: types.ModuleType) -> Undo:
        compile, load = vars(inductor)["aoti_compile_and_package"], vars(inductor)["aoti_load_package"]

        @functools.wraps(compile)
        def compiled(exported: Any, *args: Any, **kwargs: Any) -> Any:
            path = compile(exported, *args, **kwargs)
            if not is_irscope_file(next(callers()).f_code.co_filename):
                packages.append(str(path))
                known[str(path)] = _inputs_of(exported)
            return path

        @functools.wraps(load)
        def loaded(path: Any, *args: Any, **kwargs: Any) -> Any:
            program = load(path, *args, **kwargs)
            inputs = known.get(str(path))
            return program if inputs is None else _Checked(program, inputs, receive)

        return undo_all(
            [
                replace_attribute(inductor, "aoti_compile_and_package", compiled),
                replace_attribute(inductor, "aoti_load_package", loaded),
            ]
        )

    return Hook("calls of AOTInductor's packages with other sizes", "torch._inductor", _VERSIONS, apply)


def _inputs_of(exported: Any) -> tuple[tuple[str, Shape], ...]:
    """The inputs of an exported program that the caller passes: names and sizes, of which those that are not a number may
    be others at each call."""
    by_name = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    names = exported.graph_signature.user_inputs
    return tuple((str(name), tuple(getattr(by_name.get(name), "shape", ()))) for name in names)


class _Checked:
    """A loaded package whose calls are compared with what it was compiled for."""

    def __init__(
        self, program: Any, inputs: tuple[tuple[str, Shape], ...], receive: Callable[[Mismatch], None]
    ) -> None:
        self._irscope = (program, inputs, receive)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program, inputs, receive = self._irscope
        leaves, _ = flatten((args, kwargs))
        for (name, compiled), leaf in zip(inputs, leaves, strict=False):
            called = getattr(leaf, "shape", ())
            for dimension, (before, now) in enumerate(zip(compiled, called, strict=False)):
                if type(before) is int and before != now:
                    receive(Mismatch(name, dimension, before, int(now)))
        return program(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._irscope[0], name)
