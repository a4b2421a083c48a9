"""Artifacts that the script saves or loads: what it gives PyTorch's compile caches, and calls that a saved function's guards refuse."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import types
import weakref
from collections.abc import Callable
from typing import Any

from irscope.internals.frames import callers, is_in, locals_of_caller, report
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.internals.script_exports import packages
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
            caller = next(callers(), None)  # a CompiledArtifact loads its cache so, which no other compile is to find
            is_own = caller is not None and is_in(caller.f_code, "torch/_inductor/standalone_compile.py")
            if not is_own and isinstance(serialized_artifacts, bytes) and len(serialized_artifacts) <= _MOST_BYTES:
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


def saving_hook(receive: Callable[[str], None]) -> Hook:
    """Receives the path of each function that the script saves."""

    def apply(module: types.ModuleType) -> Undo:
        saved: Any = module.__dict__["AOTCompiledFunction"]
        save = saved.save_compiled_function

        @functools.wraps(save)
        def save_compiled_function(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
            result = save(self, path, *args, **kwargs)
            receive(os.fspath(path))
            return result

        return replace_attribute(saved, "save_compiled_function", save_compiled_function)

    return Hook("what is not portable in a saved function", "torch._dynamo.aot_compile", "2.13 to 2.14", apply)


_MOST_CALLS = 20
"""Calls of each loaded artifact that are looked at."""
_UNCHECKED = "calls that do not fit a loaded artifact"
Called = Callable[[str, "tuple[dict[str, str], ...] | None"], None]
"""Receives the path of an artifact and the tensors of a call, each with its ``shape``, ``dtype``, ``stride`` and ``device``
as cache keys print them; None: loading it raises AssertionError."""


def package_hook(receive: Called) -> Hook:
    """Receives the calls of what ``aoti_load_package`` has loaded."""

    def apply(module: types.ModuleType) -> Undo:
        return _watch(module, "load_package", [module.__dict__["AOTICompiledModel"]], receive)

    return Hook(_UNCHECKED, "torch._inductor.package", "2.13 to 2.14", apply)


def compiled_artifact_hook(receive: Called) -> Hook:
    """Receives the calls of what ``CompiledArtifact.load`` has loaded, and that it cannot be loaded."""

    def apply(module: types.ModuleType) -> Undo:
        classes = [module.__dict__[name] for name in ("CacheCompiledArtifact", "AOTCompiledArtifact")]
        return _watch(module.__dict__["CompiledArtifact"], "load", classes, receive)

    return Hook(_UNCHECKED, "torch._inductor.standalone_compile", "2.13 to 2.14", apply)


def _watch(holder: Any, name: str, classes: list[Any], receive: Called) -> Undo:
    """Receives the first calls of the objects of some classes that a function has loaded from a path.  For a package that
    this process has made see `script_exports.wrong_sizes`."""
    before = inspect.getattr_static(holder, name)
    load: Callable[..., Any] = getattr(holder, name)
    loaded: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()  # the path, and how many calls

    @functools.wraps(load)
    def watched(*args: Any, **kwargs: Any) -> Any:
        path: Any = kwargs.get("path", args[0] if args else None)
        is_file = isinstance(path, (str, os.PathLike)) and os.path.isfile(path) and str(path) not in packages
        try:
            found = load(*args, **kwargs)
        except AssertionError:
            if is_file:
                receive(os.fspath(path), None)
            raise
        if is_file:
            loaded[found] = [os.fspath(path), 0]
        return found

    def watch_calls(cls: Any) -> Undo:
        call = cls.__call__

        @functools.wraps(call)
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            entry = loaded.get(self)
            if entry is not None and entry[1] < _MOST_CALLS:
                entry[1] += 1
                try:
                    receive(entry[0], _tensors([*args, *kwargs.values()]))
                except Exception as error:  # noqa: BLE001  the call goes on
                    report(CaptureGap(_UNCHECKED, repr(error)))
            return call(self, *args, **kwargs)

        return replace_attribute(cls, "__call__", called)

    undo_calls = undo_all([watch_calls(cls) for cls in classes])
    setattr(holder, name, staticmethod(watched) if isinstance(before, staticmethod) else watched)

    def undo() -> None:
        setattr(holder, name, before)
        undo_calls()

    return undo


def _tensors(values: list[Any]) -> tuple[dict[str, str], ...]:
    """The tensors among arguments, in lists and dicts, too, as cache keys print them."""
    torch: Any = importlib.import_module("torch")
    leaves = torch.utils._pytree.tree_leaves(values)
    return tuple(
        {
            "shape": str(leaf.shape),
            "dtype": str(leaf.dtype),
            "stride": str(leaf.stride()),
            "device": f"device(type={leaf.device.type!r})",
        }
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    )
