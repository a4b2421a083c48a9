"""The steps of quantization after training (PT2E) that a script takes itself."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute

See = Callable[[str, Any, tuple[Any, ...]], Callable[[Any], None] | None]
"""Takes the name of a step, the graph module that it is given, and its other arguments, before the step; what it returns
takes the graph module that the step makes."""

_STEPS = {"prepare_pt2e": "observed", "prepare_qat_pt2e": "observed", "convert_pt2e": "converted"}


def steps_hook(see: See) -> Hook:
    """Reports each step that a script takes to quantize an exported program."""

    def apply(module: types.ModuleType) -> Undo:
        undo = [replace_attribute(module, name, _seen(vars(module)[name], step, see)) for name, step in _STEPS.items()]

        def take_back() -> None:
            for one in undo:
                one()

        return take_back

    what = "the steps by which the script quantizes a program itself"
    return Hook(what, "torchao.quantization.pt2e.quantize_pt2e", "torchao 0.18", apply)


def _seen(original: Callable[..., Any], step: str, see: See) -> Callable[..., Any]:
    @functools.wraps(original)
    def called(model: Any, *args: Any, **kwargs: Any) -> Any:
        told = see(step, model, (*args, *kwargs.values()))
        made = original(model, *args, **kwargs)
        if told is not None:
            told(made)
        return made

    return called
