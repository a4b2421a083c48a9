"""The deep lane and PyTorch's two compile caches: every stage is seen, and what the user's own run would find is told.

A hit in the FX graph cache or the AOTAutograd cache skips the stages after it, so a capture that wants to see them
must miss.  Keys are computed and entries are written as ever, so the caches' own events (a bypass with its reason, a
miss with its key) still come.  The cache of compiled kernels (the C++ and Triton binaries) stays in
use.

The deep lane raises the level of provenance tracking, which is a part of the keys in torch 2.13 and 2.15 (not in 2.9): so its entries
are its own, and the user's are left alone.  What the user's own run would find is looked up by the key at the user's
level, without loading anything into the compile; if the cache has only what this run put there, by no key.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
import types
from collections.abc import Callable, Collection
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all


def deep_hooks() -> list[Hook]:
    """The hooks of the deep lane, of one run: they share what the level of provenance tracking was before."""
    own = _OwnKeys()
    return [
        Hook("which user lines a kernel came from", "torch._inductor.config", "2.9 to 2.15", own.track_provenance),
        Hook("stages after a hit in the FX graph cache", "torch._inductor.codecache", "2.9 to 2.15", own.miss),
        Hook(
            "stages after a hit in the AOTAutograd cache",
            "torch._functorch._aot_autograd.autograd_cache",
            "2.9 to 2.15",
            _miss_in_compiles,
        ),
        Hook(
            "what the AOTAutograd cache knows a graph by",
            "torch._functorch._aot_autograd.autograd_cache",
            "2.9 to 2.15",
            _tell_key,
        ),
    ]


def _miss_in_compiles(cache: types.ModuleType) -> Undo:
    """Every compile misses in the AOTAutograd cache.  The lookups of others, such as of an artifact that the script loads,
    find what is there."""
    autograd_cache: Any = cache.__dict__["AOTAutogradCache"]
    look_up = autograd_cache._lookup

    def lookup(*args: Any, **kwargs: Any) -> Any:
        caller = next(callers(), None)
        is_compile = caller is not None and is_in(caller.f_code, "torch/_functorch/_aot_autograd/autograd_cache.py")
        return None if is_compile else look_up(*args, **kwargs)

    return _replace_static(autograd_cache, "_lookup", lookup)


class _OwnKeys:
    """The FX graph cache as the user's own run would ask it."""

    def __init__(self) -> None:
        self._trace: Any = None
        self._level = 0  # of provenance tracking, as the user has it
        # Our key of a graph that is compiled → the user's; empty: nothing is kept that could have it; None: not known.
        self._keys: dict[str, str | None] = {}
        self._made: set[str] = set()  # our keys

    def track_provenance(self, config: types.ModuleType) -> Undo:
        """As INDUCTOR_PROVENANCE=1 does: Inductor then says which graph nodes and user lines each kernel came from."""
        trace: Any = config.trace
        self._level = int(trace.provenance_tracking_level)
        if self._level >= 1:
            return lambda: None
        undo = replace_attribute(trace, "provenance_tracking_level", 1)
        self._trace = trace
        return undo

    def miss(self, codecache: types.ModuleType) -> Undo:
        """Every lookup of a graph misses, and says in ``cache_status_detailed`` (the key that PyTorch itself writes,
        with the same words) what the user's own run would have got."""
        module: Any = codecache
        hash_of, look_up = module.compiled_fx_graph_hash, module.FxGraphCache._lookup_graph
        # `hint_int` is its name in torch 2.9; 2.11 has neither here.
        hint_of: Any = getattr(module, "guarding_hint_or_throw", None) or getattr(module, "hint_int", _hint_of)

        def compiled_fx_graph_hash(*args: Any, **kwargs: Any) -> Any:
            key, lines = hash_of(*args, **kwargs)
            try:
                self._keys[key] = self._user_key(module, key, lambda: hash_of(*args, **kwargs)[0])
            except Exception:  # noqa: BLE001  then what the user's own run would find is not told
                self._keys[key] = None
            return key, lines

        def lookup(key: str, example_inputs: Any, local: bool, *args: Any, **kwargs: Any) -> Any:
            if key not in self._keys:  # of no compile: such as of an artifact that the script loads
                return look_up(key, example_inputs, local, *args, **kwargs)
            own = self._keys.pop(key)
            if own is None or not local:
                return None, {}
            try:
                return None, _status(module.FxGraphCache, hint_of, own, example_inputs)
            except Exception:  # noqa: BLE001  as above
                return None, {}

        undo_lookup = _replace_static(module.FxGraphCache, "_lookup_graph", lookup)
        undo_hash = replace_attribute(module, "compiled_fx_graph_hash", compiled_fx_graph_hash)

        def undo() -> None:
            undo_hash()
            undo_lookup()

        return undo

    def _user_key(self, module: Any, key: str, make: Callable[[], str]) -> str:
        """Making a key takes as long as pickling the graph, so it is made only where an entry could have it."""
        self._made.add(key)
        if self._trace is None:  # the level is the user's
            return key
        if not _has_others(module.FxGraphCache._get_tmp_dir(), self._made):
            return ""
        return self._with_user_level(module, make)

    def _with_user_level(self, module: Any, make: Callable[[], str]) -> str:
        """Makes the key once more, without its parts in words, which take most of the time."""
        restore = [replace_attribute(module.FxGraphCachePickler, "debug_lines", lambda *_: [])]
        try:
            restore.append(replace_attribute(self._trace, "provenance_tracking_level", self._level))
            return make()
        finally:
            for step in reversed(restore):
                step()


