"""Graph break: Dynamo could not go on tracing, so the graph is cut here, or the whole frame runs as plain Python."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from irscope.events.break_message import BreakMessage, parse_break_messages, parse_data_dependent_guard
from irscope.events.stack import FramePlace, innermost_user, places_now, printed_places, related_to, with_traced
from irscope.events.trace import GRAPH_BREAK, is_skipped
from irscope.findings import deliberate, fake_calls, lightning, transforms, type_checks
from irscope.findings.detector import Detector
from irscope.findings.kinds.compiled_code_error import UNTIL
from irscope.findings.known_issues import first_of
from irscope.findings.moment import Moment
from irscope.internals.dynamo_frames import is_called_by_transform, is_polyfill
from irscope.internals.failed_programs import forward_stack
from irscope.internals.refused_functions import refused_function
from irscope.protocol import BreakFacts, Finding, Fix, Related, RelatedRole, Severity, carrying_out
from irscope.usercode.source import node_at_range, range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.fixing.advice import Words

KIND = FindingKind(
    id="graph-break",
    label="Graph break",
    short=("break", "breaks"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    stops_debugger=True,
    explains_steps=("graph-break",),
    facts=BreakFacts,
    order=10,
)
_BRANCH = "GB0170"
"""What PyTorch says of a guard that an ``if`` needs."""
_TOLD_OF_GUARDS = ("", _BRANCH, "GB7000", "GB0066", "GB0065")
"""Messages that may be all that PyTorch says of a guard: nothing, a branch, a break in a loop or a block, or in a call."""
_HEADER = re.compile(r"Graph break in user code at (?P<file>.+?):(?P<line>\d+)$", re.DOTALL | re.MULTILINE)
"""A file's name may have a line break in it."""
_IN_TRANSFORM = "GB0149"
_BACKEND_FAILED = "GB0219"
_NOT_CARRIED = "GB0092"
"""A break because of another: what is alive at that one cannot be carried over it."""
_HOW_IT_FAILED = re.compile(
    r"Backend compiler `(?P<backend>[^`]*)` failed with (?P<error>.*?)\.? Adding a graph break", re.DOTALL
)
_OF_SHAPE = re.compile(r"aten\.(?!_local_scalar_dense\b)\w+(\.\w+)?")
"""An operator whose result has a shape that depends on values; `_local_scalar_dense` gives a number."""
_GIVEN_UP = "graph breaks that gave up a function"
"""By compile the break, among what detectors keep."""
_ABOUT = "graph breaks by what they are about"
_OF_FUNCTIONS = ("GB0007", "GB0008", "GB0009", "GB0098", "GB0099")
"""Breaks at a function that Dynamo does not go into."""


def detect(moment: Moment) -> Iterator[Finding]:
    """The finding of a ``dynamo_graph_break_reason`` record, unless it repeats another event."""
    header = _HEADER.search(moment.record.payload)
    if header is None and "Graph break: torch.compile cannot properly resume" not in moment.record.payload:
        return
    text = str(moment.error) if moment.error is not None else moment.record.payload
    messages = parse_break_messages(text) or parse_break_messages(moment.record.payload)
    if (finding := make(moment, messages, is_skipped(moment.record.payload))) is not None:
        yield finding


@dataclass(frozen=True)
class _Told:
    """What is said of a break.

    Args:
        about: What it is about, so that a break that repeats it is known: the code of the function that is refused, or
            a text; None if nothing is known.
        keeps: Whether others can repeat it.
        is_anywhere: Whether it repeats what is about the same at any other place.
    """

    words: Words
    related: tuple[Related, ...]
    about: object
    keeps: bool = True
    is_anywhere: bool = False
    severity: Severity = KIND.severity


def make(moment: Moment, messages: list[BreakMessage], skipped: bool) -> Finding | None:
    """The finding at the innermost user frame of what was being traced, else of the Python stack."""
    places, in_backward = _places(moment.error)
    at = innermost_user(places)
    if at is None:
        if (header := _HEADER.search(moment.record.payload)) is None:
            return None
        file, line = header["file"], int(header["line"])
        places, at = [FramePlace(file, "", range_of_line(file, line), traced=True)], 0
    place = places[at]
    messages = with_guard(messages, moment.error)
    cause = messages[0] if messages else None
    told = _told(moment, places, at, messages, skipped, in_backward)
    finding = Finding(
        kind=KIND.id,
        code=(cause.code if cause else "") or KIND.id,
        severity=told.severity,
        message=told.words.message,
        explanation=told.words.explanation,
        hints=told.words.hints,
        link=cause.link if cause else None,
        file=place.file,
        range=place.range,
        count=1,
        compiles=(moment.record.compile,) if moment.record.compile else (),
        related=told.related,
        fixes=fixes_of(told.words),
        facts=BreakFacts(skipped),
    )
    finding = _led(moment, finding, place)
    known = _known_break(moment, finding, told)
    if known is not None and not told.is_anywhere:
        return dataclasses.replace(known, count=0, compiles=finding.compiles)
    inside = known or _break_inside(moment, finding)
    if inside is not None:
        finding = dataclasses.replace(inside, count=0, compiles=finding.compiles)
    if skipped:
        _give_up(moment, finding, place.qualified if inside is None or told.is_anywhere else "")
    return finding


