"""Recompilation: a guard of compiled code failed at a call, so the function was compiled once more."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from irscope.events.stack import call_into_compiled_code
from irscope.events.trace import RECOMPILATION, reasons_in
from irscope.findings.detector import Detector
from irscope.findings.kinds import graph_break
from irscope.findings.moment import Known, Moment
from irscope.findings.places import function_of
from irscope.findings.recompiling.calls import Call, remember
from irscope.internals.lane_differences import report_what_identity_shows
from irscope.ir.guard_text import FailedGuard, about, parse_failed_guard
from irscope.protocol import (
    GRAD_MODE,
    Compile,
    Finding,
    Origin,
    Position,
    Range,
    RecompilationFacts,
    Related,
    RelatedRole,
    Severity,
    VaryingSize,
)
from irscope.usercode.source import (
    function_around,
    nodes_at,
    parse,
    range_of_line,
    range_of_name,
    range_of_node,
    text_of_range,
)
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.function_names import RESUME_PREFIX
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.findings.recompiling.facts import Facts, Now

# What only a recompilation needs is imported when there is one: most compiles are none, and it would delay every script.

KIND = FindingKind(
    id="recompilation",
    label="Recompilation",
    short=("recompile", "recompiles"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    newest_speaks=True,
    facts=RecompilationFacts,
    order=20,
)
UNKNOWN = FailedGuard("", "", "recompile-unknown", "PyTorch gives no reason", ())
_WRAPPERS = ("len", "list", "dict", "tuple", "set", "type", "iter", "next", "id")
_WRAPPED = "fn"
"""PyTorch's name for a compiled module of `torch.nn`: what is compiled is a function around it."""
_NUMBER = re.compile(r"-?\d[\d.e+-]*")
_MOST_NAMED = 7
_OF_OBJECTS = "recompile-object"
_LEFT = "___stack"  # PyTorch's name for what lay on the stack at a graph break


@dataclass(frozen=True)
class Trigger:
    """What is known when a guard has failed, before the recompilation begins.

    Args:
        guards: The first guard that failed of each older compile, the newest one's first; those of the reasons.
        nearest: The index of the compile with the smallest change, whose guard is the cause.
        also: What else fails of that compile.
        call: The user's call.
        now: What the cause's source is at this moment.
    """

    guards: tuple[FailedGuard, ...]
    nearest: int
    also: tuple[FailedGuard, ...]
    call: Related | None
    now: Now

    @property
    def guard(self) -> FailedGuard:
        """The cause."""
        return self.guards[self.nearest] if self.guards else UNKNOWN


def trigger(payload: str) -> Trigger:
    """From a ``recompile_reasons`` record, on the stack of the call that did not fit."""
    from irscope.findings.recompiling.facts import Now
    from irscope.findings.recompiling.nearest import nearest
    from irscope.findings.recompiling.now import now

    guards = tuple(parse_failed_guard(reason) for reason in reasons_in(payload))
    index, also = nearest(guards) if guards else (0, ())
    current = now(guards[index].source) if guards else Now()
    if any(guard.code == _OF_OBJECTS for guard in guards):
        report_what_identity_shows()
    named = tuple(_with_names(guard) for guard in guards)
    return Trigger(named, index, tuple(_with_names(guard) for guard in also), call_site(), current)


def _with_names(guard: FailedGuard) -> FailedGuard:
    """A guard on a closure's variable, with the variable's name."""
    from irscope.findings.recompiling.now import free_variable

    name = free_variable(guard.source)
    what = guard.what.replace(guard.source, name) if name != guard.source else guard.what
    return dataclasses.replace(guard, source=name, what=what)


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
    if moment.record.attempt or moment.record.compile is None:
        return
    calls = remember(moment.known, moment.record.compile)
    if (pending := take_pending(moment.known)) is None:
        return
    name, trigger = pending
    from irscope.findings.recompiling.families import in_families

    if name == moment.record.compile and (made := make(moment, trigger, calls)) is not None:
        for finding in in_families(moment.known, *made):
            yield _folded(moment.known, _after_break(moment, finding, made[1]))


def _folded(known: Known, finding: Finding) -> Finding:
    """What every training script has is told once: the recompilations of other functions follow from the first."""
    if not isinstance(finding.facts, RecompilationFacts) or finding.facts.state != GRAD_MODE:
        return finding
    first: Finding = known.notes.setdefault(GRAD_MODE, finding)
    if first.cause == finding.cause or finding.severity is not Severity.HINT:
        return finding
    return dataclasses.replace(finding, follows=Related(first.file, first.range, "the first recompilation for it"))


