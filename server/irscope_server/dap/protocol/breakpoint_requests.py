"""Requests that set breakpoints: on lines of the user's, on lines of stages, on names, on instructions, on findings.

A breakpoint that is set before the script has run is kept as it was asked for, and verified when there is a run.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from irscope.findings.registry import all_kinds
from irscope.ir.graph_statements import ORIGIN_HEAD
from irscope.pipelines.registry import stage_kind
from irscope.values.expressions import check
from irscope.values.facts import BadExpression
from irscope.vocabulary.findings import FindingKind

from irscope_server.dap.base.sections import Section, call_names, real
from irscope_server.dap.engine.breakpoints import Breakpoint
from irscope_server.dap.engine.columns import Expression
from irscope_server.dap.engine.disassembly import Bytecode
from irscope_server.dap.engine.programs import ProgramSection
from irscope_server.dap.engine.recording import Recording
from irscope_server.dap.protocol.session import Debuggee, Session, State
from irscope_server.dap.protocol.wire import Arguments, Body, RequestFailed, WrongMessage

_ALWAYS = frozenset({State.READY, State.CONFIGURING, State.RUNNING, State.STOPPED})
_STOPPED = frozenset({State.STOPPED})

KINDS: Mapping[str, FindingKind] = {id: kind for id, kind in all_kinds().items() if kind.in_compile}
"""Every kind of finding that has a place in a compile: each is an exception filter."""

FILTERS = [
    {
        "filter": id,
        "label": kind.title_of_many,
        "description": f"Stop where a finding of the kind {id} is",
        "default": kind.stops_debugger,
        "supportsCondition": True,
        "conditionDescription": "For example: finding.count > 2 or finding.code == 'GB0059'",
    }
    for id, kind in KINDS.items()
]


_ELEMENT = re.compile(r"(\w{1,100})\[\s*(\d{1,15})\s*\]")
_ACCESSES = {"read": ("read",), "write": ("write",), "readWrite": ("read", "write")}
_PROGRAM = re.compile(r"(\w+)\s*\(\s*(\d{1,9}(?:\s*,\s*\d{1,9}){0,2})\s*\)")
"""A program of a kernel as a function breakpoint names it: ``triton_poi_fused_add_0(3, 0)``."""


@dataclass
class _Asked:
    """One breakpoint as it was asked for, with the number that it keeps."""

    id: int
    arguments: Arguments


@dataclass
class _Set:
    """The breakpoints that one request set; the next one for the same source or of the same kind replaces them."""

    make: Callable[[Debuggee, _Asked], tuple[Breakpoint, Body]]
    asked: list[_Asked]
    live: list[Breakpoint] = field(default_factory=list)


class BreakpointRequests:
    """Keeps what was asked for, and puts it into the run once there is one."""

    allowed: ClassVar[Mapping[str, frozenset[State]]] = {
        "setBreakpoints": _ALWAYS,
        "setFunctionBreakpoints": _ALWAYS,
        "setInstructionBreakpoints": _ALWAYS,
        "setDataBreakpoints": _ALWAYS,
        "dataBreakpointInfo": _STOPPED,
        "setExceptionBreakpoints": _ALWAYS,
        "breakpointLocations": _STOPPED,
    }

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sets: dict[str, _Set] = {}
        self._kinds: dict[str, str] = {}
        self._last_id = 0

    @property
    def are_set(self) -> bool:
        """Whether the client has set breakpoints; its filters for findings do not count."""
        return bool(self._sets)

    # --- requests -----------------------------------------------------------------------------------------------------

    def setBreakpoints_request(self, arguments: Arguments) -> Body:
        """The line breakpoints of one source, which replace the earlier ones; each says whether it is verified."""
        source = arguments.object("source")
        if "path" not in source and "sourceReference" not in source and "adapterData" not in source:
            raise WrongMessage("A source needs a path or a sourceReference.")
        path, reference = source.text("path", ""), source.integer("sourceReference", 0)
        key = json.dumps(["source", real(path) if not reference else "", reference])
        asked = arguments.objects("breakpoints")
        if not asked and "lines" in arguments:  # the older way of asking
            asked = [Arguments({"line": line}) for line in arguments.integers("lines")]
        for each in asked:
            each.integer("line")
            each.integer("column", 0)
            for name in ("condition", "hitCondition", "logMessage"):
                each.text(name, "")
        return self._set(key, asked, lambda here, one: self._at_line(here, source, one))

    def setFunctionBreakpoints_request(self, arguments: Arguments) -> Body:
        """The breakpoints on names of nodes and kernels, which replace the earlier ones."""
        asked = arguments.objects("breakpoints")
        for each in asked:
            each.text("name")
            for name in ("condition", "hitCondition"):
                each.text(name, "")
        return self._set("functions", asked, self._at_function)

    def setInstructionBreakpoints_request(self, arguments: Arguments) -> Body:
        """The breakpoints on instructions, which replace the earlier ones."""
        asked = arguments.objects("breakpoints")
        for each in asked:
            address_of(each.text("instructionReference"))
            each.integer("offset", 0)
            for name in ("condition", "hitCondition"):
                each.text(name, "")
        return self._set("instructions", asked, self._at_instruction)

    def dataBreakpointInfo_request(self, arguments: Arguments) -> Body:
        """The element of a kernel's memory that a name such as ``out_ptr0[17]`` is, in a kernel."""
        session, here = self._session, self._session.here()
        name = arguments.text("name")
        if reference := arguments.integer("variablesReference", 0):
            name = f"{session.handles.get(reference)[1] or ''}{name}"
        thread = next(reversed(session.last_stops), 0)
        level = session.frame(arguments.integer("frameId"))[1] if "frameId" in arguments else None
        place = level.place if level is not None and level.place is not None else here.walker.place(thread)
        section = here.recording.section(place)
        kernel = section.kernel if isinstance(section, ProgramSection) else section
        found = _ELEMENT.fullmatch(name.strip())
        if found is None or not (isinstance(section, ProgramSection) or here.walker.programs.can_enter(place)):
            why = "In a Triton kernel an element of its memory can be watched, as out_ptr0[17]."
            return {"dataId": None, "description": why}
        data = f"{kernel.stage.id}:{found[1]}[{int(found[2])}]"
        return {"dataId": data, "description": f"{found[1]}[{int(found[2])}]", "accessTypes": list(_ACCESSES), "canPersist": True}  # fmt: skip

    def setDataBreakpoints_request(self, arguments: Arguments) -> Body:
        """The breakpoints on elements of the memory of kernels, which replace the earlier ones."""
        asked = arguments.objects("breakpoints")
        for each in asked:
            for name in ("dataId", "accessType", "condition", "hitCondition"):
                each.text(name, "")
        return self._set("data", asked, self._at_element)

    def _at_element(self, here: Debuggee, asked: _Asked) -> tuple[Breakpoint, Body]:
        access = asked.arguments.text("accessType", "write") or "write"
        stage, _, name = asked.arguments.text("dataId").rpartition(":")
        element, kinds = _ELEMENT.fullmatch(name), _ACCESSES.get(access)
        if element is None or kinds is None:
            raise RequestFailed("This is not an element of a kernel's memory.")
        if not any(track.number_of(stage) is not None for track in here.recording.tracks):
            raise RequestFailed("This run does not have the kernel.")
        made = Breakpoint(asked.id, "data breakpoint", stage=stage, access=(element[1], int(element[2]), kinds), **_words(asked))  # fmt: skip
        return made, {"verified": True}

    def setExceptionBreakpoints_request(self, arguments: Arguments) -> Body:
        """The kinds of findings to stop at; a wrong kind or condition is answered as not verified."""
        kinds = dict.fromkeys(arguments.texts("filters"), "")
        for each in arguments.objects("filterOptions"):
            kinds[each.text("filterId")] = each.text("condition", "")
        answers: list[Body] = []
        self._kinds = {}
        for kind, condition in kinds.items():
            answer: Body = {"verified": True}
            try:
                if kind not in KINDS:
                    raise BadExpression(f"unknown kind of finding: {kind[:60]!r}")
                if condition:
                    check(condition)
                self._kinds[kind] = condition
            except BadExpression as error:
                answer = {"verified": False, "message": str(error)}
            answers.append(answer)
        self._apply()
        return {"breakpoints": answers}

    def breakpointLocations_request(self, arguments: Arguments) -> Body:
        """The places within a range of a source at which a breakpoint can be set."""
        session, here = self._session, self._session.here()
        first = arguments.integer("line") + 1 - session.client.first_line
        last = arguments.integer("endLine", first - 1 + session.client.first_line) + 1 - session.client.first_line
        found = here.sources.find(arguments.object("source"))
        if isinstance(found, Section):
            spots = range(found.spot_at(first), found.spot_at(last) + 1)
            lines = {line for line in map(found.document_line, spots) if first <= line <= last}
        else:
            known = lines_of(here.recording, found) | lines_walked(here.recording, found)
            lines = {line for line in known if first <= line <= last}
        low, high = arguments.integer("column", 0), arguments.integer("endColumn", 2**31)
        bodies = [body for line in sorted(lines) for body in self._in_line(here, found, line)]
        return {
            "breakpoints": [
                each
                for each in bodies
                if not (each["line"] == first - 1 + session.client.first_line and each.get("column", low) < low)
                and not (each["line"] == last - 1 + session.client.first_line and each.get("column", 0) > high)
            ]
        }

    def _in_line(self, here: Debuggee, document: Section | str, line: int) -> list[Body]:
        """Where a breakpoint can be on one line: its expressions or nodes where there are several, else the line."""
        if isinstance(document, Section):
            columns = [self._column_body(line, column) for column, _ in here.columns.spots(document, line)]
        else:
            expressions = here.columns.expressions(document, line, line)
            columns = [self._expression_body(here, each) for each in expressions]
        return columns if len(columns) > 1 else [{"line": line - 1 + self._session.client.first_line}]

    def _column_body(self, line: int, column: int) -> Body:
        client = self._session.client
        return {"line": line - 1 + client.first_line, "column": column + client.first_column}

    def _expression_body(self, here: Debuggee, each: Expression) -> Body:
        column, end = here.sources.column, each.range.end
        body = self._column_body(each.at.line, column(each.file, each.at.line, each.at.column))
        other = self._column_body(end.line, column(each.file, end.line, end.column))
        return {**body, "endLine": other["line"], "endColumn": other["column"]}

    # --- keeping and verifying ----------------------------------------------------------------------------------------

    def _set(
        self, key: str, asked: list[Arguments], make: Callable[[Debuggee, _Asked], tuple[Breakpoint, Body]]
    ) -> Body:
        kept = []
        for each in asked:
            self._last_id += 1
            kept.append(_Asked(self._last_id, each))
        self._sets[key] = made = _Set(make, kept)
        if self._session.debuggee is None:
            bodies = [self._pending(each) for each in kept]
        else:
            bodies = self._verify(made, self._session.debuggee)
        if not kept:
            del self._sets[key]
        self._apply()
        return {"breakpoints": bodies}

    def _pending(self, asked: _Asked) -> Body:
        body: Body = {"id": asked.id, "verified": False, "message": "The script has not run yet.", "reason": "pending"}
        if "line" in asked.arguments:
            body["line"] = asked.arguments.integer("line")
        return body

    def _verify(self, made: _Set, here: Debuggee) -> list[Body]:
        made.live = []
        bodies = []
        for asked in made.asked:
            try:
                breakpoint, body = made.make(here, asked)
                made.live.append(breakpoint)
                if breakpoint.wrong:
                    body.update(verified=False, message=f"{breakpoint.wrong[0].upper()}{breakpoint.wrong[1:]}.")
            except RequestFailed as failure:
                body = {"verified": False, "message": str(failure)}
            bodies.append({"id": asked.id, **body})
        return bodies

    def verify_all(self) -> None:
        """There is a run now: says of each breakpoint that was set before whether it can stop."""
        for made in self._sets.values():
            for body in self._verify(made, self._session.here()):
                self._session.event("breakpoint", {"reason": "changed", "breakpoint": body})
        self._apply()

    def _apply(self) -> None:
        if self._session.debuggee is not None:
            stops = self._session.debuggee.stops
            stops.breakpoints = [each for made in self._sets.values() for each in made.live]
            stops.kinds = dict(self._kinds)
            stops.changed()

    # --- one of each sort ---------------------------------------------------------------------------------------------

    def _at_line(self, here: Debuggee, source: Arguments, asked: _Asked) -> tuple[Breakpoint, Body]:
        first = self._session.client.first_line
        line = asked.arguments.integer("line") + 1 - first
        column = (
            max(asked.arguments.integer("column") - self._session.client.first_column, 0)
            if "column" in asked.arguments
            else None
        )
        found = here.sources.find(source)
        words = _words(asked)
        if isinstance(found, Section):
            if found in [section for track in here.recording.tracks for section in track.aside]:
                raise RequestFailed(
                    "This document describes a compile but is not a stage of it, so nothing can stop here."
                )
            spot, more = found.spot_at(line), dict[str, Any]()
            if column is not None and (inside := here.columns.spot(found, line, column)) is not None:
                spot, more = inside[0], self._column_body(line, inside[1])
            made = Breakpoint(asked.id, "breakpoint", stage=found.stage.id, spot=spot, **words)
            at, document = found.document_line(spot), here.sources.of_section(found)
        else:
            at = nearest_line(here.recording, found, line) or 0
            if not at:
                raise RequestFailed("Nothing in this run came from this line.")
            made, more = Breakpoint(asked.id, "breakpoint", file=found, line=at, **words), dict[str, Any]()
            if column is not None and (wanted := self._expression(here, found, line, column)) is not None:
                made.within, at = functools.partial(here.columns.marks, wanted), wanted.at.line
                more = self._expression_body(here, wanted)
            document = here.sources.of_file(source.text("path", found))
        return made, {"verified": True, "line": at - 1 + first, "source": document, **more}

    def _expression(self, here: Debuggee, file: str, line: int, column: int) -> Expression | None:
        """The expression at a column in the client's count; None if the line has but one."""
        index = here.sources.index(file, line, column)
        several = len(here.columns.expressions(file, line, line)) > 1
        return here.columns.expression(file, line, index) if several else None

    def _at_function(self, here: Debuggee, asked: _Asked) -> tuple[Breakpoint, Body]:
        name = asked.arguments.text("name").strip()
        made = Breakpoint(asked.id, "function breakpoint", function=name, **_words(asked))
        if (program := _PROGRAM.fullmatch(name)) is not None:
            stages = [each.stage for each in here.recording.report.kernels if each.name == program[1]]
            x, y, z = (*map(int, program[2].split(",")), 0, 0)[:3]
            if stages:
                made.function, made.stage, made.program = "", stages[0], (x, y, z)
                return made, {"verified": True}
        if not _is_called(here.recording, name):
            raise RequestFailed(f"This run has no operation, pass or kernel called {name[:100]!r}.")
        return made, {"verified": True}

    def _at_instruction(self, here: Debuggee, asked: _Asked) -> tuple[Breakpoint, Body]:
        address = address_of(asked.arguments.text("instructionReference")) + asked.arguments.integer("offset", 0)
        found = here.disassembly.find(address)
        if found is None or found[1] < 0:
            raise RequestFailed("There is no instruction at this address.")
        listing, at = found
        reason = "instruction breakpoint"
        if isinstance(listing, Bytecode):
            made = Breakpoint(asked.id, reason, instruction=(listing.code, at), **_words(asked))
        else:
            spot = listing.section.spot_at(listing.lines[at])
            made = Breakpoint(asked.id, reason, stage=listing.section.stage.id, spot=spot, **_words(asked))
        return made, {"verified": True, "instructionReference": hex(address)}