def _places(error: BaseException | None) -> tuple[list[FramePlace], bool]:
    """The places as `make` has them, and whether the backward of the operation there failed."""
    failed = printed_places(forward_stack(first_of(error))) if error is not None else []
    return with_traced(failed) if failed else places_now(error), bool(failed)


def _give_up(moment: Moment, finding: Finding, function: str) -> None:
    """Keeps the break because of which a function runs as plain Python, for `given_up_at`."""
    if moment.record.compile:
        moment.known.notes.setdefault(_GIVEN_UP, {})[moment.record.compile] = (finding, function)


def _earlier(moment: Moment, finding: Finding) -> Finding | None:
    """The newest break of the same compile, over which nothing could be carried that is alive there."""
    known = [each for each in moment.known.findings if each.kind == KIND.id and moment.record.compile in each.compiles]
    return next((each for each in reversed(known) if each.cause != finding.cause), None)


def _leader(moment: Moment, finding: Finding, place: FramePlace) -> Finding | None:
    """The break that a break inside of a library follows from: it made a function run as plain Python, so that the library
    below the call is compiled piece by piece.  Dynamo had traced past that call, so it broke nothing there: up to the break,
    or up to the end of the graph with which the backend failed."""
    if place.traced or not any(related.role is RelatedRole.CAUSE for related in finding.related):
        return None
    given_up: dict[str, tuple[Finding, str]] = moment.known.notes.get(_GIVEN_UP, {})
    for compile, (leader, function) in given_up.items():
        if leader.file != finding.file or leader.severity is Severity.HINT:
            continue
        known = moment.known.compiles.get(compile)
        is_here = known is not None and (known.file, known.function_name) == (place.file, place.qualified)
        passed = is_here and function == place.qualified and finding.range.start < leader.range.start
        if passed or (leader.code == _BACKEND_FAILED and leader.range == finding.range):
            return leader if leader.cause != finding.cause else None
    return None


def _led(moment: Moment, finding: Finding, place: FramePlace) -> Finding:
    """The finding, with the break that it follows from if there is one."""
    leader = _earlier(moment, finding) if finding.code == _NOT_CARRIED else _leader(moment, finding, place)
    if leader is None:
        return finding
    return dataclasses.replace(
        finding,
        severity=Severity.HINT,
        hints=(
            *finding.hints,
            f"Remove the graph break {leader.code} on line {leader.range.start.line} first: this one follows from it.",
        ),
        follows=Related(leader.file, leader.range, "this graph break is the cause"),
    )


def _told(
    moment: Moment, places: list[FramePlace], at: int, messages: list[BreakMessage], skipped: bool, in_backward: bool
) -> _Told:
    """The words of a break by whose it is: PyTorch's on purpose, a fake implementation's, a transform's, or the line's;
    ``in_backward`` says that the backward of the operation at the place failed."""
    place, related = places[at], related_to(places, at)
    whole = _whole(moment, place)
    given_up = whole if skipped else ""
    code = messages[0].code if messages else ""
    refused = refused_function(moment.error) if code in _OF_FUNCTIONS else None
    beneath = places[at + 1 :]
    if messages and deliberate.is_deliberate(messages[0], beneath, refused):
        return _Told(deliberate.words_of(place, given_up), related, "on purpose", severity=Severity.HINT)
    if messages and (told := _of_a_known_library(code, places, at, given_up)) is not None:
        return told
    if messages and (fake := fake_calls.fake_that_refuses(messages[0])) is not None:
        words = fake_calls.words_of(messages[0], *fake, place, given_up)
        return _Told(words, (fake_calls.related_of(fake[1]), *related_to(places[: at + 1], at)), None)
    if code == _IN_TRANSFORM and is_called_by_transform():
        return _Told(transforms.words_of(place, given_up), related, _IN_TRANSFORM)
    words = words_at(places, at, messages, moment.record.payload, skipped, whole, refused)
    if code == _IN_TRANSFORM:
        return _Told(words, related, _IN_TRANSFORM, keeps=False)
    if code == _BACKEND_FAILED:
        return _of_backend(messages[0], _Told(words, related, None), place, in_backward)
    return _Told(words, related, refused)


def _of_a_known_library(code: str, places: list[FramePlace], at: int, given_up: str) -> _Told | None:
    """What is said of a break in a library that irscope knows: Lightning, and libraries of type checks."""
    place, beneath = places[at], places[at + 1 :]
    if lightning.is_in_module(beneath):
        return _Told(lightning.words_of(place, given_up), related_to(places, at), "Lightning", keeps=False)
    checks = type_checks.library_of(below.file for below in beneath) if code == type_checks.CUSTOM_CHECK else ""
    if not checks:
        return None
    above = related_to(places[: at + 1], at)
    return _Told(type_checks.words_of(place, given_up, checks), above, "type check", keeps=False)


