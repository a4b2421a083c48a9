"""Recompilation: a guard of compiled code failed at a call, so the function was compiled once more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from irscope.capture.stack import call_into_compiled_code
from irscope.capture.trace import RECOMPILATION, reasons_in
from irscope.findings.actual import value_now
from irscope.findings.detector import Detector
from irscope.findings.kinds import graph_break
from irscope.findings.moment import Known, Moment
from irscope.findings.places import function_of
from irscope.ir.guard_text import FailedGuard, about, parse_failed_guard
from irscope.protocol import Compile, Finding, Position, Range, Related, Severity
from irscope.usercode.source import nodes_at, parse, range_of_line, range_of_name, range_of_node, text_of_range
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.function_names import RESUME_PREFIX

KIND = FindingKind(
    id="recompilation",
    label="Recompilation",
    short=("recompile", "recompiles"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    order=20,
)
_WRAPPERS = ("len", "list", "dict", "tuple", "set", "type", "iter", "next", "id")
_LEFT = "___stack"  # PyTorch's name for what lay on the stack at a graph break


@dataclass(frozen=True)
class Trigger:
    """What is known when a guard has failed, before the recompilation begins.

    ``now`` is what the newest failed guard's source is at this moment, where it is a plain value.
    """

    reasons: tuple[str, ...]
    call: Related | None
    now: str | None


def trigger(payload: str) -> Trigger:
    """From a ``recompile_reasons`` record, on the stack of the call that did not fit."""
    reasons = tuple(reasons_in(payload))
    return Trigger(reasons, call_site(), value_now(parse_failed_guard(reasons[0]).source) if reasons else None)


def guard_failed(moment: Moment) -> Iterable[Finding]:
    """Remembers why a recompilation will begin: it is known before, and the recompilation may yet not begin."""
    if moment.record.compile is not None:
        moment.known.notes[KIND.id] = (moment.record.compile, trigger(moment.record.payload))
    return ()


def take_pending(known: Known) -> tuple[str, Trigger] | None:
    """The recompilation that has not begun, by its compile; it is forgotten then."""
    pending: tuple[str, Trigger] | None = known.notes.pop(KIND.id, None)
    return pending


def detect(moment: Moment) -> Iterator[Finding]:
    """The finding of a recompilation that begins, from ``dynamo_start``."""
    if moment.record.attempt or (pending := take_pending(moment.known)) is None:
        return
    name, trigger = pending
    if name == moment.record.compile and (finding := make(moment, trigger, moment.known.findings)) is not None:
        yield finding


def call_site() -> Related | None:
    """The user's call into the compiled region that is running now."""
    place = call_into_compiled_code()
    return None if place is None else Related(place.file, place.range, "this call triggered the recompilation")


def make(moment: Moment, trigger: Trigger, findings: Iterable[Finding] = ()) -> Finding | None:
    """The finding of a recompilation that has begun; ``moment.compile`` is the new compile.

    It is at what the newest failed guard watches: the parameter in the signature, else the expression in the
    body or the use of the global, else the function's name.  A value that a graph break left for the code after it
    is at the break, which is one of the ``findings`` so far.
    """
    compile, reasons, call = moment.compile, trigger.reasons, trigger.call
    if compile is None:
        return None
    guard = (
        parse_failed_guard(reasons[0])
        if reasons
        else FailedGuard("", "", "recompile-unknown", "PyTorch gives no reason", ())
    )
    place = _left_by_break(guard, compile, findings) or watched_place(guard, compile)
    if place is None and call is not None:
        place = (call.file, call.range)  # a function of a library: the call is all that is the user's
    if place is None:
        return None
    name = compile.function_name
    subject = f"`{guard.source}`" if guard.source else ""
    if guard.source.startswith(_LEFT):
        subject = f"`{text_of_range(*place)}`" if place[1].start.line == place[1].end.line else "a value"
    elif "___" in guard.source:
        subject = ""
    now = ""
    if trigger.now is not None and guard.code == "recompile-value":
        now = f" and is {trigger.now} now" if guard.what.startswith("it ") else f", now it is {trigger.now}"
    earlier = [f"{i + 2}. {parse_failed_guard(reason).text}" for i, reason in enumerate(reasons[1:8])]
    return Finding(
        kind=KIND.id,
        code=guard.code,
        severity=KIND.severity,
        message=f"`{name}` was compiled again: {about(subject, guard.what)}{now}.",
        explanation="\n".join(
            [
                f"The guard that failed: {guard.text or 'unknown'}",
                *(["Guards of older compiles that failed too:", *earlier] if earlier else []),
            ]
        ),
        hints=_hints(guard),
        link="https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",
        file=place[0],
        range=place[1],
        count=1,
        compiles=(compile.id,),
        related=(call,) if call else (),
    )


def _left_by_break(guard: FailedGuard, compile: Compile, findings: Iterable[Finding]) -> tuple[str, Range] | None:
    """The one graph break on the line where a resume function begins, for a guard on what it left on the stack."""
    if not guard.source.startswith(_LEFT) or not compile.function.startswith(RESUME_PREFIX):
        return None
    line = compile.function.rpartition("_at_")[2]
    breaks = {
        (finding.file, finding.range)
        for finding in findings
        if finding.kind == graph_break.KIND.id
        and finding.file == compile.file
        and str(finding.range.start.line) == line
    }
    return breaks.pop() if len(breaks) == 1 else None


