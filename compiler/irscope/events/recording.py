"""One attempt of one compile as `events.symbolic` records it: columns of numbers, and what they stand for."""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import is_
from typing import Any

from irscope.events.break_message import parse_break_messages
from irscope.events.instructions import Columns, argument_of
from irscope.events.trackers import Description, describe, stamp, text_of
from irscope.symbolic.trace import VERSION

# These instructions add no node and no guard, realize no lazy tracker and change no container; those that store change
# one local and nothing else.
_LOADS = frozenset(["LOAD_CONST", "LOAD_FAST", "COPY", "SWAP", "POP_TOP", "PUSH_NULL", "KW_NAMES"])
_READS = _LOADS | {"RESUME", "PRECALL", "NOP", "CACHE", "JUMP_FORWARD", "JUMP_BACKWARD"}
_STORES = frozenset(["STORE_FAST"])
_GENERATES = ("YIELD_VALUE", "RETURN_GENERATOR")


class _Frame:
    """What is remembered of a translator between two of its steps."""

    __slots__ = ("changed", "locals", "number", "stack", "stamps", "stored", "texts", "translator", "values", "watched")

    def __init__(self, number: int, translator: Any) -> None:
        self.number, self.translator = number, translator
        self.stack: list[Any] = []
        self.texts: list[int] = []  # of the stack
        self.stamps: list[int | None] = []  # of the stack
        self.values: dict[str, Any] = {}
        self.locals: dict[str, int] = {}  # name → its text
        self.watched: dict[str, int] = {}  # name → stamp, of the locals that can get another description
        self.stored = True  # the instruction before may have changed which objects the locals are
        self.changed = True  # the instruction before may have changed descriptions


