"""Artifacts that the script loads: what it gives PyTorch's compile caches, and calls that a saved function's guards refuse."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import locals_of_caller, report
from irscope.internals.hooks import Hook, Undo, replace_attribute
from irscope.protocol import CaptureGap

_MOST_BYTES = 256 << 20
_REFUSED = "calls that do not fit a saved function"


def mega_cache_hook(receive: Callable[[bytes], None]) -> Hook:
    """Receives what ``torch.compiler.load_cache_artifacts`` has loaded."""

    def apply(module: types.ModuleType) -> Undo:
        load: Callable[..., Any] = module.__dict__["load_cache_artifacts"]

        @functools.wraps(load)
        def load_cache_artifacts(serialized_artifacts: bytes, *args: Any, **kwargs: Any) -> Any:
            loaded = load(serialized_artifacts, *args, **kwargs)
            if isinstance(serialized_artifacts, bytes) and len(serialized_artifacts) <= _MOST_BYTES:
                receive(serialized_artifacts)
            return loaded

        return replace_attribute(module, "load_cache_artifacts", load_cache_artifacts)

    return Hook("why a loaded cache does not match", "torch.compiler", "2.13 to 2.14", apply)


def saved_function_hook(receive: Callable[[str, str], None]) -> Hook:
    """Receives the name of a saved function and the guard that fails in a call of it, in PyTorch's words."""

    def apply(module: types.ModuleType) -> Undo:
        saved: Any = module.__dict__["AOTCompiledFunction"]
        check = saved.guard_check

        @functools.wraps(check)
        def guard_check(self: Any, *args: Any, **kwargs: Any) -> Any:
            holds = check(self, *args, **kwargs)
            # A model asks each of its functions in turn; the last one that it asks is called.
            if not holds and isinstance(locals_of_caller("self"), saved):
                try:
                    found = self._artifacts.guard_manager.check_verbose(self.prepare_f_locals(*args, **kwargs))
                    name, reasons = self._artifacts.original_code.co_name, found.verbose_code_parts[:1]
                except Exception as error:  # noqa: BLE001  PyTorch says in any case that no guard holds
                    report(CaptureGap(_REFUSED, repr(error)))
                else:
                    receive(name, "\n".join(reasons))
            return holds

        return replace_attribute(saved, "guard_check", guard_check)

    return Hook(_REFUSED, "torch._dynamo.aot_compile", "2.13 to 2.14", apply)