def _after_break(moment: Moment, finding: Finding, facts: Facts) -> Finding:
    """A value that a graph break leaves for the code after it is guarded because of that break alone."""
    compile = moment.compile
    if compile is None or not facts.guard.is_left_by_break:
        return finding
    place = compile.after or Origin(compile.file, compile.line)
    for cut in moment.known.findings if finding.follows is None else ():
        passed = {(cut.file, cut.range.start.line), *((at.file, at.range.start.line) for at in cut.related)}
        if cut.kind == graph_break.KIND.id and (place.file, place.line) in passed:
            why = Related(cut.file, cut.range, "this graph break is the cause")
            return dataclasses.replace(finding, severity=Severity.HINT, follows=why)
    return finding


def call_site() -> Related | None:
    """The user's call into the compiled region that is running now."""
    place = call_into_compiled_code()
    return (
        None
        if place is None
        else Related(place.file, place.range, "this call triggered the recompilation", RelatedRole.TRIGGER)
    )


def make(moment: Moment, trigger: Trigger, calls: Sequence[Call]) -> tuple[Finding, Facts] | None:
    """The finding of a recompilation that has begun, and what it is made from; ``moment.compile`` is the new compile.

    It is at what the failed guard of the nearest older compile watches: the parameter in the signature, else the expression in the
    body or the use of the global, else the function's name.  A value that a graph break left for the code after it
    is at the break.
    """
    compile, call = moment.compile, trigger.call
    if compile is None:
        return None
    guard = trigger.guard
    left = _left_by_break(guard, compile, moment.known.findings)
    place = left or watched_place(guard, compile)
    if place is None and call is not None:
        place = (call.file, call.range)  # a function of a library: the call is all that is the user's
    if place is None:
        return None
    from irscope.findings.recompiling.advice import words_for

    facts = _facts(moment, trigger, guard, calls, place)
    words = words_for(facts)
    name, subject = compile.function_name, ""
    if not is_user_file(compile.file) and facts.sites is not None:  # the user knows the call, not the function
        name = facts.sites[1].callee or name
        subject = argument.expression if (argument := facts.argument(guard.source)) is not None else ""
        subject = subject or _of_wrapped(guard.source, name)
    more = _and_more(facts, "" if is_user_file(compile.file) else name)
    what = f"`{name}` was compiled again: {change_of(trigger, left, subject)}{more}."
    known = _known(facts, source_of(guard, left, subject))
    also = [f"- {about(f'`{other.source}`', other.what)}" for other in trigger.also[:_MOST_NAMED]]
    older = [f"- {other.text}" for other in facts.older[:_MOST_NAMED]]
    finding = Finding(
        kind=KIND.id,
        code=guard.code,
        severity=words.severity or KIND.severity,
        message=f"{what} {words.more}".strip(),
        explanation="\n".join(
            [
                f"The guard that failed: {guard.text or 'unknown'}",
                *(["Guards of the same compile that failed too:", *also] if also else []),
                *(["Guards of other older compiles that failed:", *older] if older else []),
                *_all_sizes(known),
            ]
        ),
        hints=words.hints,
        link="https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",
        file=place[0],
        range=place[1],
        count=1,
        compiles=(compile.id,),
        related=(call,) if call else (),
        fixes=words.fixes,
        facts=known,
    )
    return finding, facts


def _known(facts: Facts, source: str) -> RecompilationFacts:
    guard = facts.guard
    is_number = guard.code == "recompile-value" and _NUMBER.fullmatch(guard.was) is not None
    return RecompilationFacts(
        source,
        number=guard.was if is_number else "",
        state=guard.state,
        varying=tuple(VaryingSize(path, dimensions) for path, dimensions in facts.varying.items()),
        sizes=tuple(size for failed in (guard, *facts.older) for size in failed.sizes),
        has_size_0_or_1=facts.has_size_0_or_1,
    )


def _and_more(facts: Facts, name: str) -> str:
    """The first thing of another sort that changed, too, as the rest of a sentence; ``name`` is what the user
    calls a compiled module of `torch.nn`, if it is one."""
    other = facts.other
    if other is None:
        return ""
    source = _of_wrapped(other.source, name) or other.source
    return f"; and {about(f'`{source}`' if source else '', other.what)}"


