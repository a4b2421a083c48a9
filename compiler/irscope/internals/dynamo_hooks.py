"""Hooks into Dynamo: the bytecode that it writes, the steps that it takes, and calls of what it compiles."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute


def bytecode_hook(see: Callable[[types.CodeType, types.CodeType], None]) -> Hook:
    """Calls ``see(original, modified)`` when Dynamo has written the bytecode that takes a function's place."""

    def apply(convert_frame: types.ModuleType) -> Undo:
        handle: Any = convert_frame.register_bytecode_hook(see)
        return handle.remove  # type: ignore[no-any-return]

    return Hook("the modified bytecode", "torch._dynamo.convert_frame", "2.13", apply)


def guards_hook(called: Callable[[bool], bool]) -> Hook:
    """Calls back when a call has looked for compiled code whose guards hold, with whether there is any.

    The answer of ``called`` is taken as the result.
    """

    def apply(eval_frame: types.ModuleType) -> Undo:
        # `torch.compiler.set_enable_guard_collectives` is the other user of this hook.  A script that calls it has its
        # own way: ours is gone then.
        set_hook: Any = eval_frame.set_guard_complete_hook
        before = set_hook(called)
        if before is not None:
            set_hook(before)
            raise RuntimeError("the guard-complete hook is in use")
        return lambda: set_hook(None)

    return Hook(
        what="calls of compiled code, so a run in a steady state is not stopped",
        module="torch._dynamo.eval_frame",
        versions="2.9 to 2.13",
        apply=apply,
    )


def compile_calls_hook(called: Callable[[], None]) -> Hook:
    """Calls back when ``torch.compile`` is called: it takes its backend then, before any hook of a run is there."""

    def apply(eval_frame: Any) -> Undo:
        original = eval_frame.get_compiler_fn

        def get_compiler_fn(*args: Any) -> Any:
            called()
            return original(*args)

        return replace_attribute(eval_frame, "get_compiler_fn", get_compiler_fn)

    return Hook("functions that a layer's imports compile", "torch._dynamo.eval_frame", "2.9 to 2.13", apply)


STEPS = "the symbolic trace"
STEPS_CHECKED = "2.9 to 2.15"


def steps_hook(
    before: Callable[[Any], Any],
    after: Callable[[Any, Any, bool, BaseException | None], None],
    applied: Callable[[], None],
) -> Hook:
    """Calls back around each step of Dynamo's walk over the user's instructions.

    With the wrapper each inlined call takes one more Python frame of the about fifteen that it takes anyway, so code
    that recurses while it is traced reaches Python's recursion limit a little sooner.

    Args:
        before: Gets the translator; what it returns is handed to ``after``, which is not called for None.  Must not
            raise.
        after: Gets that, the translator, whether there are more steps, and the exception of the step.  Must not raise.
        applied: Called when the hook is applied.
    """

    def apply(module: types.ModuleType) -> Undo:
        cls: Any = module.InstructionTranslatorBase
        original = cls.__dict__["step"]
        if not isinstance(original, types.FunctionType) or original.__code__.co_varnames[:1] != ("self",):
            raise TypeError("InstructionTranslatorBase.step is not a method in Python")
        if "step" not in cls.run.__code__.co_names:
            raise AttributeError("InstructionTranslatorBase.run does not call step")
        if any("step" in vars(known) for known in _subclasses(cls)):
            raise AttributeError("a subclass of the translator overrides step")

        def step(self: Any) -> Any:
            recording = before(self)
            if recording is None:
                return original(self)
            try:
                more = original(self)
            except BaseException as error:
                after(recording, self, False, error)
                raise
            after(recording, self, more, None)
            return more

        undo = replace_attribute(cls, "step", step)
        applied()
        return undo

    return Hook(STEPS, "torch._dynamo.symbolic_convert", STEPS_CHECKED, apply)


def _subclasses(cls: type) -> list[type]:
    direct: list[type] = cls.__subclasses__()
    return [*direct, *(deeper for sub in direct for deeper in _subclasses(sub))]