class Recording:
    """One attempt of one compile, during recording."""

    def __init__(self, compile: str, attempt: int, output: Any) -> None:
        self.compile, self.attempt, self.output = compile, attempt, output
        self.began = time.perf_counter()
        self.broken = False
        self.restarts = False
        self.earlier_break = ""
        self.break_text = ""
        self.active: list[int] = []
        self.outcomes: dict[int, tuple[str, str]] = {}
        self._error: BaseException | None = None
        self._strings: dict[Description, int] = {}
        self._frames: dict[int, _Frame] = {}  # id of a translator → its frame, which keeps the translator alive
        self._frame_codes: list[Any] = []
        self._listings: dict[int, tuple[Any, ...]] = {}  # id of a code object → its instructions, which Dynamo rewrites
        self._last = -1  # the frame of which a step ran last
        # id of an instruction → its index, if it may change locals, if it may change anything else
        self._known: dict[int, tuple[int, bool, bool]] = {}
        self._rows = _Rows(self._text)
        self._instructions: list[Any] = []  # they are kept, so that ids stay theirs
        self._codes: list[Any] = []  # the code object of each
        self._frame_column: list[int] = []
        self._instruction_column: list[int] = []
        self._caller: list[int] = []
        self._kept: list[int] = []
        # Flat: an object a step would be one more for each run of Python's garbage collector.
        self._pushes: list[int] = []
        self._pushed: list[int] = []
        self._locals: list[list[int]] = []
        self._graphs: dict[int, _Seen] = {}
        self._nodes: list[list[Any]] = []
        self._gone: list[list[Any]] = []
        self._guards: list[list[Any]] = []
        self._known_guards = _Seen()
        self._guards_gone: list[list[Any]] = []

    # --- a step -------------------------------------------------------------------------------------------------------

    def begin(self, translator: Any) -> None:
        """An instruction begins: note its frame, its caller and the stack before it."""
        active = self.active
        caller = active[-1] if active else -1
        frame = self._frames.get(id(translator))
        if frame is None:
            frame = self._frames[id(translator)] = _Frame(len(self._frame_codes), translator)
            self._frame_codes.append(translator.f_code)
            if id(translator.f_code) not in self._listings:
                self._listings[id(translator.f_code)] = tuple(translator.instructions)
        if self._last != frame.number:
            self._see_output(caller)  # what the caller did before it entered this frame
            self._last = frame.number
        instruction = translator.instructions[translator.instruction_pointer]
        known = self._known.get(id(instruction))
        if known is None:
            known = self._known[id(instruction)] = self._first_seen(instruction, translator.f_code)
        index = len(self._frame_column)
        self._frame_column.append(frame.number)
        self._instruction_column.append(known[0])
        self._caller.append(caller)
        active.append(index)
        self._see_stack(frame, translator.stack)
        if frame.stored:
            self._see_locals(frame, translator.symbolic_locals, index)
        if frame.changed and frame.watched:
            self._see_watched(frame, index)
        _, frame.stored, frame.changed = known

    def _first_seen(self, instruction: Any, code: Any) -> tuple[int, bool, bool]:
        self._instructions.append(instruction)
        self._codes.append(code)
        changes = instruction.opname not in _READS
        return len(self._instructions) - 1, changes, changes and instruction.opname not in _STORES

    def _text(self, text: Description) -> int:
        strings = self._strings
        number = strings.get(text)
        if number is None:
            number = strings[text] = len(strings)
        return number

    def _see_stack(self, frame: _Frame, stack: list[Any]) -> None:
        kept = 0
        for old, new in zip(frame.stack, stack):  # noqa: B905  the shorter one ends it
            if old is not new:
                break
            kept += 1
        if frame.changed:
            for place in range(kept):
                if frame.stamps[place] is not None and frame.stamps[place] != stamp(stack[place]):
                    kept = place
                    break
        pushed = []
        if len(frame.stack) != kept or len(stack) != kept:
            stamps = []
            for tracker in stack[kept:]:
                pushed.append(self._text(describe(tracker)))
                stamps.append(stamp(tracker))
            frame.stack[kept:], frame.texts[kept:], frame.stamps[kept:] = stack[kept:], pushed, stamps
        self._kept.append(kept)
        self._pushes.append(len(pushed))
        self._pushed += pushed

    def _see_locals(self, frame: _Frame, values: dict[str, Any], index: int) -> None:
        """Which objects the locals are."""
        before = frame.values
        if len(before) == len(values) and all(map(is_, before.values(), values.values())):
            return
        changed: list[int] = []
        for name, tracker in values.items():
            if before.get(name) is not tracker:
                self._see_local(frame, name, tracker, changed)
        for name in before:
            if name not in values:
                frame.watched.pop(name, None)
                del frame.locals[name]
                changed += (self._text(name), -1)
        frame.values = dict(values)
        if changed:
            self._locals.append([index, *changed])

    def _see_local(self, frame: _Frame, name: str, tracker: Any, changed: list[int]) -> None:
        text = self._text(describe(tracker))
        if frame.locals.get(name) != text:
            frame.locals[name] = text
            changed += (self._text(name), text)
        mark = stamp(tracker)
        if mark is None:
            frame.watched.pop(name, None)
        else:
            frame.watched[name] = mark

    def _see_watched(self, frame: _Frame, index: int) -> None:
        """Locals that are the same objects, of which some are now described in other words."""
        changed: list[int] = []
        for name, mark in list(frame.watched.items()):
            tracker = frame.values[name]
            if stamp(tracker) != mark:
                self._see_local(frame, name, tracker, changed)
        if changed:
            if self._locals and self._locals[-1][0] == index:
                self._locals[-1] += changed
            else:
                self._locals.append([index, *changed])

    def end(self, translator: Any, more: bool, error: BaseException | None) -> None:
        """An instruction has ended: note what it put out, and how the walk ended where it did."""
        index = self.active.pop()
        instruction = self._instructions[self._instruction_column[index]]
        self._last = self._frame_column[index]
        if not more or self._known[id(instruction)][2]:
            self._see_output(index)
        if error is not None:
            self._raised(index, error)
        elif not more and not self.active:
            self.outcomes.setdefault(index, self.result())
        if not more and (error is not None or instruction.opname not in _GENERATES):
            self._frames.pop(id(translator), None)

    # --- what came of it ----------------------------------------------------------------------------------------------

    def result(self) -> tuple[str, str]:
        """How the walk ends if it ends now in the compiled function."""
        step = self.active[0] if self.active else len(self._frame_column) - 1
        while self._caller[step] >= 0:
            step = self._caller[step]
        opname = self._instructions[self._instruction_column[step]].opname
        if opname.startswith("RETURN"):
            return ("compiled", "")
        return ("graph-break", self.earlier_break or self.break_text)

    def broke(self, message: str) -> None:
        """Note the message of a graph break, as the outcome of the innermost instruction that is being traced."""
        self.break_text = _break_text(message) or self.break_text
        if self.active and not any(kind == "graph-break" for kind, _ in self.outcomes.values()):
            self.outcomes[self.active[-1]] = ("graph-break", self.break_text)

    def _raised(self, index: int, error: BaseException) -> None:
        if error is self._error:
            return  # it was noted where it came from
        self._error = error
        names = {cls.__name__ for cls in type(error).__mro__}
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        if "RestartAnalysis" in names:
            self.restarts = True
            kind = "restart"
            text = type(error).__name__
        elif names & {"Unsupported", "StepUnsupported"}:
            kind = "graph-break"
            self.break_text = text = _break_text(str(error)) or text
        elif "ObservedException" in names:
            kind, text = "exception", type(error).__name__.removeprefix("Observed")
        else:
            kind = "error"
        before = self.outcomes.get(index)
        if before is None or before[0] == "compiled":
            self.outcomes[index] = (kind, text)
        elif kind == "restart":
            self.outcomes[index] = (before[0], before[1])

    def _see_output(self, step: int) -> None:
        """What is new in the graph and among the guards was brought about by ``step``."""
        graph = self.output.graph
        known = self._graphs.get(id(graph))
        if known is None:
            known = self._graphs[id(graph)] = _Seen(graph, len(self._graphs))
        nodes = graph.nodes
        if len(nodes) != known.count or next(iter(reversed(nodes)), None) is not known.last:
            added, gone = known.changes(nodes)
            when = len(self._frame_column)
            if added:
                self._nodes.append([when, step, known.number, added])
            if gone:
                self._gone.append([when, step, known.number, gone])
        guards = self.output.guards.inner
        known = self._known_guards
        if isinstance(guards, set):  # in torch 2.9 they have no order
            if len(guards) == known.count:
                return
            guards = dict.fromkeys(sorted(guards, key=lambda guard: (guard not in known.all, guard_text(guard))))
        if len(guards) != known.count or next(reversed(guards), None) is not known.last:
            added, gone = known.changes(guards)
            if gone:
                self._guards_gone.append([len(self._frame_column), step, gone])
            if added:
                self.add_guards(step, added)

    def add_guards(self, step: int, guards: list[Any]) -> None:
        """Guards of Dynamo, of which the text is made at the end; or texts."""
        self._guards.append([len(self._frame_column), step, guards])

    # --- the data -----------------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """As told in `irscope.symbolic.trace`."""
        rows = self._rows
        instructions = [
            rows.of(instruction, code) for instruction, code in zip(self._instructions, self._codes, strict=True)
        ]
        frames = [[rows.code(code)] for code in self._frame_codes]
        listings = self._listings_of(instructions)
        return {
            "version": VERSION,
            "attempt": self.attempt,
            "last": not self.restarts,
            "seconds": round(time.perf_counter() - self.began, 6),
            "codes": rows.codes,
            "instructions": instructions,
            "listings": listings,
            "frames": frames,
            "steps": {
                "frame": self._frame_column,
                "instruction": self._instruction_column,
                "caller": self._caller,
                "kept": self._kept,
                "pushes": self._pushes,
                "pushed": self._pushed,
            },
            "locals": self._locals,
            "nodes": [[*row, *(self._text(node.name) for node in nodes)] for *row, nodes in self._nodes],
            "gone": [[*row, *(self._text(node.name) for node in nodes)] for *row, nodes in self._gone],
            "guards": [[*row, *map(self._text, map(guard_text, guards))] for *row, guards in self._guards],
            "guards_gone": [[*row, *map(self._text, map(guard_text, guards))] for *row, guards in self._guards_gone],
            "outcomes": [
                [step, self._text(kind), self._text(text)] for step, (kind, text) in sorted(self.outcomes.items())
            ],
            "strings": [text_of(text) for text in self._strings],  # last: all of them are known now
        }

    def _listings_of(self, instructions: list[Any]) -> list[list[int]]:
        """The instructions of each code object by number; those that no step ran are added to the others."""
        rows = self._rows
        listings: list[list[int]] = [[] for _ in rows.codes]
        listed = dict(self._listings)
        for code in self._frame_codes:
            for instruction in listed.pop(id(code), ()):
                known = self._known.get(id(instruction))
                listings[rows.code(code)].append(len(instructions) if known is None else known[0])
                if known is None:
                    instructions.append(rows.of(instruction, code))
        return listings


