"""Guard failure: a call did not fit the compiled code, and a setting forbids to compile again."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator

from irscope.events.stack import innermost_user, live_places, related_to
from irscope.findings.detector import Detector
from irscope.findings.kinds import compile_error, recompilation
from irscope.findings.moment import Moment
from irscope.internals.loaded_artifacts import compiled_artifact_hook, package_hook, saved_function_hook
from irscope.internals.unrecorded import guard_failures
from irscope.ir.artifacts.contents import ArtifactError
from irscope.ir.artifacts.inputs import unfit
from irscope.ir.artifacts.kinds import kind_of, open_artifact
from irscope.ir.guard_text import about, parse_failed_guard, since_made
from irscope.protocol import Finding, Severity
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="guard-failure",
    label="Guard failure",
    short=("guard failure", "guard failures"),
    lanes=FAST_AND_DEEP,
    severity=Severity.ERROR,
    order=30,
)
_ARTIFACTS = "artifacts that the script has loaded"
_REASON = re.compile(r"^\s*- (?P<reason>.+(?:\n(?!\s*- ).*)*)", re.MULTILINE)
_FUNCTION = re.compile(r"function name: '(?P<name>[^']+)'|Recompiling function (?P<other>\S+) in")


def detect(_moment: Moment, error: BaseException) -> Iterator[Finding]:
    """The finding of an error that the stance has raised."""
    if (finding := make(error)) is not None:
        yield finding


def detect_refused(moment: Moment) -> Iterator[Finding]:
    """The finding of a ``compilation_metrics`` record that belongs to no compile: ``error_on_recompile`` raises before
    anything is traced, and leaves no other record."""
    if moment.compile is not None or moment.error is None or moment.record.facts.get("fail_type") != "RecompileError":
        return
    recompilation.take_pending(moment.known)
    if (finding := as_compile_error(moment, moment.error)) is not None:
        yield finding


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
    what = about(f"`{guard.source}`" if guard.source else "", guard.what) if guard else "nothing compiled fits it"
    return Finding(
        kind=KIND.id,
        code="fail-on-recompile",
        severity=KIND.severity,
        message=f"No compiled version of `{name}` matches this call, and recompilation is forbidden: {what}.",
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


def detect_saved(_moment: Moment, function: str, reason: str) -> Iterator[Finding]:
    """The finding of a call that does not fit a function which ``aot_compile`` has saved."""
    places = live_places()
    at = innermost_user(places)
    if at is None:
        return
    guard = parse_failed_guard(reason)
    yield Finding(
        kind=KIND.id,
        code="saved-function",
        severity=KIND.severity,
        message=f"The saved function `{function}` does not fit this call, which raises: {since_made(guard)}.",
        explanation=f"The guard that failed: {reason}",
        hints=(
            "Save it for such arguments, too: for another size with `torch._dynamo.mark_dynamic` on the example inputs.",
            "`irscope open FILE --trust DIGEST --script SCRIPT` judges the calls of a script before the file is loaded.",
        ),
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
        link=None,
    )


def detect_unfit(moment: Moment, path: str, inputs: tuple[dict[str, str], ...] | None) -> Iterator[Finding]:
    """The finding of a call that does not fit a loaded artifact, or of one that cannot be loaded (``inputs`` is None)."""
    places = live_places()
    at = innermost_user(places)
    artifacts = moment.known.notes.setdefault(_ARTIFACTS, {})
    if path not in artifacts:
        try:
            kind = kind_of(path)
            artifacts[path] = open_artifact(path, kind) if kind is not None else None
        except (ArtifactError, OSError):
            artifacts[path] = None
    artifact = artifacts[path]
    if at is None or artifact is None:
        return
    name = os.path.basename(path)
    if inputs is None:
        message = f"The artifact `{name}` was made by another build of PyTorch, and loading it raises AssertionError."
        hints: tuple[str, ...] = ("Make it again with this PyTorch, in the image that loads it.",)
    else:
        pairs = zip(artifact.inputs.items(), inputs, strict=False)
        said = [words for (name_of, was), now in pairs if (words := unfit(name_of, was, now))]
        if len(inputs) != len(artifact.inputs) or not said:
            return
        message = f"The artifact `{name}` does not fit this call: {' '.join(said)[:-1]}."
        hints = ("Make it for such inputs, too, or for a size that may vary (`torch.export.Dim`, `dynamic_shapes`).",)
    yield Finding(
        kind=KIND.id,
        code="loaded-artifact",
        severity=KIND.severity,
        message=message,
        explanation=f"{artifact.kind}. {artifact.on_miss}",
        hints=hints,
        file=places[at].file,
        range=places[at].range,
        count=1,
        compiles=(),
        related=related_to(places, at),
        link=None,
    )


def as_compile_error(moment: Moment, error: BaseException) -> Finding | None:
    """The same for ``torch._dynamo.config.error_on_recompile``, whose error is one of the compilation."""
    finding = make(error)
    if finding is None:
        return None
    return dataclasses.replace(
        finding,
        kind=compile_error.KIND.id,
        code=type(error).__name__,
        hints=(
            finding.hints[0],
            "Set `torch._dynamo.config.error_on_recompile = False` where a recompilation is acceptable.",
        ),
        compiles=(moment.record.compile,) if moment.record.compile else (),
    )


DETECTORS = (
    Detector("guard-failure", detect, hook=guard_failures),
    Detector("compilation_metrics", detect_refused),
    Detector("saved-function-refused", detect_saved, saved_function_hook),
    Detector("loaded-package-called", detect_unfit, package_hook),
    Detector("compiled-artifact-called", detect_unfit, compiled_artifact_hook),
)
