"""Guard failure: a call did not fit the compiled code, and a setting forbids to compile again."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.capture.stack import innermost_user, live_places, related_to
from irscope.findings.guardtext import parse_failed_guard
from irscope.findings.moment import Moment
from irscope.protocol import Finding, Severity

KIND = "guard-failure"
_REASON = re.compile(r"^\s*- (?P<reason>.+(?:\n(?!\s*- ).*)*)", re.MULTILINE)
_FUNCTION = re.compile(r"function name: '(?P<name>[^']+)'|Recompiling function (?P<other>\S+) in")


def hook(receive: Callable[[BaseException], None]) -> Hook:
    """Sees the error that the stance ``fail_on_recompile`` raises; it is raised outside of any compile, so that the
    trace has no record of it."""

    def apply(eval_frame: Any) -> Undo:
        original = eval_frame._callback_from_stance

        def callback_from_stance(callback: Any) -> Any:
            chosen = original(callback)
            if eval_frame._stance.stance != "fail_on_recompile" or not callable(chosen):
                return chosen

            # With its attributes, by which PyTorch finds the compiled code that belongs to this back end.
            @functools.wraps(chosen)
            def failing(*args: Any, **kwargs: Any) -> Any:
                try:
                    return chosen(*args, **kwargs)
                except RuntimeError as error:
                    receive(error)
                    raise

            return failing

        return replace_attribute(eval_frame, "_callback_from_stance", callback_from_stance)

    return Hook(
        "guard failures under torch.compiler.set_stance('fail_on_recompile')",
        "torch._dynamo.eval_frame",
        "2.9 to 2.13",
        apply,
    )


def make(error: BaseException) -> Finding | None:
    """The finding at the call that did not fit."""
    text = str(error)
    places = live_places()
    at = innermost_user(places)
    if at is None:
        return None
    reasons = [match["reason"].strip() for match in _REASON.finditer(text)]
    guard = parse_failed_guard(reasons[0]) if reasons else None
    found = _FUNCTION.search(text)
    name = (found["name"] or found["other"]) if found else "the function"
    what = f"{f'`{guard.source}`: ' if guard.source else ''}{guard.what}" if guard else "nothing compiled fits it"
    return Finding(
        kind=KIND,
        code="fail-on-recompile",
        severity=Severity.ERROR,
        message=f"This call does not fit what was compiled of `{name}`, and compiling again is forbidden: {what}.",
        explanation="\n".join(["The guards that failed:", *reasons]) if reasons else text,
        hints=(
            "Call it once with such arguments before the stance is set, or make what changed dynamic.",
            "`torch.compiler.set_stance('eager_on_recompile')` runs such calls without the compiler instead of failing.",
        ),
        link="https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_stance.html",
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
    )


def as_compile_error(moment: Moment, error: BaseException) -> Finding | None:
    """The same for ``torch._dynamo.config.error_on_recompile``, whose error is one of the compilation."""
    finding = make(error)
    if finding is None:
        return None
    return dataclasses.replace(
        finding,
        kind="compile-error",
        code=type(error).__name__,
        hints=(
            finding.hints[0],
            "Set `torch._dynamo.config.error_on_recompile = False` where a recompilation is acceptable.",
        ),
        compiles=(moment.record.compile,) if moment.record.compile else (),
    )