class _Rows:
    """Instructions and code objects as rows; a recording is written twice, and most of its rows are the same then."""

    def __init__(self, text: Callable[[str], int]) -> None:
        self.codes: list[list[int]] = []
        self._text, self._columns = text, Columns()
        self._numbers: dict[int, int] = {}  # id of a code object → its row
        self._of: dict[int, list[int]] = {}  # id of an instruction, which the recording keeps alive → its row

    def code(self, code: Any) -> int:
        """The number of a code object."""
        number = self._numbers.get(id(code))
        if number is None:
            number = self._numbers[id(code)] = len(self.codes)
            self.codes.append([self._text(code.co_filename), self._text(code.co_name), code.co_firstlineno])
        return number

    def of(self, instruction: Any, code: Any) -> list[int]:
        """The row of an instruction."""
        row = self._of.get(id(instruction))
        if row is None:
            row = self._of[id(instruction)] = [
                self.code(code),
                -1 if instruction.offset is None else instruction.offset,
                self._text(instruction.opname),
                self._text(argument_of(instruction)),
                *self._columns.of(code.co_filename, instruction),
            ]
        return row


class _Seen:
    """The nodes of a graph, or the guards, as they were seen last.  The objects are kept: Dynamo changes nodes' names."""

    def __init__(self, of: Any = None, number: int = 0) -> None:
        self.number, self.count = number, 0
        self.last: Any = None
        self.all: dict[Any, None] = {}
        self._of = of  # kept, so that its id stays its own

    def changes(self, now: Any) -> tuple[list[Any], list[Any]]:
        """What was added, in order, and what was removed."""
        added: list[Any] = []
        for item in reversed(now):
            if item in self.all:
                break
            added.append(item)
        added.reverse()
        gone: list[Any] = []
        if len(added) + self.count != len(now):  # some went, or came in between (placeholders)
            current = dict.fromkeys(now)
            added = [item for item in current if item not in self.all]
            gone = [item for item in self.all if item not in current]
            for item in gone:
                del self.all[item]
        self.all.update(dict.fromkeys(added))
        self.count = len(now)
        self.last = next(iter(reversed(now)), None)
        return added, gone


def guard_text(guard: Any) -> str:
    """``TENSOR_MATCH L['x']``; what is a text already stays one."""
    if isinstance(guard, str):
        return guard
    return f"{guard.create_fn_name()} {guard.name}".rstrip()


def _break_text(message: str) -> str:
    """``GB0059 Unsupported context manager``: a graph break in one line; empty if the text is none."""
    parsed = parse_break_messages(message)
    return f"{parsed[0].code} {parsed[0].type}".strip() if parsed else ""