_OF_FX = frozenset({"gm", "example_inputs", "inductor_config"})
"""Parts that the key in the FX graph cache has, too; telling them again would take as long as pickling the graph."""


def _tell_key(cache: Any) -> Undo:
    """Has the cache's event tell the parts of the key that are its own.  Since torch 2.12 it has none unless its logger
    has the level DEBUG; before, it always has all."""
    key_of, pickler_class = cache.autograd_cache_key, cache.AOTAutogradCachePickler
    hash_of = pickler_class.get_hash
    made = threading.local()  # the pickler of the newest key, and what it pickled

    @functools.wraps(hash_of)
    def get_hash(self: Any, details: Any, *args: Any, **kwargs: Any) -> Any:
        made.of = self, details
        return hash_of(self, details, *args, **kwargs)

    @functools.wraps(key_of)
    def autograd_cache_key(*args: Any, **kwargs: Any) -> Any:
        made.of = None
        key, lines = key_of(*args, **kwargs)
        hashed, made.of = made.of, None
        if lines or hashed is None:
            return key, lines
        pickler, details = hashed
        try:
            own = {name: value for name, value in vars(details).items() if name not in _OF_FX}
            return key, pickler.debug_lines(types.SimpleNamespace(**own))
        except Exception:  # noqa: BLE001  then the parts are not told
            return key, lines

    return undo_all(
        [
            replace_attribute(pickler_class, "get_hash", get_hash),
            replace_attribute(cache, "autograd_cache_key", autograd_cache_key),
        ]
    )


def _hint_of(size: Any) -> Any:
    return size if isinstance(size, int) else size.node.require_hint()


def _has_others(folder: str, keys: Collection[str]) -> bool:
    """Whether a folder of the local cache has entries (``ab/fab…``, a folder each) with other keys than these."""
    if not os.path.isdir(folder):
        return False
    with os.scandir(folder) as groups:
        return any(name not in keys for group in groups if group.is_dir() for name in os.listdir(group.path))


def _status(cache: Any, hint_of: Callable[[Any], Any], key: str, inputs: Any) -> dict[str, str]:
    """What a lookup in the local cache finds: ``hit``, ``full_miss``, or ``guard_miss`` with the guards of an entry.

    Only entries of graphs with dynamic sizes are read, for their guards, as PyTorch reads them; their guards are
    evaluated on numbers, which adds no guard to the compile.
    """
    folder = cache._get_tmp_dir_for_key(key) if key else ""
    if not os.path.isdir(folder) or not os.listdir(folder):
        return {"cache_status_detailed": "full_miss"}
    hints = [hint_of(symint) for symint in cache._filter_backed_symints(inputs)]
    if not hints:
        return {"cache_status_detailed": "hit"}
    guards = ""
    for candidate, *_ in cache.iterate_over_candidates(True, None, key):
        guards = candidate.guards_expr
        if not guards or cache._get_shape_env().evaluate_guards_expression(guards, hints):
            return {"cache_status_detailed": "hit"}
    return {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": guards}


def _replace_static(cls: type, name: str, function: Callable[..., Any]) -> Undo:
    """Replaces a static method.  Raises TypeError if it is not one."""
    before = inspect.getattr_static(cls, name)
    if not isinstance(before, staticmethod):
        raise TypeError(f"{cls.__name__}.{name} is not a static method")
    setattr(cls, name, staticmethod(function))
    return lambda: setattr(cls, name, before)
