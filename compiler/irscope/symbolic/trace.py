"""The symbolic trace of a compile: Dynamo's walk over the user's instructions, to be stepped through both ways.

The data of a stage ``symbolic-trace`` is one attempt of one compile, as `events.symbolic` recorded it:

``version``      1
``attempt``      which attempt it was; ``last`` tells whether Dynamo restarted after it (then it is false).
``strings``      every text, once; what follows names texts by their index here.
``codes``        ``[file, function, first line]`` of each code object.
``instructions`` ``[code, offset, operation, argument, line, end line, column, end column]``: each instruction of the
                 functions that were entered, once.  Lines are 1-based, columns index the line as a Python string, -1
                 if Dynamo's own instruction has no place in the user's file.
``listings``     for each code object its instructions in order, by their index; may be missing (older traces, which
                 only have those that were walked over).
``frames``       ``[code]`` of each function that was entered: the compiled one, then each inlined call.
``steps``        columns with one entry a step, in the order in which the steps began: ``frame``; ``instruction``;
                 ``caller``, the step that this one runs inside of (an inlined call), -1 in the compiled function;
                 ``kept`` and ``pushes``: the symbolic stack before this step has the bottom ``kept`` items of what it
                 was before the frame's step before, and above them the next ``pushes`` texts of ``pushed``, which has
                 those of all steps one after the other.
``locals``       ``[step, name, text, name, text, …]`` for the steps before which locals of the frame had changed
                 since the frame's step before; text -1: the name is gone.
``nodes``        ``[when, step, graph, name, …]``: nodes that ``step`` added to the graph, at a time when ``when`` steps
                 had begun (those it had called among them); step -1: before the first.  Graph 0 is the compile's own, others are the bodies of
                 higher-order operators.  ``gone`` is the same for nodes that were removed.
``guards``       ``[when, step, text, …]``, likewise; ``guards_gone`` are those that Dynamo took back.
``outcomes``     ``[step, kind, text]`` for the steps that ended out of the ordinary: see `Outcome`.
``seconds``      how long the attempt took, what it compiled included.

The standard library is all that is needed to read it; no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from irscope.protocol import Position, Range
from irscope.symbolic.data import Events, check_numbers, without
from irscope.symbolic.states import FrameStates
from irscope.vocabulary.records import dataclass

VERSION = 1


@dataclass(frozen=True)
class Outcome:
    """How a step ended, if it was not simply followed by the next.

    ``kind`` is ``graph-break`` (Dynamo cannot trace this instruction; the graph ends before it), ``restart`` (it gives
    up this attempt and restarts), ``compiled`` (the function's end was reached), ``exception`` (an exception of the
    user's code leaves the frame), ``error``.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Step:
    """One instruction that Dynamo walked over."""

    index: int
    frame: int
    depth: int
    """0 in the compiled function, 1 in what it calls, …"""
    caller: int | None
    """The step that called this function."""
    file: str
    function: str
    offset: int
    """The offset of the instruction, in bytes; -1 for one that Dynamo made."""
    operation: str
    argument: str
    range: Range | None
    nodes: tuple[str, ...]
    """Nodes that it added to the graph, without those of the steps inside it."""
    guards: tuple[str, ...]
    outcome: Outcome | None


@dataclass(frozen=True)
class Frame:
    """A function on Dynamo's stack, as it was when it began the instruction that it is in."""

    step: int
    file: str
    function: str
    range: Range | None
    stack: tuple[str, ...]
    """The symbolic stack, the top last."""
    locals: dict[str, str]


@dataclass(frozen=True)
class Instruction:
    """One instruction of a function, whether or not it was walked over."""

    offset: int
    """In bytes; -1 for one that Dynamo made."""
    operation: str
    argument: str
    range: Range | None


@dataclass(frozen=True)
class State:
    """What was known when a step began."""

    frames: tuple[Frame, ...]
    """The innermost first."""
    nodes: tuple[str, ...]
    """The names in the graph so far; those of a higher-order operator's body are ``1:name``."""
    guards: tuple[str, ...]


class Walk:
    """One attempt, read.

    Args:
        data: A stage's data; raises ValueError if it is of another version or inconsistent.
    """

    def __init__(self, data: Any) -> None:
        if not isinstance(data, dict) or data.get("version") != VERSION:
            raise ValueError("not a symbolic trace that this irscope can read")
        try:
            self._read(data)
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"an inconsistent symbolic trace: {error!r}") from error

    def _read(self, data: dict[str, Any]) -> None:
        self.attempt: int = data["attempt"]
        self.last: bool = data["last"]
        self.seconds: float = data["seconds"]
        self._strings: list[str] = data["strings"]
        self._codes: list[Sequence[int]] = data["codes"]
        self._instructions: list[Sequence[int]] = data["instructions"]
        self._frame_codes: list[int] = [frame[0] for frame in data["frames"]]
        steps = data["steps"]
        self._frame: list[int] = steps["frame"]
        self._instruction: list[int] = steps["instruction"]
        self._caller: list[int] = steps["caller"]
        kept: list[int] = steps["kept"]
        pushed: list[int] = steps["pushed"]
        push_at = [0, *accumulate(steps["pushes"])]
        count = len(self._frame)
        if any(len(column) != count for column in (self._instruction, self._caller, kept, steps["pushes"])):
            raise LookupError("columns of different lengths")
        if push_at[-1] != len(pushed):
            raise LookupError("the number of pushed texts is wrong")
        self._listings: list[Sequence[int]] = data.get("listings") or []
        check_numbers(data)
        locals: dict[int, Sequence[int]] = {row[0]: row[1:] for row in data["locals"]}
        self._nodes, self._gone = self._node_events(data["nodes"]), self._node_events(data["gone"])
        self._guards, self._guards_gone = self._guard_events(data["guards"]), self._guard_events(data["guards_gone"])
        self._outcomes = {
            step: Outcome(self._strings[kind], self._strings[text]) for step, kind, text in data["outcomes"]
        }
        self._depth: list[int] = []
        self._of_frame: dict[int, list[int]] = {}
        for index in range(count):
            caller = self._caller[index]
            if not -1 <= caller < index:
                raise LookupError(f"step {index} is called by {caller}")
            self._depth.append(0 if caller < 0 else self._depth[caller] + 1)
            self._of_frame.setdefault(self._frame[index], []).append(index)
        self._states = FrameStates(kept, pushed, push_at, locals, self._of_frame)
        self._at_line: dict[tuple[str, int], list[int]] = {}
        self._tops: list[int] | None = None

    def _node_events(self, rows: list[list[int]]) -> Events:
        return Events([[row[0], row[1], [self._name(row[2], name) for name in row[3:]]] for row in rows])

    def _guard_events(self, rows: list[list[int]]) -> Events:
        return Events([[row[0], row[1], [self._strings[text] for text in row[2:]]] for row in rows])

    def _name(self, graph: int, name: int) -> str:
        return f"{graph}:{self._strings[name]}" if graph else self._strings[name]

    def __len__(self) -> int:
        return len(self._frame)

    # --- what a step is -----------------------------------------------------------------------------------------------

    def step(self, index: int) -> Step:
        """Raises IndexError for an unknown step."""
        self._check(index)
        code, offset, operation, argument, *_ = self._instructions[self._instruction[index]]
        file, function, _ = self._codes[code]
        caller = self._caller[index]
        return Step(
            index,
            self._frame[index],
            self._depth[index],
            None if caller < 0 else caller,
            self._strings[file],
            self._strings[function],
            offset,
            self._strings[operation],
            self._strings[argument],
            self._range(index),
            self._nodes.of(index),
            self._guards.of(index),
            self._outcomes.get(index),
        )

    def _range(self, index: int) -> Range | None:
        return _range(*self._instructions[self._instruction[index]][4:8])

    def __iter__(self) -> Iterator[Step]:
        return (self.step(index) for index in range(len(self)))

    # --- the state ----------------------------------------------------------------------------------------------------

    def state(self, index: int) -> State:
        """What was known before step ``index`` ran.  Raises IndexError for an unknown step."""
        self._check(index)
        frames = []
        at = index
        while at >= 0:
            frames.append(self.frame(at))
            at = self._caller[at]
        return State(tuple(frames), self.nodes(index), self.guards(index))

    def frame(self, index: int) -> Frame:
        """The frame that step ``index`` belongs to, before it ran.  Raises IndexError for an unknown step."""
        self._check(index)
        file, function = self.place_of(index)
        stack, locals = self._states.before(self._frame[index], index)
        return Frame(
            index,
            file,
            function,
            self._range(index),
            tuple(self._strings[text] for text in stack),
            {self._strings[name]: self._strings[text] for name, text in locals.items()},
        )

    def nodes(self, index: int) -> tuple[str, ...]:
        """The nodes of the graph before step ``index``."""
        return without(self._nodes.until(index), self._gone.until(index))

    def guards(self, index: int) -> tuple[str, ...]:
        """The guards before step ``index``, those on shapes as ``SHAPE_ENV s77 <= 4096``."""
        return without(self._guards.until(index), self._guards_gone.until(index))

    # --- single columns, for who goes through all of them ---------------------------------------------------------------

    @property
    def depths(self) -> Sequence[int]:
        """How many inlined calls each step is in, by step; 0 for the compiled function."""
        return self._depth

    def frame_of(self, index: int) -> int:
        """The number of the frame that a step is in."""
        return self._frame[index]

    def place_of(self, index: int) -> tuple[str, str]:
        """The file and the function of a step."""
        file, function, _ = self._codes[self._instructions[self._instruction[index]][0]]
        return self._strings[file], self._strings[function]

    def instruction_texts(self, index: int) -> tuple[str, str]:
        """``12:8`` and ``LOAD_FAST x``."""
        _, _, operation, argument, line, _, column, _ = self._instructions[self._instruction[index]]
        where = f"{line}:{column}" if column >= 0 else str(line) if line >= 1 else "-"
        return where, f"{self._strings[operation]} {self._strings[argument]}".rstrip()

    def code_of(self, index: int) -> int:
        """The number of the code object that a step runs."""
        return self._instructions[self._instruction[index]][0]

    def frame_steps(self, index: int) -> Sequence[int]:
        """All steps of the frame that step ``index`` belongs to, in order."""
        return self._of_frame[self._frame[index]]

    def lines_walked(self) -> set[tuple[str, int]]:
        """Files and lines that instructions of this walk are in."""
        strings, codes = self._strings, self._codes
        rows = [self._instructions[number] for number in set(self._instruction)]
        return {(strings[codes[row[0]][0]], row[4]) for row in rows if row[4] > 0}

    def codes(self) -> list[tuple[str, str, int]]:
        """File, function and first line of each code object."""
        return [(self._strings[file], self._strings[function], line) for file, function, line in self._codes]

    def listing(self, code: int) -> Sequence[Instruction]:
        """The instructions of a code object in order, those too that were not walked over where the trace has them."""
        rows = self._listings[code] if code < len(self._listings) else self._walked_rows(code)
        return [self._instruction_at(row) for row in rows]

    def _walked_rows(self, code: int) -> list[int]:
        rows = {row for row in self._instruction if self._instructions[row][0] == code}
        return sorted(rows, key=lambda row: (self._instructions[row][1], row))

    def _instruction_at(self, row: int) -> Instruction:
        _, offset, operation, argument, *place = self._instructions[row]
        return Instruction(offset, self._strings[operation], self._strings[argument], _range(*place))

    def instruction(self, index: int) -> Instruction:
        """The instruction of a step."""
        return self._instruction_at(self._instruction[index])

    def brought(self, index: int) -> tuple[tuple[str, ...], tuple[str, ...], Outcome | None]:
        """The nodes and the guards that a step added, and how it ended."""
        return self._nodes.of(index), self._guards.of(index), self._outcomes.get(index)

    def top_after(self, index: int) -> str:
        """The top of the frame's stack when its next step begins; empty if there is none."""
        if self._tops is None:
            self._tops = self._states.tops()
        text = self._tops[index]
        return "" if text < 0 else self._strings[text]

    # --- ways to go ---------------------------------------------------------------------------------------------------

    def over(self, index: int) -> int | None:
        """The next step that is not inside this one; None at the end."""
        depth = self._depth[index]
        return next((at for at in range(index + 1, len(self)) if self._depth[at] <= depth), None)

    def back_over(self, index: int) -> int | None:
        """The step before, that is not inside another one of the same function; the caller at a function's beginning."""
        depth = self._depth[index]
        return next((at for at in range(index - 1, -1, -1) if self._depth[at] <= depth), None)

    def out(self, index: int) -> int | None:
        """The next step of a caller."""
        depth = self._depth[index]
        return next((at for at in range(index + 1, len(self)) if self._depth[at] < depth), None)

    def caller(self, index: int) -> int | None:
        """The step that this one is inside of."""
        self._check(index)
        return self._caller[index] if self._caller[index] >= 0 else None

    def at_line(self, file: str, line: int) -> list[int]:
        """The steps whose instruction begins in a line of a file, in order."""
        if not self._at_line:
            for index, instruction in enumerate(self._instruction):
                code, *_, first, _, _, _ = self._instructions[instruction]
                self._at_line.setdefault((self._strings[self._codes[code][0]], first), []).append(index)
        return self._at_line.get((file, line), [])

    def by_node(self, name: str) -> int | None:
        """The step that added a node of the compile's graph."""
        return self._nodes.owner(name)

    def outcomes(self) -> list[tuple[int, Outcome]]:
        """The steps that ended out of the ordinary, in order."""
        return sorted(self._outcomes.items(), key=lambda item: item[0])

    def _check(self, index: int) -> None:
        if not 0 <= index < len(self):
            raise IndexError(f"step {index} is out of range: the trace has {len(self)}")


def _range(line: int, end_line: int, column: int, end_column: int) -> Range | None:
    if line < 1:
        return None
    return Range(Position(line, max(column, 0)), Position(max(end_line, line), max(end_column, 0)))