def _of_wrapped(source: str, name: str) -> str:
    """A part of a compiled module of `torch.nn`, by what the user calls that module; empty for other sources."""
    return name + source.removeprefix(_WRAPPED) if name and _root(source) == _WRAPPED == source[: len(_WRAPPED)] else ""


def _all_sizes(known: RecompilationFacts) -> list[str]:
    """All sizes that changed, if they are more than the one that the guard names."""
    changed = [f"`{size.path}` in dimension {i}" for size in known.varying for i in size.dimensions]
    return [f"Sizes that were not the same in all compiles: {', '.join(changed[:12])}."] if len(changed) > 1 else []


def _facts(
    moment: Moment, trigger: Trigger, guard: FailedGuard, calls: Sequence[Call], place: tuple[str, Range]
) -> Facts:
    from irscope.findings.recompiling.facts import Facts

    compile = moment.compile
    assert compile is not None
    mine = is_user_file(compile.file)
    cut = moment.known.compiles.goes_on_after_a_break(compile)
    function = function_of(compile) if mine else None
    reader = function_around(place[0], place[1].start.line) or function
    frame = compile.id.rpartition("/")[0]
    again = any(
        isinstance(finding.facts, RecompilationFacts)
        and finding.kind == KIND.id
        and (finding.code, finding.facts.state, finding.facts.source) == (guard.code, guard.state, guard.source)
        and any(earlier.rpartition("/")[0] == frame for earlier in finding.compiles)
        for finding in moment.known.findings
    )
    return Facts(guard, trigger.also, trigger.guards, again, trigger.now, calls, function, place[0], reader, cut)


def change_of(trigger: Trigger, left: tuple[str, Range] | None = None, name: str = "") -> str:
    """What changed, as a phrase with what it is now.

    Args:
        left: The graph break that left the guarded value, if it did and is known.
        name: What the user calls the guarded thing, if it is not what the guard calls it.
    """
    guard, current = trigger.guard, trigger.now
    source = source_of(guard, left, name)
    subject = f"`{source}`" if source else "a value" if guard.source.startswith(_LEFT) else ""
    is_now = ""
    if guard.code == "recompile-type" and guard.was and " now" not in guard.what and current.type:
        is_now = f"a `{current.type}`"
    elif guard.code == "recompile-value" and (current.text or current.type):
        is_now = current.text or f"a `{current.type}`"
    if is_now:
        is_now = f" and is {is_now} now" if guard.what.startswith("it ") else f", now it is {is_now}"
    return f"{about(subject, guard.what)}{is_now}"


def source_of(guard: FailedGuard, left: tuple[str, Range] | None = None, name: str = "") -> str:
    """What a guard watches, as the user would write it; empty if it has no name.  The parameters are those of `change_of`."""
    if guard.source.startswith(_LEFT):
        is_on_one_line = left is not None and left[1].start.line == left[1].end.line
        return text_of_range(*left) if left is not None and is_on_one_line else ""
    has_no_name = guard.is_left_by_break or guard.code == "recompile-aliasing" or not guard.source
    return "" if has_no_name else name or guard.source


def _left_by_break(guard: FailedGuard, compile: Compile, findings: Iterable[Finding]) -> tuple[str, Range] | None:
    """The one graph break on the line where a resume function begins, for a guard on what it left on the stack."""
    if not guard.source.startswith(_LEFT) or (place := compile.after) is None:
        return None
    breaks = {
        (finding.file, finding.range)
        for finding in findings
        if finding.kind == graph_break.KIND.id and (finding.file, finding.range.start.line) == (place.file, place.line)
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
    """The expression on a line that reads the watched thing, or the nearest thing around it, else the line's
    statement: for ``self.drop.training`` that is ``self.drop`` where only this is there."""
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
    """The first place in a function that reads a name or an attribute chain, or else the nearest one around it."""
    if parse(file) is None:
        return None
    reads: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            reads.setdefault(ast.unparse(node), node)
    found = next((reads[whole] for whole in _wholes(source) if whole in reads and whole not in ("self", "cls")), None)
    return range_of_node(file, found) if found is not None else None


DETECTORS = (
    Detector(RECOMPILATION, guard_failed),
    Detector("dynamo_start", detect),
)
