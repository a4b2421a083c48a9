"""What single guards cost: each is checked some more times on the values that the function was just compiled for.

PyTorch measures one check of all guards together.  At the record ``dynamo_cpp_guards_str`` the tree of guards and the
values are on the stack, and PyTorch has just checked them once; so no patch is needed.  A guard is checked as
compiled code checks it, by its C++ function, called from Python: what such a call costs by itself is taken off, as
the time of the cheapest.  So a cost is exact to a few nanoseconds, with warm caches, and without the way to the value
(the attributes and items between an argument and what is watched).
"""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.frames import FrameLook

MANAGER = FrameLook(
    what="what guards cost",
    function="",
    file="torch/_dynamo/guards.py",
    local="self.guard_manager",
    fits=lambda value: hasattr(value, "root"),
    versions="2.13",
)
OUTPUT = FrameLook(
    what="what guards cost",
    function="",
    file="torch/_dynamo/guards.py",
    local="output_graph",
    fits=lambda value: hasattr(value, "local_scope"),
    versions="2.13",
)

_BUDGET_SECONDS = 0.012  # of processor time, then the tree is only walked to its end
_ROUNDS, _CALLS = 3, 40
_WARM_ROUNDS = 5
# Kinds whose check runs no code of the user's and keeps no state.
_PURE = frozenset(
    [
        "TYPE_MATCH", "ID_MATCH", "TENSOR_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD", "DYNAMIC_INDICES", "LENGTH_CHECK",
        "DICT_LENGTH", "NONE_MATCH", "NOT_NONE", "TRUE_MATCH", "FALSE_MATCH", "GLOBAL_STATE", "DEFAULT_DEVICE",
        "TORCH_FUNCTION_MODE_STACK", "WEAKREF_ALIVE", "TUPLE_ITERATOR_LEN", "RANGE_ITERATOR_MATCH", "DUAL_LEVEL_MATCH",
    ]
)  # fmt: skip
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()

Measured = list[tuple[str, int, "float | None"]]
"""In the order in which the guards are printed: the kind, how many lines it prints, nanoseconds of one check."""


def measure() -> Measured | None:
    """The guards of the compile that is ending right now; None if they cannot be found, which leaves a gap."""
    found = _manager_and_scope()
    if found is None:
        return None
    manager, scope = found
    end = time.thread_time() + _BUDGET_SECONDS
    raw = []
    for guard, path, top in _leaves(manager.root):
        kind = type(guard).__name__
        nanoseconds = None
        if time.thread_time() < end:
            value = scope["L"] if top else _value(path, scope)
            if value is not _MISSING and _is_pure(kind, value, top):
                nanoseconds = _time(guard, value)
        raw.append((kind, len(guard.verbose_code_parts()), nanoseconds))
    floor = min((ns for _, _, ns in raw if ns is not None), default=0.0)
    return [(kind, lines, None if ns is None else round(ns - floor, 1)) for kind, lines, ns in raw]


def warm_microseconds() -> float | None:
    """One check of all guards of the compile that is ending right now, the least of some; None as in `measure`.

    PyTorch measures one check, with cold caches: on a busy or slow machine a millisecond that has little to do with the
    guards.  How often they are checked is PyTorch's own affair: it does so at every call.
    """
    found = _manager_and_scope()
    if found is None:
        return None
    manager, scope = found
    return min(_seconds(lambda: manager.root.check(scope["L"])) for _ in range(_WARM_ROUNDS)) * 1e6


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _manager_and_scope() -> tuple[Any, dict[str, Any]] | None:
    """The guards, and the values by PyTorch's names for where they come from: ``L`` for locals, ``G`` for globals."""
    manager, output = MANAGER.find(), OUTPUT.find()
    if manager is None or output is None:
        return None
    return manager, {"L": output.local_scope, "G": getattr(output, "global_scope", {})}


def _leaves(root: Any) -> Iterator[tuple[Any, str, bool]]:
    """Each guard with the source of the value it checks, in the order in which PyTorch prints them.

    The last of the three is true for guards on the frame as a whole.
    """
    guards: Any = sys.modules["torch._C._dynamo.guards"]
    printed = set()

    def of(manager: Any, top: bool) -> Iterator[tuple[Any, str, bool]]:
        path = manager.get_source()
        for guard in manager.get_leaf_guards():
            if isinstance(guard, guards.RelationalGuard):  # is at each of the values that it compares
                if guard in printed:
                    continue
                printed.add(guard)
            yield guard, path, top
        if isinstance(manager, guards.DictGuardManager):
            for _, pair in sorted(manager.get_key_value_managers().items()):
                for child in pair:
                    if child is not None:
                        yield from of(child, False)
        for child in manager.get_child_managers():
            yield from of(child, False)

    yield from of(root, True)
    for guard in root.get_epilogue_lambda_guards() if hasattr(root, "get_epilogue_lambda_guards") else ():
        yield guard, "", True


def _is_pure(kind: str, value: Any, top: bool) -> bool:
    if kind == "LAMBDA_GUARD":
        return top  # the conditions on sizes
    if kind == "EQUALS_MATCH":
        return type(value) in _PLAIN
    if kind == "DICT_CONTAINS":
        return type(value) is dict
    return kind in _PURE


def _time(guard: Any, value: Any) -> float | None:
    """Nanoseconds of one call, the least of some rounds; None if it does not hold."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(_CALLS):
            holds = guard(value)
        best = min(best, (time.perf_counter_ns() - start) / _CALLS)
        if not holds:
            return None
    return best


def _value(source: str, scope: dict[str, Any]) -> Any:
    """What PyTorch's name of a source means, found without running anything of the user's."""
    try:
        return _follow(ast.parse(source, mode="eval").body, scope)
    except (SyntaxError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return _MISSING


def _follow(node: ast.expr, scope: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return scope[node.id]
    if isinstance(node, ast.Attribute):
        whole = _follow(node.value, scope)
        own = object.__getattribute__(whole, "__dict__")
        return own if node.attr == "__dict__" else own[node.attr]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        whole = _follow(node.value, scope)
        if type(whole) is dict and type(node.slice.value) in _PLAIN:
            return whole[node.slice.value]
        if type(whole) in (list, tuple) and type(node.slice.value) is int:
            return whole[node.slice.value]
    raise LookupError(ast.unparse(node))
