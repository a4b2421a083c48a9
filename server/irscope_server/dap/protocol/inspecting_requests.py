"""Requests that look: threads, stack, scopes, variables, sources, expressions, findings, machine code."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Mapping
from typing import ClassVar

from irscope.protocol import Origin
from irscope.usercode.user_files import is_user_file
from irscope.values.expressions import completions, evaluate
from irscope.values.facts import BadExpression, Facts
from irscope.values.run.client import ValueProcessError

from irscope_server.dap.base.sections import SourceSection
from irscope_server.dap.engine.disassembly import Bytecode, Instruction, Listing
from irscope_server.dap.engine.names import NAMES, Lookup
from irscope_server.dap.engine.programs import FIRST_THREAD, ProgramSection
from irscope_server.dap.engine.recording import FunctionNames, PlaceInRun
from irscope_server.dap.engine.walking import Level
from irscope_server.dap.protocol.breakpoint_requests import address_of
from irscope_server.dap.protocol.session import Session, State
from irscope_server.dap.protocol.variables import described, parts, scopes
from irscope_server.dap.protocol.wire import Arguments, Body, NotNow, RequestFailed, WrongMessage
from irscope_server.dap.trace.traces import TraceSection

_STOPPED = frozenset({State.STOPPED})
_WITH_RUN = frozenset({State.CONFIGURING, State.RUNNING, State.STOPPED})

MOST_INSTRUCTIONS = 100_000
"""The most instructions of one ``disassemble`` request, which has to answer with exactly as many as it asks for."""

_MOST_COMPLETIONS = 200
_MOST_CALLERS = 50
_MOST_ITEMS = 10
"""The most items of a symbolic stack, in words about a graph break."""
_LONGEST_NAME = 60

_HELP = f"""\
An expression over what is available here: {", ".join(NAMES)}, and the nodes of this stage by their names.
For example: node.dtype == torch.bfloat16   users > 4   'relu' in node.target   len(inputs)   kernel.language
"""


class InspectingRequests:
    """Answers what a client asks about a run and a place in it, without changing it."""

    allowed: ClassVar[Mapping[str, frozenset[State]]] = {
        "threads": _WITH_RUN,
        "stackTrace": _STOPPED,
        "scopes": _STOPPED,
        "variables": _STOPPED,
        "source": _STOPPED,
        "loadedSources": _WITH_RUN,
        "evaluate": _STOPPED,
        "completions": _STOPPED,
        "exceptionInfo": _STOPPED,
        "disassemble": _STOPPED,
    }

    def __init__(self, session: Session) -> None:
        self._session = session
        self._compiles: dict[str, str] = {}

    def compile_seen(self, id: str, function: str) -> None:
        """A compile has begun in the script that runs."""
        if id not in self._compiles:
            self._compiles[id] = function
            self._session.event("thread", {"reason": "started", "threadId": len(self._compiles)})

    def forget_compiles(self) -> None:
        """Forget the compiles of the run before, since a new one begins."""
        self._compiles.clear()

    # --- threads and frames -------------------------------------------------------------------------------------------

    def threads_request(self, arguments: Arguments) -> Body:
        """One thread for each compile and for each program of a kernel that is known; while the script runs, those so far."""
        here = self._session.debuggee
        if here is None:
            names = [f"{id} {function}" for id, function in self._compiles.items()]
        else:
            names = [track.name for track in here.recording.tracks]
        threads = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
        programs = here.walker.programs.entered if here is not None else ()
        for number, place in enumerate(programs, FIRST_THREAD + 1):
            section = here.recording.section(place) if here is not None else None
            threads.append({"id": number, "name": section.thread_name if isinstance(section, ProgramSection) else ""})
        return {"threads": threads}

    def stackTrace_request(self, arguments: Arguments) -> Body:
        """The call stack of a thread, innermost first; a part of it where the client asks for levels."""
        compile = self._session.compile_of(arguments)
        start, count = arguments.integer("startFrame", 0, least=0), arguments.integer("levels", 0, least=0)
        levels = self._session.here().walker.stack(compile)
        shown = levels[start : start + count] if count else levels[start:]
        return {"stackFrames": [self._frame(compile, level) for level in shown], "totalFrames": len(levels)}

    def _frame(self, compile: int, level: Level) -> Body:
        client, here = self._session.client, self._session.here()
        section, spot = level.section, level.spot
        body: Body = {
            "id": self._session.new_frame(compile, level),
            "name": _frame_name(level, here.functions),
            "line": spot.line - 1 + client.first_line,
            "column": client.first_column,
            "canRestart": level.place is not None,
            "source": here.sources.of_file(spot.file) if section.is_source else here.sources.of_section(section),
        }
        if isinstance(section, TraceSection) and section.walk is not None and level.place is not None:
            body.update(self._in_trace(section, level.place))
            if level.place != here.walker.place(compile) and not is_user_file(spot.file):
                body["presentationHint"] = "subtle"
        elif (address := here.disassembly.address(section, spot.line)) is not None:
            body["instructionPointerReference"] = hex(address)
        return body

    def _in_trace(self, section: TraceSection, place: PlaceInRun) -> Body:
        """An instruction in its own file, from its first column to its last; in the text of the trace where it has no
        file that could be shown."""
        client, here = self._session.client, self._session.here()
        step = place.spot
        file = section.spots[step].file
        body: Body = {"source": here.sources.of_file(file)}
        if not os.path.isabs(file) and "sourceReference" not in body["source"]:
            line = section.document_line(step)
            body = {"source": here.sources.of_section(section), "line": line - 1 + client.first_line}
        elif (where := section.walk.instruction(step).range if section.walk is not None else None) is not None:
            start, end = where.start, where.end
            body["column"] = here.sources.column(file, start.line, start.column) + client.first_column
            if (end.line, end.column) > (start.line, start.column):
                body["endLine"] = end.line - 1 + client.first_line
                body["endColumn"] = here.sources.column(file, end.line, end.column) + client.first_column
        if (address := here.disassembly.address_of_step(section, step)) is not None:
            body["instructionPointerReference"] = hex(address)
        return body

    def scopes_request(self, arguments: Arguments) -> Body:
        """The scopes of a frame, with numbers by which their variables are asked for."""
        _, level = self._session.frame(arguments.integer("frameId"))
        here = self._session.here()
        return {"scopes": scopes(level, here.recording, here.links, self._session.handles, here.values)}

    def variables_request(self, arguments: Arguments) -> Body:
        """The parts of a scope or of a value, a page of them where the client asks for one."""
        only = arguments.text("filter", "")
        if only not in ("", "named", "indexed"):
            raise WrongMessage(f"'filter' must be named or indexed, not {only[:40]!r}.")
        start, count = arguments.integer("start", 0, least=0), arguments.integer("count", 0, least=0)
        reference = arguments.integer("variablesReference")
        return {"variables": parts(self._session.handles, reference, start, count, only)}

    # --- sources ------------------------------------------------------------------------------------------------------

    def source_request(self, arguments: Arguments) -> Body:
        """The text of a stage's document."""
        source = arguments.object("source")
        reference = source.integer("sourceReference", 0) or arguments.integer("sourceReference")
        text, mime = self._session.here().sources.content(reference)
        return {"content": text, "mimeType": mime}

    def loadedSources_request(self, arguments: Arguments) -> Body:
        """All documents of the run; none before there is a run."""
        here = self._session.debuggee
        return {"sources": here.sources.loaded() if here is not None else []}

    # --- expressions --------------------------------------------------------------------------------------------------

    def evaluate_request(self, arguments: Arguments) -> Body:
        """The value of an expression at a frame; raises RequestFailed with the reason where it has none."""
        text, context = arguments.text("expression"), arguments.text("context", "repl")
        lookup = self._lookup(arguments, locals_first=context == "hover")
        if context == "repl" and text.strip() in ("help", "?"):
            return {"result": _HELP, "variablesReference": 0}
        try:
            value = evaluate(text, lookup)
        except BadExpression as error:
            if not self._session.here().values.can_evaluate(text, lookup.place):
                raise RequestFailed(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
            try:
                value = self._session.here().values.evaluate(text, lookup.place)
            except ValueProcessError as failure:
                raise RequestFailed(f"{str(failure)[:1].upper()}{str(failure)[1:]}") from None
        path = text.strip() if len(text) <= 200 else ""
        body = described(value, self._session.handles, path, whole=context == "clipboard")
        body["result"] = body.pop("text")
        if isinstance(value, Facts) and context == "clipboard":
            body["result"] = "\n".join(
                f"{name}: {value.get(name)}" for name in value.names() if name not in ("users", "inputs")
            )
        body["presentationHint"] = {"attributes": ["readOnly"]}
        return body

    def _lookup(self, arguments: Arguments, *, locals_first: bool = False) -> Lookup:
        """The names at a frame; without one at the thread that stopped last."""
        session, here = self._session, self._session.here()
        if "frameId" in arguments:
            compile, level = session.frame(arguments.integer("frameId"))
            place = level.place or here.walker.place(compile)
        else:
            compile = next(reversed(session.last_stops), 0)
            place = here.walker.place(compile)
        last = session.last_stops.get(compile)
        finding = last.finding if last is not None and last.place == place else None
        return Lookup(here.recording, place, finding, locals_first=locals_first, values=here.values)

    def completions_request(self, arguments: Arguments) -> Body:
        """The names that can follow the text before the cursor."""
        text = arguments.text("text")
        column = arguments.integer("column") - self._session.client.first_column
        before = text[: max(column, 0)]
        match = re.search(r"((?:\w+\.)*)(\w*)$", before)
        path, prefix = (match[1].rstrip("."), match[2]) if match else ("", "")
        lookup = self._lookup(arguments)
        names: list[str] = lookup.names()
        if path:
            try:
                value = evaluate(path, lookup)
            except BadExpression:
                value = None
            names = value.names() if isinstance(value, Facts) else []
        found = [name for name in completions(prefix, names) if not keyword.iskeyword(name)][:_MOST_COMPLETIONS]
        start = len(before) - len(prefix) + self._session.client.first_column
        kind = "property" if path else "variable"
        targets = [{"label": name, "type": kind, "start": start, "length": len(prefix)} for name in found]
        return {"targets": targets}

    # --- findings and machine code ------------------------------------------------------------------------------------

    def exceptionInfo_request(self, arguments: Arguments) -> Body:
        """The finding at which the thread stopped; raises NotNow if it stopped for another reason."""
        stop = self._session.last_stops.get(self._session.compile_of(arguments))
        finding = stop.finding if stop is not None else None
        if stop is None or finding is None:
            raise NotNow("This thread has not stopped at a finding.")
        more = [*self._state_at(stop.place), finding.explanation, *(f"- {hint}" for hint in finding.hints)]
        if finding.link:
            more.append(finding.link)
        where = f"{finding.file}:{finding.range.start.line}"
        return {
            "exceptionId": finding.code,
            "description": finding.message,
            "breakMode": "always",
            "details": {
                "message": finding.message,
                "typeName": finding.kind,
                "evaluateName": "finding",
                "stackTrace": "\n".join([where, *(line for line in more if line)]),
            },
        }

    def _state_at(self, place: PlaceInRun) -> list[str]:
        """Where Dynamo was: the instruction and the functions it was inside of."""
        section = self._session.here().recording.section(place)
        if not isinstance(section, TraceSection) or section.walk is None:
            return []
        lines = []
        for step in section.chain(place.spot)[:_MOST_CALLERS]:
            file, function = section.walk.place_of(step)
            where = section.walk.instruction(step).range
            column = f":{where.start.column + 1}" if where is not None else ""
            instruction = section.walk.instruction_texts(step)[1]
            lines.append(f"  at {function} ({file}:{section.line(step)}{column}): {instruction}")
        stack = section.walk.frame(place.spot).stack
        return [*lines, f"  symbolic stack: {' | '.join(stack[-_MOST_ITEMS:]) or 'empty'}"]

    def disassemble_request(self, arguments: Arguments) -> Body:
        """Instructions from an address; exactly as many as were asked for, invalid ones if there is no code."""
        here = self._session.here()
        if not here.disassembly.has_code:
            raise NotNow("This run has no machine code: no stage of it is assembly, PTX or SASS.")
        count = arguments.integer("instructionCount", least=0, most=MOST_INSTRUCTIONS)
        start = address_of(arguments.text("memoryReference"))
        start += arguments.integer("offset", 0) + arguments.integer("instructionOffset", 0)
        listing, instructions = here.disassembly.read(start, count)
        found: list[Body] = []
        for number, each in enumerate(instructions):
            body: Body = {"address": hex(each.address), "instruction": each.text or "??"}
            if each.line and listing is not None:
                body.update(self._line_of(listing, each))
                if not found or not instructions[number - 1].line:
                    body["location"] = self._source_of(listing)  # holds for those that follow
            elif not each.text:
                body["presentationHint"] = "invalid"
            found.append(body)
        return {"instructions": found}

    def _source_of(self, listing: Listing) -> Body:
        sources = self._session.here().sources
        return (
            sources.of_file(listing.code[0]) if isinstance(listing, Bytecode) else sources.of_section(listing.section)
        )

    def _line_of(self, listing: Listing, instruction: Instruction) -> Body:
        client, where = self._session.client, instruction.range
        body: Body = {"line": instruction.line - 1 + client.first_line}
        if where is not None and isinstance(listing, Bytecode) and where.end > where.start:
            column = self._session.here().sources.column
            body["column"] = column(listing.code[0], where.start.line, where.start.column) + client.first_column
            body["endLine"] = where.end.line - 1 + client.first_line
            body["endColumn"] = column(listing.code[0], where.end.line, where.end.column) + client.first_column
        return body


def _frame_name(level: Level, names: FunctionNames) -> str:
    section, spot = level.section, level.spot
    if isinstance(section, TraceSection) and section.walk is not None and level.place is not None:
        file, code = section.walk.place_of(level.place.spot)
        function = names.title(file, code, spot.line)
        name = f"{function}: {section.walk.instruction_texts(level.place.spot)[1]}"
        return name if level.called else f"{name} [{section.title}]"
    if isinstance(section, SourceSection):
        function = section.function_at(Origin(spot.file, spot.line))
        return spot.name or (names.title(spot.file, function, spot.line) if function else section.compile.title)
    if (node := section.nodes.get(spot.name)) is not None:
        what = f"{node.name} = {node.target}" if node.op == "call" else node.name
    else:
        what = spot.name or " ".join(section.lines[spot.line - 1].split())[:_LONGEST_NAME] or f"line {spot.line}"
    return f"{what} [{section.title.removesuffix(f' {what}')}]"  # a kernel's title has its name
