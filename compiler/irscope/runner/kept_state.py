"""What the user's code keeps from call to call outside of a module's tensors: globals, closures, lists, objects.

A call may change them, as by an entry of a list of losses.  What it changes is a part of what it does, and is put back
before the next call, so that no call depends on those before it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import itertools
import logging
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from irscope.runner.library_state import short, state_of_object
from irscope.usercode.user_files import is_package_file, is_user_file

_DEPTH = 5
_MOST_ENTRIES = 2000
"""The most entries of one container that are looked at: its first."""
_MOST_LEAVES = 20_000
_MOST_ELEMENTS = 1 << 16
"""The most elements of a tensor that is looked at."""
_NUMBERS = (bool, int, float, complex, str, type(None))
_OF_LIBRARIES = ("_thread", "queue", "threading", "torch.amp", "torch.optim.lr_scheduler", "types")
"""Modules whose objects keep a state in attributes."""
_CONTAINERS = ("builtins", "collections")
GONE = "not there"
"""What is said of an entry that a call took away."""


class KeptState:
    """The state around a program, as it is now."""

    def __init__(self, program: Any) -> None:
        self._program = program
        self._modules = [one for one in list(sys.modules.values()) if _is_users(one)]
        self._undo: list[Callable[[], object]] = []
        self._before = self._leaves(self._undo)

    def changed(self) -> dict[str, Any]:
        """The tensors and plain values that have changed or are new, by place: ``history[2]``."""
        now = self._leaves([])
        if _MOST_LEAVES in (len(now), len(self._before)):  # which ones they are may depend on a single entry
            now = {place: value for place, value in now.items() if place in self._before}
            return {place: value for place, value in now.items() if not _same(self._before[place], value)}
        found = {place: value for place, value in now.items() if not _same(self._before.get(place, GONE), value)}
        return found | {place: GONE for place in self._before if place not in now}

    def put_back(self) -> None:
        """Gives all of it the values that it had, in the same containers."""
        for undo in self._undo:
            with contextlib.suppress(Exception):  # an object may refuse it; the results then differ from call to call
                undo()

    def _leaves(self, undo: list[Callable[[], object]]) -> dict[str, Any]:
        seen: set[int] = set()
        walked = (
            each for name, root in _roots(self._program, self._modules) for each in _walk(name, root, undo, seen, 0)
        )
        return dict(itertools.islice(walked, _MOST_LEAVES))


def imported_files() -> tuple[str, ...]:
    """The user's files that are imported, and the first file of each package, so that another version of it is seen."""
    found = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_first = "." not in name and isinstance(file, str) and (name == "torch" or is_package_file(file))
        if is_first or _is_users(module):
            found.add(str(file))
    return tuple(sorted(found))


