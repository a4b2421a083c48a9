"""Bypassed: the script calls another method of a compiled module than its ``forward``, which is not compiled, or adds a
hook to a module that is compiled already, without it; or PyTorch leaves out a backward of the script's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from irscope.events.stack import FramePlace, innermost_user, live_places
from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_expression
from irscope.internals.bypasses import Taken, methods_of_compiled
from irscope.internals.dropped_backwards import dropped_backwards
from irscope.internals.hooks import Hook
from irscope.internals.late_hooks import LateHook, late_hooks
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="bypassed",
    label="Bypassed",
    short=("bypass", "bypasses"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    order=65,
)


def _methods(receive: Callable[..., None]) -> Hook:
    return methods_of_compiled(_here, receive)


def _here() -> FramePlace | None:
    places = live_places()
    at = innermost_user(places)
    return None if at is None else places[at]


def _hooks(receive: Callable[..., None]) -> Hook:
    return late_hooks(_here, receive)


def detect_method(moment: Moment, taken: Taken) -> Iterator[Finding]:
    """At the end of a run in which the method was not compiled: nothing was, or the method runs modules."""
    compiles = moment.known.compiles
    if compiles.of_function(taken.file, taken.line) or (compiles.programs() and not taken.runs_modules):
        return
    module, method = taken.module, taken.method
    yield from _at(
        taken.place,
        "method",
        f"`{method}` is a method of the `{module}` inside of the compiled module: it runs as plain Python, and what it calls, too.",
        "`torch.compile(module)` compiles the call of the module, `model(x)`, and no other method. A method that calls `self(x)` calls the module that is not compiled.",
        f"Compile the method: `model.{method} = torch.compile(model.{method})`.",
        "Or call the compiled module itself: `model(x)`.",
        f"Or compile in place: `model = {module}(...)`, then `model.compile()`. `self(x)` in its methods is compiled then.",
    )


def detect_hook(_moment: Moment, late: LateHook) -> Iterator[Finding]:
    """When compiled code runs without a hook that its module has."""
    yield from _at(
        late.place,
        "late-hook",
        f"This hook does not run in compiled code: `{late.module}` was compiled before `{late.method}` added it.",
        "PyTorch traces a module with the hooks that it has at that time, and does not look at them again. What the hook would change, as a value or a gradient, stays as it is.",
        "Add the hook before the first call of the compiled module.",
        "Or have PyTorch look at each call: `torch._dynamo.config.skip_nnmodule_hook_guards = False` before the first one.",
    )


def detect_backward(moment: Moment, name: str) -> Iterator[Finding]:
    """When Dynamo traces the ``apply`` of a function with its own backward inside of ``torch.func.grad``."""
    found = at_expression(
        moment,
        kind=KIND.id,
        code="own-backward",
        message=f"The backward of `{name}` does not run in compiled code: inside of `torch.func.grad` PyTorch traces its `forward` alone.",
        explanation="The gradient is then that of the operations in `forward`, which is 0 for `round`. It is issue 193279 of PyTorch, and no error says so.",
        hints=(
            "Compile the function, and compute its gradient outside: `torch.autograd.grad(compiled(x), x)`.",
            "Or do not compile what `torch.func.grad` makes.",
        ),
        link="https://github.com/pytorch/pytorch/issues/193279",
        severity=KIND.severity,
    )
    if found is not None:
        yield found


def _at(place: FramePlace | None, code: str, message: str, explanation: str, *hints: str) -> Iterator[Finding]:
    if place is not None:
        yield Finding(
            kind=KIND.id,
            code=code,
            severity=KIND.severity,
            message=message,
            explanation=explanation,
            hints=hints,
            link=None,
            file=place.file,
            range=place.range,
            count=1,
            compiles=(),
            related=(),
        )


DETECTORS = (
    Detector("method-taken", detect_method, hook=_methods),
    Detector("hook-ignored", detect_hook, hook=_hooks),
    Detector("backward-left-out", detect_backward, hook=dropped_backwards),
)