def _words(asked: _Asked) -> dict[str, Any]:
    arguments = asked.arguments
    return {
        "condition": arguments.text("condition", ""),
        "hit_condition": arguments.text("hitCondition", ""),
        "log": arguments.text("logMessage", ""),
    }


def address_of(text: str) -> int:
    """Raises WrongMessage if it is not a memory reference of ours."""
    try:
        address = int(text, 0)
    except ValueError:
        address = -1
    if not 0 <= address < 2**60:
        raise WrongMessage(f"{text[:40]!r} is not a memory reference of this session.")
    return address


_ORIGIN = re.compile(f"^{ORIGIN_HEAD}", re.MULTILINE)


def lines_of(recording: Recording, file: str) -> set[int]:
    """The lines of a file that anything in the run came from.

    Read from the comments of the first graph of each compile, which is quick; what has no graph is found by its kernels,
    findings and functions.
    """
    wanted = real(file)
    found = {finding.range.start.line for finding in recording.report.findings if real(finding.file) == wanted}
    found |= {o.line for kernel in recording.report.kernels for o in kernel.origins if real(o.file) == wanted}
    for part in {part for kernel in recording.report.kernels for part in kernel.lines if real(part.file) == wanted}:
        found.update(part.lines)
    for section in (section for _, _, section in recording.sections()):
        found |= {caller.line for caller in section.called_from if real(caller.file) == wanted}
    for track in recording.tracks:
        if real(track.compile.file) == wanted:
            found.add(track.compile.line)
        graph = next((each for each in track.sections if stage_kind(each.stage.name).is_graph), None)
        if graph is not None:
            found |= {int(match["line"]) for match in _ORIGIN.finditer(graph.text) if real(match["file"]) == wanted}
    return found


