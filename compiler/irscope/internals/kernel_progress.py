"""How many of a graph's kernels are compiled: Inductor compiles them in other processes and waits for one after another.

Seen at the progress bar that Inductor itself keeps while it waits (and shows only where it is told to).  With one
compile thread there is no wait: each kernel is compiled where the output code names it.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

_ONE_BY_ONE = ("cpp", "cpp_pybinding", "triton")
WHAT = "the number of compiled kernels"


def hook(compiled: Callable[[int, int], None]) -> Hook:
    """Calls ``compiled(done, total)`` when a kernel begins and ends; a total of 0 is not known."""

    def apply(module: types.ModuleType) -> Undo:
        undo = [
            replace_attribute(module, "tqdm", _counted_bar(module.tqdm, compiled)),
            *(
                replace_attribute(module.AsyncCompile, name, _counted_call(module, name, compiled))
                for name in _ONE_BY_ONE
            ),
        ]

        def take_back() -> None:
            for one in reversed(undo):
                one()

        return take_back

    return Hook(WHAT, "torch._inductor.async_compile", "2.13", apply)


def _counted_bar(tqdm: Any, compiled: Callable[[int, int], None]) -> Callable[..., Any]:
    """The bar that Inductor would get, with an ``update`` that also tells."""

    def made(*args: Any, **keywords: Any) -> Any:
        bar = tqdm(*args, **keywords)
        with contextlib.suppress(Exception):  # whatever bar this is, Inductor gets it
            total, done, update = int(keywords.get("total") or 0), 0, bar.update

            def updated(n: Any = 1) -> Any:
                nonlocal done
                done += 1
                compiled(done, total)
                return update(n)

            bar.update = updated
            compiled(0, total)
        return bar

    return made


def _counted_call(module: types.ModuleType, name: str, compiled: Callable[[int, int], None]) -> Callable[..., Any]:
    """A method that compiles at once where there is one compile thread; else it only hands the kernel over."""
    method = getattr(module.AsyncCompile, name)

    def called(self: Any, *args: Any, **keywords: Any) -> Any:
        if module.get_compile_threads() <= 1:
            compiled(-1, 0)
        return method(self, *args, **keywords)

    return called