def _of_backend(message: BreakMessage, told: _Told, place: FramePlace, in_backward: bool) -> _Told:
    """What is said where a backend fails: once, though Dynamo tries it again with less of the function."""
    failed = _HOW_IT_FAILED.search(message.explanation)
    if failed is None:
        return told
    told = dataclasses.replace(
        told, about=(message.code, place.file, place.qualified, failed["error"]), is_anywhere=True
    )
    if _OF_SHAPE.fullmatch(failed["error"]):  # of the backward, whose result has a shape that depends on values
        return told
    part = "backward of" if in_backward else "graph that ends at"
    what = f"the backend `{failed['backend']}` failed with the {part} {deliberate.shown(place)}: {failed['error']}"
    said = f"Graph break: {what}; Dynamo tries it with less of the function, and else runs all of it as plain Python."
    words = deliberate.words("", "", "PyTorch's compiler failed, not your code.")
    return dataclasses.replace(told, words=dataclasses.replace(words, message=said, hints=(UNTIL,)))


def _whole(moment: Moment, place: FramePlace) -> str:
    """The function that runs as plain Python if the break cannot be at its place, as the message names it."""
    compile = moment.compile
    named = compile is not None and is_user_file(compile.file) and compile.function_name != place.qualified
    return f"all of `{compile.function_name}`" if named and compile is not None else "the whole function"


def _known_break(moment: Moment, finding: Finding, told: _Told) -> Finding | None:
    """The break that this one repeats: it is about the same, and below a call that breaks for this reason already."""
    known: dict[object, Finding] = moment.known.notes.setdefault(_ABOUT, {})
    places = {(finding.file, finding.range), *((place.file, place.range) for place in finding.related)}
    found = known.get(told.about)
    repeats = found is not None and (told.is_anywhere or (found.file, found.range) in places)
    if found is not None and repeats and found.cause != finding.cause:
        return found
    if told.about is not None and told.keeps:
        known[told.about] = finding
    return None


def _break_inside(moment: Moment, finding: Finding) -> Finding | None:
    """The break inside of a function that ``vmap`` or ``grad`` transforms, where this one only says that there is one.

    It names the call of the transform among its callers, and is the one to fix, so the call is not reported again.
    """
    if finding.code != _IN_TRANSFORM:
        return None
    call = (finding.file, finding.range)
    return next(
        (
            known
            for known in moment.known.findings
            if known.kind == KIND.id
            and known.code != _IN_TRANSFORM
            and any((place.file, place.range) == call for place in known.related)
        ),
        None,
    )


def given_up_at(moment: Moment, compile: str) -> tuple[Finding, str] | None:
    """The break because of which all of a compile's function runs as plain Python, and the function that it is in (empty
    if that is not known); None if there is none."""
    found: tuple[Finding, str] | None = moment.known.notes.get(_GIVEN_UP, {}).get(compile)
    return found


def with_guard(messages: list[BreakMessage], error: BaseException | None) -> list[BreakMessage]:
    """The messages, led by the data-dependent guard that they all come from, where there is one."""
    if messages and messages[0].code not in _TOLD_OF_GUARDS:  # a guard in its context was dealt with
        return messages
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if (guard := parse_data_dependent_guard(str(error))) is not None:
            return [guard, *(message for message in messages if message.code not in ("", _BRANCH))]
        error = error.__cause__ or error.__context__
    return messages


def fixes_of(words: Words) -> tuple[Fix, ...]:
    """What carries out the options that can be applied as they are."""
    return carrying_out(
        Fix(option.do, option.caveat, option.edits, method=option.method) if option.edits else None
        for option in words.options
    )


def words_at(
    places: list[FramePlace],
    at: int,
    messages: list[BreakMessage],
    payload: str,
    skipped: bool,
    whole: str = "the whole function",
    refused: types.CodeType | None = None,
) -> Words:
    """What to say of a break at one of the places of a stack.

    Args:
        whole: What runs as plain Python if it is skipped.
        refused: The function that Dynamo did not go into, if that is the break.
    """
    from irscope.fixing.advice import BreakContext, words_for  # here: with it come the rules for all breaks

    place, beneath = places[at], places[at + 1 :]
    context = BreakContext(
        tuple(messages),
        place.file,
        place.function,
        place.range,
        node_at_range(place.file, place.range),
        payload,
        skipped,
        beneath=tuple(deeper for deeper in beneath if not is_polyfill(deeper.file)),
        traced=place.traced,
        inlined=at > 0 and places[at - 1].traced,
        resumed=any(each.resumes for each in places),
        whole=whole,
        refused=refused,
    )
    return words_for(context)


DETECTORS = (Detector(GRAPH_BREAK, detect),)
