"""Hooks for the kernels that Triton compiles: Inductor's, and those that people write and launch."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


def inductor_hook(see: Callable[[Any, list[Any]], None]) -> Hook:
    """Calls back with a tuner and its launchers when one of Inductor's kernels is loaded, and again when another of its
    configurations is chosen.

    A kernel is compiled in a process of Inductor's pool; what comes back is loaded here, by ``precompile``.
    """

    def apply(heuristics: types.ModuleType) -> Undo:
        tuner: Any = heuristics.CachingAutotuner
        names = ("precompile", "autotune_to_one_config", "coordinate_descent_tuning")
        return undo_all([replace_attribute(tuner, name, _then(getattr(tuner, name), see)) for name in names])

    return Hook(
        what="the stages of Triton kernels below their source",
        module="torch._inductor.runtime.triton_heuristics",
        versions="2.9 to 2.15",
        apply=apply,
    )


def _then(original: Callable[..., Any], see: Callable[[Any, list[Any]], None]) -> Callable[..., Any]:
    def seen(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tuner, *args, **kwargs)
        # The descent gives back the launcher that it settled on, before the tuner has it.
        launchers = [result] if hasattr(result, "cache_hash") else list(getattr(tuner, "launchers", ()))
        if launchers:  # none: a warm-up of the cache alone
            see(tuner, launchers)
        return result

    return seen


def listener_hook(see: Callable[[dict[str, Any]], None]) -> Hook:
    """Calls back, with a listener's keyword arguments, for each kernel that this process compiles or finds in the cache
    outside of Inductor."""

    def apply(knobs: types.ModuleType) -> Undo:
        compilation: Any = knobs.compilation
        before = compilation.listener

        def listener(**facts: Any) -> None:
            if before is not None:
                before(**facts)
            if not _is_inductor_compiling():
                see(facts)

        undo = replace_attribute(compilation, "listener", listener)

        def undo_ours() -> None:
            if compilation.listener is not listener:
                raise RuntimeError("the script has set its own listener; kernels compiled since then are not seen")
            undo()

        return undo_ours

    return Hook(
        what="Triton kernels that are launched outside of compiled code",
        module="triton.knobs",
        versions="2.10 to 2.13 (triton 3.6 to 3.7)",
        apply=apply,
    )


def facts_of_compile(compile: Callable[[], Any]) -> dict[str, Any]:
    """What a listener hears of the compile of one kernel, in a forked child, where no other listener hears of it.

    Raises AttributeError or LookupError where Triton is not as expected, and what the compile raises.
    """
    knobs: Any = sys.modules["triton.knobs"]
    heard: list[dict[str, Any]] = []
    undo = replace_attribute(knobs.compilation, "listener", lambda **facts: heard.append(facts))
    try:
        compile()
    finally:
        undo()
    if not heard:
        raise LookupError("Triton did not compile the kernel")
    return heard[-1]


def _is_inductor_compiling() -> bool:
    return any(is_in(frame.f_code, "torch/_inductor/runtime/triton_heuristics.py") for frame in callers())