def lines_walked(recording: Recording, file: str) -> set[int]:
    """The lines of a file that Dynamo came to, whether or not anything came of it."""
    wanted = real(file)
    walks = [walk for track in recording.tracks for _, _, walk in track.traces()]
    return {line for walk in walks for path, line in walk.lines_walked() if real(path) == wanted}


def nearest_line(recording: Recording, file: str, line: int) -> int | None:
    """A line that something came from: this one, else the first such line of the statement that it belongs to, else a
    line that called what something came from."""
    known = lines_of(recording, file)
    if line in known:
        return line
    statements = _statements(recording, file, line)
    for first, last in statements:
        if inside := sorted(each for each in known if first <= each <= last):
            return inside[0]
    known = lines_walked(recording, file)
    if line in known:
        return line
    for first, last in statements:
        if inside := sorted(each for each in known if first <= each <= last):
            return inside[0]
    for _, _, section in recording.sections():
        if any(real(origin.file) == real(file) and origin.line == line for origin in section.by_origin):
            return line
    return None


def _statements(recording: Recording, file: str, line: int) -> list[tuple[int, int]]:
    """The lines of the simple statement that holds a line."""
    text = next((text for path, text in recording.sources.items() if real(path) == real(file)), "")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    spans = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
    return [(first, last) for first, last in spans if first <= line <= last and first != last]


def _is_called(recording: Recording, name: str) -> bool:
    """Whether a function breakpoint can ever stop; a pattern is taken at its word."""
    if any(sign in name for sign in "*?["):
        return True
    if any(name in call_names(kernel.name) for kernel in recording.report.kernels):
        return True
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)|\.{re.escape(name)}(?!\w)")
    texts = (_COMMENT.sub("", section.text) for section in recording.documents())
    passed = {section.stage.passed for section in recording.documents()}
    return name in passed or any(word.search(text) for text in texts)


_COMMENT = re.compile(r"(?:#|//).*$", re.MULTILINE)
"""Nothing stops at what a comment names: the operation that a kernel's nodes were before decompositions."""