def watched_place(guard: FailedGuard, compile: Compile) -> tuple[str, Range] | None:
    """Where in the user's code the thing that a guard watches is written; None for a function of a library."""
    user_frames = [(file, line) for file, line in guard.frames if is_user_file(file)]
    if is_user_file(compile.file):
        node = function_of(compile)
        root = _root(guard.source)
        if node is not None and root and not compile.function.startswith(RESUME_PREFIX):
            if parameter := _parameter(compile.file, node, root, guard.source):
                return compile.file, parameter
    for file, line in reversed(user_frames):
        return file, _expression_on(file, line, guard.source)
    if not is_user_file(compile.file):
        return None
    if node is None:
        return compile.file, range_of_line(compile.file, compile.line)
    if guard.source and (use := _use_in(compile.file, node, guard.source)):
        return compile.file, use
    return compile.file, range_of_name(compile.file, node)


def _root(source: str) -> str:
    """The variable that a source begins with: of ``len(xs)`` and ``list(xs)[0]`` it is ``xs``."""
    names = re.findall(r"(?<![.\w'\"])[^\W\d]\w*", source)
    return next((name for name in names if name not in _WRAPPERS), "")


def _parameter(
    file: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, root: str, source: str
) -> Range | None:
    """The parameter that the source begins with, unless it is ``self`` and an attribute of it is meant."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    for argument in arguments:
        if argument is not None and argument.arg == root and not (root in ("self", "cls") and source != root):
            start = range_of_node(file, argument).start
            return Range(start, Position(start.line, start.column + len(root)))
    return None


def _expression_on(file: str, line: int, source: str) -> Range:
    """The expression on a line that reads the watched thing, or the nearest thing that it is a part of, else the
    line's statement: for ``self.drop.training`` that is ``self.drop`` where only this is there."""
    reads = {
        ast.unparse(node): node
        for node in reversed(list(nodes_at(file, line)))
        if isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)) and isinstance(node.ctx, ast.Load)
    }
    for whole in [*_wholes(source), _root(source)]:
        if whole in reads and whole not in ("self", "cls"):
            return range_of_node(file, reads[whole])
    for name in reversed(re.findall(r"\.([^\W\d]\w*)", source)):  # in a method of a part of it
        for node in reads.values():
            if isinstance(node, ast.Attribute) and node.attr == name:
                return range_of_node(file, node)
    return range_of_line(file, line)


def _wholes(source: str) -> list[str]:
    """A source and what it is a part of: ``self.drop.training``, ``self.drop``, ``self``."""
    parts = re.split(r"(?=[.\[])", source)
    return ["".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _use_in(file: str, function: ast.AST, source: str) -> Range | None:
    """The first place in a function that reads a name or an attribute chain, or else the nearest that it is a part
    of."""
    if parse(file) is None:
        return None
    reads: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            reads.setdefault(ast.unparse(node), node)
    found = next((reads[whole] for whole in _wholes(source) if whole in reads and whole not in ("self", "cls")), None)
    return range_of_node(file, found) if found is not None else None


def _hints(guard: FailedGuard) -> tuple[str, ...]:
    """What to do, the best first."""
    source = guard.source or "x"
    if guard.code == "recompile-size" and re.search(r"(^| )[01] →|→ [01] ", guard.what):
        return (
            f"Sizes 0 and 1 always get separate compiles: pad `{source}`, or warm both up before you measure.",
            f"`torch._dynamo.decorators.mark_unbacked({source}, {guard.dimension})` makes one compile serve 0 and 1 too. It raises where the code depends on the value.",
        )
    if guard.code == "recompile-size":
        return (
            f"`torch._dynamo.mark_dynamic({source}, {guard.dimension})` on the tensor before the first call makes one compile serve every size. It raises where the code fixes that size.",
            "`torch.compile(..., dynamic=True)`, which makes every size dynamic from the start.",
        )
    if guard.code == "recompile-value":
        return (
            f"Pass `{source}` as a tensor, or use few different values: a Python value is a constant of the compiled code.",
            "For integers, `torch.compile(..., dynamic=True)` makes them symbols where it can.",
        )
    if guard.code == "recompile-training-mode":
        return (
            "Train and eval mode are different programs; two compiles are normal. Warm both up before you measure.",
        )
    if guard.code == "recompile-requires-grad":
        return (
            "Call it always with, or always without, tensors that require grad; wrap inference in `torch.no_grad()`.",
        )
    if guard.code == "recompile-global-state":
        return (
            "Set grad mode, autocast, default dtype and number of threads once, outside the loop that calls compiled code.",
        )
    if guard.code in ("recompile-dtype", "recompile-device", "recompile-rank", "recompile-dispatch"):
        return (f"Convert `{source}` to one dtype, device and rank before the call.",)
    if guard.code == "recompile-condition":
        return (
            "The compiled code is valid only if this is true. PyTorch took the condition from a branch in the code or chose it itself. Keep the values on one side of it, or warm up both.",
        )
    if guard.code == "recompile-object":
        return (f"Create `{source}` once and pass the same object, or pass what differs as an argument.",)
    return ()


DETECTORS = (
    Detector(RECOMPILATION, guard_failed),
    Detector("dynamo_start", detect),
)
