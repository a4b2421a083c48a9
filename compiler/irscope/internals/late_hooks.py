"""Hooks of modules that are added when compiled code has the module's call already: that code runs without them.

Dynamo looks at a module's hooks while it traces the module, and by default guards only those that are there then.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from irscope.internals.frames import callers, is_in
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.vocabulary.records import dataclass

_KINDS = {
    "_forward_pre_hooks": "register_forward_pre_hook",
    "_forward_hooks": "register_forward_hook",
    "_backward_pre_hooks": "register_full_backward_pre_hook",
    "_backward_hooks": "register_full_backward_hook",
}
"""What a module keeps its hooks in, and what adds them."""


@dataclass(frozen=True)
class LateHook:
    """A hook that compiled code left out.

    Args:
        module: The name of the module's class.
        method: What added it.
        place: What ``look`` gave when it was added.
    """

    module: str
    method: str
    place: Any


@dataclass(frozen=True)
class _Added:
    hook: LateHook
    handle: Any
    module: int


class _Watch:
    """Which modules Dynamo has traced for which calls of ``torch.compile``, and which hooks came later."""

    def __init__(self, look: Callable[[], Any], receive: Callable[[LateHook], None]) -> None:
        self._look, self._receive = look, receive
        self._modules: dict[int, weakref.ref[Any]] = {}
        self._programs: dict[int, set[int]] = {}
        self._dicts: dict[int, tuple[int, str]] = {}
        self._added: list[_Added] = []

    def traced(self, module: Any) -> None:
        """A module's call is in a graph now, with the hooks that it has."""
        self._modules[id(module)] = weakref.ref(module)
        self._programs.setdefault(id(module), set()).update(_programs_on_stack())
        for name in _KINDS:
            self._dicts[id(vars(module).get(name))] = (id(module), name)
        self._added = [added for added in self._added if added.module != id(module)]

    def added(self, handle: Any, hooks: Any) -> bool:
        """A hook is being added; whether a module that is in a graph gets it."""
        key, name = self._dicts.get(id(hooks), (0, ""))
        module = self._modules[key]() if key in self._modules else None
        if module is None or vars(module).get(name) is not hooks:
            return False
        self._added.append(_Added(LateHook(type(module).__name__, _KINDS[name], self._look()), handle, key))
        return True

    def called(self) -> None:
        """Compiled code is about to run as it is: reports the hooks of its modules that it does not have."""
        if not self._added:
            return
        programs = set(_programs_on_stack())
        ignored = [
            added for added in self._added if self._programs[added.module] & programs and _is_there(added.handle)
        ]
        self._added = [added for added in self._added if added not in ignored]
        for added in ignored:
            self._receive(added.hook)


def _programs_on_stack() -> Iterator[int]:
    """The ids of what ``torch.compile`` has made and what is running."""
    for frame in callers():
        if is_in(frame.f_code, "torch/_dynamo/eval_frame.py") and (program := frame.f_locals.get("self")) is not None:
            yield id(program)


def _is_there(handle: Any) -> bool:
    hooks = handle.hooks_dict_ref()
    return hooks is not None and handle.id in hooks


def late_hooks(look: Callable[[], Any], receive: Callable[[LateHook], None]) -> Hook:
    """Calls back when compiled code runs without a hook that one of its modules has, once for each hook.  Neither may
    raise."""
    watch = _Watch(look, receive)

    def apply(nn_module: types.ModuleType) -> Undo:
        is_compiling = sys.modules["torch.compiler"].is_compiling
        eval_frame, handle = sys.modules["torch._dynamo.eval_frame"], sys.modules["torch.utils.hooks"].RemovableHandle
        record, make = vars(nn_module)["record_nn_module_stack"], handle.__init__
        completed: list[Undo] = []

        @contextlib.contextmanager
        def recorded(*args: Any, **kwargs: Any) -> Iterator[None]:
            with record(*args, **kwargs):
                yield
            watch.traced(kwargs["mod"] if "mod" in kwargs else args[3])

        def made(self: Any, hooks_dict: Any, *args: Any, **kwargs: Any) -> None:
            make(self, hooks_dict, *args, **kwargs)
            if not is_compiling():
                added(self, hooks_dict)

        def added(handle: Any, hooks: Any) -> None:
            if watch.added(handle, hooks) and not completed:
                completed.append(_see_hits(eval_frame, watch.called))

        # Where the user's own compiled code adds a hook, Dynamo traces this: it takes the place of a function of PyTorch.
        made.__code__ = made.__code__.replace(co_filename=make.__code__.co_filename)
        functools.update_wrapper(made, make)

        def undo() -> None:
            for stop in completed:
                stop()

        return undo_all(
            [
                replace_attribute(nn_module, "record_nn_module_stack", recorded),
                replace_attribute(handle, "__init__", made),
                undo,
            ]
        )

    return Hook("hooks that are added to compiled modules", "torch._dynamo.variables.nn_module", "2.13", apply)


def _see_hits(eval_frame: Any, hit: Callable[[], None]) -> Undo:
    """Calls back when the guards of compiled code hold; who listened before still does."""
    set_hook = eval_frame.set_guard_complete_hook
    before: Callable[[bool], bool] | None = set_hook(None)

    def completed(is_hit: bool) -> bool:
        if is_hit:
            hit()
        return is_hit if before is None else before(is_hit)

    def undo() -> None:
        now = set_hook(None)
        set_hook(before if now is completed else now)

    set_hook(completed)
    return undo