def walked(place: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The tensors and plain values in a value, by place; what is ``seen`` is left out, and what is looked at is added."""
    return _walk(place, value, [], seen, 0)


def cells_of(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function has of the functions around it, by name."""
    return ((name, value) for names in _cells(function) for name, value in names.names.items())


class _Names:
    """Names of a namespace: of a file, a class, a module or an object; or the name of a cell, which functions share."""

    def __init__(
        self, names: Mapping[str, Any], put: Callable[[str, Any], None], cell: types.CellType | None = None
    ) -> None:
        self.names, self.put, self.cell = names, put, cell


def _roots(program: Any, modules: list[Any]) -> Iterator[tuple[str, Any]]:
    """Where the state of a program may be, with what a place in it is called."""
    torch: Any = sys.modules["torch"]
    module = getattr(program, "_orig_mod", getattr(program, "__self__", program))
    if isinstance(module, torch.nn.Module):
        own = vars(torch.nn.Module())
        for path, one in module.named_modules():
            names = {name: value for name, value in vars(one).items() if name not in own and _is_kept_by(name, value)}
            yield f"{path}.".lstrip("."), _Names(names, vars(one).__setitem__)
    elif module is not program:
        yield "", module
    function = inspect.unwrap(getattr(module, "forward", program))
    function = getattr(function, "__func__", function)
    yield from (("", names) for names in _cells(function))
    spaces = [vars(one) for one in modules]
    spaces.append(getattr(function, "__globals__", {}))
    for space in {id(each): each for each in spaces}.values():
        file = str(space.get("__name__", ""))
        yield (
            "" if file == "__main__" else f"{file}.",
            _Names({k: v for k, v in list(space.items()) if not k.startswith("__")}, space.__setitem__),
        )


def _cells(function: Any) -> Iterator[_Names]:
    """What a function has of the functions around it."""
    code = getattr(function, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # an empty cell
            contents = cell.cell_contents
            yield _Names({name: contents}, functools.partial(_fill, cell), cell)


def _fill(cell: types.CellType, _: str, value: Any) -> None:
    cell.cell_contents = value


def _is_kept_by(name: str, value: Any) -> bool:
    """Whether an attribute of a module is not one that `irscope.runner.attributes` looks at."""
    return name.startswith("_") or not isinstance(value, (bool, int, float, sys.modules["torch"].Tensor))


def _is_users(module: Any) -> bool:
    file, name = getattr(module, "__file__", None), getattr(module, "__name__", "")
    ours = str(name).partition(".")[0] in (
        __name__.partition(".")[0],
        "torch",
    )  # torch has modules whose files are only names
    return isinstance(file, str) and not ours and is_user_file(file)


def _walk(place: str, value: Any, undo: list[Callable[[], object]], seen: set[int], depth: int) -> Iterator[Any]:
    """The tensors and plain values in a value, by place; ``undo`` gets what puts each container back."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, _NUMBERS):
        yield place, value
    elif id(value.cell if isinstance(value, _Names) else value) in seen or depth > _DEPTH:
        return
    elif isinstance(value, torch.Tensor):
        if value.layout is torch.strided and value.numel() <= _MOST_ELEMENTS and not value.is_inference():
            copy = value.detach().clone()
            undo.append(lambda: _put_back(value, copy))
            yield place, copy
            if value.requires_grad:
                yield f"{place} (requires a gradient)", True
    elif (state := state_of_object(value)) is not None:
        end, words, put_back = state
        undo += [put_back] if put_back is not None else []
        yield f"{place}{end}", words
    else:
        is_level = not isinstance(value, (_Names, staticmethod, classmethod))
        if not isinstance(value, _Names):  # these are made here, so another may have the same id later
            seen.add(id(value))
        elif value.cell is not None:
            seen.add(id(value.cell))
        for name, one in _entries(place, value, undo):
            yield from _walk(name, one, undo, seen, depth + is_level)


def _entries(place: str, value: Any, undo: list[Callable[[], object]]) -> list[tuple[str, Any]]:
    """What a container, a namespace, an object or a function of the user's holds; nothing for anything else."""
    kind = (f"{place} (its type)", type(value).__name__)
    if isinstance(value, (list, deque, tuple)) and is_own(type(value), _CONTAINERS):
        if not isinstance(value, tuple):
            undo.append(_refill(value, value.extend, list(value)))
        items = enumerate(itertools.islice(value, _MOST_ENTRIES))
        return [kind, *((f"{place}[{number}]", item) for number, item in items)]
    if isinstance(value, dict):
        if not _is_of_user(value):
            return []
        undo.append(_refill(value, value.update, dict(value)))
        entries = list(itertools.islice(value.items(), _MOST_ENTRIES))
        keys = [str(key) if isinstance(key, _NUMBERS) else type(key).__name__ for key, _ in entries]
        order = (f"{place} (its keys)", short(", ".join(keys)))
        return [kind, order, *((f"{place}[{str(key)[:40]!r}]", item) for key, item in entries)]
    if type(value) in (set, frozenset):
        if isinstance(value, set):
            undo.append(_refill(value, value.update, set(value)))
        return [kind, (place, ", ".join(sorted(str(one)[:40] for one in itertools.islice(value, _MOST_ENTRIES))))]
    if isinstance(value, contextvars.ContextVar):
        was = value.get(None)
        undo.append(lambda: value.set(was))
        return [(place, was)]
    if isinstance(value, logging.Logger):
        undo += [
            functools.partial(value.setLevel, value.level),
            _refill(value.handlers, value.handlers.extend, [*value.handlers]),
        ]
        handlers = [f"{type(one).__name__} {one.level}" for one in value.handlers]
        return [
            (
                f"{place} (its settings)",
                f"{value.level} {value.disabled} {value.propagate} {handlers} {len(value.filters)}",
            )
        ]
    if isinstance(value, _Names):
        undo.extend(
            _put(value, name, one) for name, one in value.names.items() if isinstance(one, (*_NUMBERS, list, dict))
        )
        return [(f"{place}{name}", one) for name, one in value.names.items()]
    if isinstance(value, (staticmethod, classmethod)):
        return [(place, value.__func__)]
    if isinstance(value, types.FunctionType):
        return [(f"{place}.{name}", one) for name, one in _of_function(value)] if is_own(value) else []
    return _of_object(place, value, undo)


def _is_of_user(value: dict[Any, Any]) -> bool:
    """Whether a dictionary is neither the modules nor the namespace of one, nor of a library's class."""
    return is_own(type(value), _CONTAINERS) and value is not sys.modules and "__name__" not in value


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Its default arguments, what it has of the functions around it, and attributes that it was given."""
    yield from ((f"default {number}", one) for number, one in enumerate(function.__defaults__ or ()))
    yield from (function.__kwdefaults__ or {}).items()
    yield from (("", names) for names in _cells(function))
    names = {name: one for name, one in vars(function).items() if not name.startswith("_")}
    yield "", _Names(names, vars(function).__setitem__)


def _of_object(place: str, value: Any, undo: list[Callable[[], object]]) -> list[tuple[str, Any]]:
    """The attributes of a class of the user's, or of an object of one; a module's are looked at as a program's."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, type):
        names = {name: one for name, one in vars(value).items() if not name.startswith("__")} if is_own(value) else {}
        return [(f"{place}.", _Names(names, lambda name, one: setattr(value, name, one)))] if names else []
    is_kept = is_own(type(value)) or type(value).__module__.startswith(_OF_LIBRARIES)
    if isinstance(value, (torch.nn.Module, types.ModuleType)) or not is_kept:
        return []
    slots = [
        name
        for kind in type(value).__mro__
        for name in _words_of(vars(kind).get("__slots__", ()))
        if hasattr(value, name)
    ]
    held = {name: getattr(value, name) for name in slots if not name.startswith("__")}
    undo += [functools.partial(setattr, value, name, one) for name, one in held.items()]
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict):
        undo.append(_refill(attributes, attributes.update, dict(attributes)))
        held |= attributes
    return [(f"{place}.{name}".lstrip("."), one) for name, one in list(held.items())[:_MOST_ENTRIES]]


def _words_of(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def is_own(value: Any, also: tuple[str, ...] = ()) -> bool:
    """Whether a class or a function is of a file of the user's; ``also`` are modules whose classes count, too."""
    name = getattr(value, "__module__", None)
    return isinstance(name, str) and (name in also or _is_users(sys.modules.get(name)))


# --- putting back -----------------------------------------------------------------------------------------------------


def _refill(container: Any, fill: Callable[[Any], object], entries: Any) -> Callable[[], object]:
    def undo() -> None:
        if not _holds(container, entries):
            container.clear()
            fill(entries)

    return undo


def _holds(container: Any, entries: Any) -> bool:
    """Whether a container has these very entries still."""
    if isinstance(container, set):
        return bool(container == entries)
    pairs = zip(
        *((one.items() if isinstance(one, dict) else enumerate(one)) for one in (container, entries)), strict=False
    )
    return len(container) == len(entries) and all(a[0] == b[0] and a[1] is b[1] for a, b in pairs)


def _put(space: _Names, name: str, value: Any) -> Callable[[], object]:
    return lambda: space.put(name, value)


def _put_back(tensor: Any, copy: Any) -> None:
    torch: Any = sys.modules["torch"]
    if not _same(tensor, copy):
        with torch.no_grad():
            tensor.copy_(copy)


def _same(first: Any, second: Any) -> bool:
    torch: Any = sys.modules["torch"]
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        same_kind = first.dtype == second.dtype and first.shape == second.shape and first.device == second.device
        return same_kind and bool(((first == second) | ((first != first) & (second != second))).all())
    if isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor):
        return False
    return type(first) is type(second) and (first == second or (first != first and second != second))
