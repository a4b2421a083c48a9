"""The memory of one step at its peak: which block is held, why, and the line and the module that made it.

A run's process notes each block that is allocated or freed in a step, with the Python calls around it
(`irscope.internals.allocations`), and what Python held when the step began.  A block of a compiled graph is allocated by
a line of the output code, which names the buffer; the run knows what that is for, and the path of what writes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from irscope.measures.compiled import module_parts
from irscope.measures.tree import NO_TREE, Measure, Path, PathPart, PathTree, tree_of
from irscope.profiling.buffer_places import GRADIENTS, BufferPlaces, Call
from irscope.profiling.memory_curve import Curve
from irscope.profiling.span_roles import Role as SpanRole
from irscope.profiling.span_roles import role_of_span
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.usercode.user_files import is_package_file, is_torch_file, is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import size
from irscope.vocabulary.visible import bounded

MEASURES = (Measure("at the peak", "bytes"), Measure("blocks", "count"))
EAGER, EAGER_BACKWARD, OPTIMIZER = "eager operators", "eager backward", "temporaries of the optimizer"
HELD, WORKSPACE, UNNAMED = "held from before the step", "workspaces of cuBLAS", "not known"
"""What no variable of Python is known to hold, such as what autograd keeps; what the allocator counts beyond all blocks."""
VARIABLES, INPUTS, ZEROS = "variables", "inputs", "zeros for outputs without a gradient"
PARAMETERS, BUFFERS, STATES = "parameters", "buffers of modules", "optimizer state"
OF_MODULES = (PARAMETERS, GRADIENTS, BUFFERS)
VIEW, GRAPHS, FLOAT32 = "a small view of it is used", "with the graph of its backward", "in float32"
"""Why a block is held though little of it is needed, or less would do."""
_MOST_ROWS, _MOST_BYTES = 400, 1 << 60


class WrongFacts(ValueError):
    """What a process noted is not what it should be."""


@dataclass(frozen=True)
class HeldBlock:
    """A block that is held at the peak, or several that Python holds under one name.

    Args:
        kind: What it is for.
        name: The buffer, parameter or variable; empty if it has none.
        module: The path of the module that made it; empty if that is not known.
        file, line: The innermost line that is not torch's; empty and 0 if that is not known.
        stage, code_line: The output code that allocated it, and the line there; empty and 0 if none did.
        count: How many blocks it is.
        why: ``VIEW``, ``GRAPHS``, or ``FLOAT32`` of a state of an optimizer; empty for most.
        first, last: The points of the curve between which it is held.
        free_beside: Bytes that are free in the allocator's segments where it is, divided among the blocks there: they
            cannot be given back to the device while it is held, nor be used for a larger block.
    """

    kind: str
    name: str
    bytes: int
    module: str = ""
    file: str = ""
    line: int = 0
    stage: str = ""
    code_line: int = 0
    count: int = 1
    why: str = ""
    first: int = 0
    last: int = 0
    free_beside: int = 0


@dataclass(frozen=True)
class StepMemory:
    """The memory of one step.

    Args:
        what: ``step`` of the script, or ``call`` of its programs after the script, without its optimizer.
        is_device: Whether it is the memory of the GPU; else the CPU's.
        begin_bytes, peak_bytes: In use when the step began, and at its peak.  On a CPU the blocks that are known, on a
            GPU what the allocator counts.
        reserved_bytes: What the allocator had from the device at the peak; None on a CPU, which has no such cache.
        peak_in: Where the peak is: ``forward of 0/0``, ``AdamW.step``.
        held: The largest blocks at the peak; the rest of each kind is one row without a name.
        curve: The part of the step's time that has passed, from 0 to 1, and the bytes in use then.
        by_kind, by_line: ``peak_bytes`` by kind and module, and by kind and call frames.
    """

    what: str
    is_device: bool
    begin_bytes: int
    peak_bytes: int
    reserved_bytes: int | None
    peak_in: str
    held: tuple[HeldBlock, ...]
    curve: tuple[tuple[float, int], ...]
    by_kind: PathTree = NO_TREE
    by_line: PathTree = NO_TREE

    @property
    def fragmented_bytes(self) -> int:
        """Bytes that are reserved and free at the peak, in segments that hold blocks."""
        return sum(one.free_beside for one in self.held)


def reserved_words(found: StepMemory) -> str:
    """What the allocator has from the device beside what is in use; empty on a CPU."""
    if found.reserved_bytes is None:
        return ""
    free = max(0, found.reserved_bytes - found.peak_bytes)
    fragmented = min(free, found.fragmented_bytes)
    return (
        f"{size(found.reserved_bytes)} are reserved from the device: {size(fragmented)} are free beside blocks that are "
        f"in use (fragmentation), {size(free - fragmented)} are cached and free."
    )


class _Block(NamedTuple):
    """A row of `irscope.internals.allocations.facts_of`."""

    time: int
    address: int
    bytes: int
    in_use: int
    reserved: int
    is_device: bool
    span: int


class _Span(NamedTuple):
    around: int
    name: str
    file: str
    line: int
    sequence: int | None


class _Held(NamedTuple):
    """What is held at the peak: of before the step, or a block of it; and what of its segment is free."""

    bytes: int
    kind: str
    name: str
    why: str = ""
    block: _Block | None = None
    free_beside: int = 0


def step_memory(facts: Any, store: Store, report: Report) -> StepMemory:
    """The memory of the step that a run's process noted.  Raises WrongFacts for anything else."""
    try:
        spans = [_Span(int(around), str(name)[:500], str(file)[:4096], int(line), _number(sequence))
                 for around, name, file, line, sequence in facts["spans"]]  # fmt: skip
        is_device = facts["is_device"] is True
        blocks = [block for block in (_block(row) for row in facts["blocks"]) if block.is_device == is_device]
        held = {int(address): _Held(int(size), str(kind)[:100], bounded(str(name), 200), str(why)[:100])
                for address, size, kind, name, why in facts["held"]}  # fmt: skip
        in_use, what = _number(facts["in_use"]), "step" if facts["what"] == "step" else "call"
        segments = sorted({int(address): int(size) for address, size in facts.get("segments", ())}.items())
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise WrongFacts(f"the memory of a step: {error!r}") from error
    if any(not -1 <= span.around < at for at, span in enumerate(spans)):
        raise WrongFacts("the memory of a step: a span is around itself")
    if any(not -1 <= block.span < len(spans) or abs(block.bytes) > _MOST_BYTES for block in blocks):
        raise WrongFacts("the memory of a step: a block has no span")
    step = _Step(blocks, held, in_use if is_device else None, _Spans(spans), BufferPlaces(store, report))
    return step.memory(what, is_device, segments)


def _block(row: Any) -> _Block:
    time, address, size, in_use, reserved, is_device, span = row
    return _Block(int(time), int(address), int(size), int(in_use), int(reserved), is_device is True, int(span))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


class _Step:
    """Replays the blocks of a step."""

    def __init__(
        self, blocks: list[_Block], held: dict[int, _Held], in_use: int | None, spans: _Spans, places: BufferPlaces
    ) -> None:
        self._blocks, self._spans, self._places = blocks, spans, places
        made: set[int] = set()
        for block in blocks:  # what is freed was allocated: here, or before, though Python did not know it
            if block.bytes > 0:
                made.add(block.address)
            elif block.address in made:
                made.discard(block.address)
            else:
                held.setdefault(block.address, _Held(-block.bytes, HELD, ""))
        self._held = held
        known = sum(one.bytes for one in held.values())
        self._begin = known if in_use is None else in_use
        self._peak, self._peak_bytes, self._curve = self._replayed()

    def _replayed(self) -> tuple[int, int, list[tuple[int, int]]]:
        """The number of the block with which the peak is reached, -1 for the begin; its bytes; and all bytes over time."""
        in_use = most = self._begin
        peak, curve = -1, [(self._blocks[0].time if self._blocks else 0, in_use)]
        for number, block in enumerate(self._blocks):
            in_use += block.bytes
            curve.append((block.time, in_use))
            if in_use > most:
                peak, most = number, in_use
        return peak, most, curve

    def memory(self, what: str, is_device: bool, segments: Sequence[tuple[int, int]]) -> StepMemory:
        """The memory of the step; `segments` are those of the allocator, by address."""
        live = dict(self._held)
        for block in self._blocks[: self._peak + 1]:
            if block.bytes > 0:
                live[block.address] = _Held(block.bytes, "", "", "", block)
            else:
                live.pop(block.address, None)
        peak = self._blocks[self._peak] if self._peak >= 0 else None
        curve = Curve(self._curve)
        rows = list(self._rows(_with_free(live, segments), peak, curve))
        if (unnamed := self._peak_bytes - sum(row.bytes for row, _, _ in rows)) > 0:
            rows.append((HeldBlock(UNNAMED, "", unnamed, last=len(curve.points) - 1), (), ()))
        return StepMemory(
            what, is_device, self._begin, self._peak_bytes,
            peak.reserved if peak is not None and is_device else None,
            self._spans.where(peak.span) if peak is not None else "the begin of the step",
            tuple(_largest([row for row, _, _ in rows])), tuple(curve.points),
            _tree(((row, modules) for row, modules, _ in rows)), _tree(((row, frames) for row, _, frames in rows)),
        )  # fmt: skip

    def _rows(
        self, live: Mapping[int, _Held], peak: _Block | None, curve: Curve
    ) -> Iterator[tuple[HeldBlock, Path, Path]]:
        """The rows of blocks that are held at the peak, with the points of the curve between which they are."""
        freed = {block.address: block.time for block in reversed(self._blocks[self._peak + 1 :]) if block.bytes < 0}
        at_peak = curve.piece(peak.time) if peak is not None else 0
        for address, one in live.items():
            row, modules, frames = self._row(one, peak)
            first = curve.piece(one.block.time) if one.block is not None else 0
            last = max(at_peak, curve.piece(freed[address]) - 1) if address in freed else len(curve.points) - 1
            yield replace(row, first=first, last=last, free_beside=one.free_beside), modules, frames

    def _row(self, one: _Held, peak: _Block | None) -> tuple[HeldBlock, Path, Path]:
        """A row for a block, with its modules and its frames."""
        if one.block is None:
            module = one.name.rpartition(".")[0] if one.kind in OF_MODULES else ""
            name = (PathPart(one.name),) if one.name else ()
            return HeldBlock(one.kind, one.name, one.bytes, module, why=one.why), (*module_parts(module), *name), name
        call = self._spans.call(one.block.span)
        if call is not None and (place := self._places.of(call, self._spans.call(peak.span) if peak else None)):
            row = HeldBlock(
                place.kind, place.buffer, one.bytes, place.module, *_innermost(place.frames), place.stage, call.line
            )
            return row, place.modules, place.frames
        kind, frames = self._spans.kind(one.block.span), self._spans.user_frames(one.block.span)
        return HeldBlock(kind, self._spans.operator(one.block.span), one.bytes, "", *_innermost(frames)), frames, frames


def _innermost(frames: Path) -> tuple[str, int]:
    return (frames[-1].file, frames[-1].line) if frames else ("", 0)


class _Spans:
    """What is around a block."""

    def __init__(self, spans: list[_Span]) -> None:
        self._spans = spans
        self._roles = [SpanRole.FUNCTION if span.file else role_of_span(span.name, "")[0] for span in spans]
        self._compiles = {
            span.sequence: compile
            for at, span in enumerate(spans)
            if self._roles[at] is SpanRole.FORWARD and (compile := self._region(at))
        }

    def _outward(self, at: int) -> Iterator[tuple[int, _Span]]:
        while at >= 0:
            yield at, self._spans[at]
            at = self._spans[at].around

    def _region(self, at: int) -> str:
        return next((role_of_span(span.name, "")[1] for number, span in self._outward(at) if self._roles[number] is SpanRole.REGION), "")  # fmt: skip

    def call(self, at: int) -> Call | None:
        """The line of output code around a block; None if it is not in a compiled graph."""
        line, is_inside, compile = 0, False, ""
        for number, span in self._outward(at):
            role = self._roles[number]
            if role is SpanRole.FUNCTION and not is_inside and not is_torch_file(span.file):
                line = line or span.line
            elif role is SpanRole.GRAPH:
                is_inside = True
            elif role is SpanRole.REGION:
                compile = role_of_span(span.name, "")[1]
                return Call(compile, False, line) if is_inside else None
            elif role is SpanRole.BACKWARD:
                return Call(self._compiles.get(span.sequence, ""), True, line) if is_inside else None
        return None

    def kind(self, at: int) -> str:
        """What a block outside of compiled graphs is for."""
        for number, span in self._outward(at):
            if span.name.startswith("Optimizer.step#"):
                return OPTIMIZER
            if (
                self._roles[number] is SpanRole.BACKWARD
            ):  # around its compiled graph: PyTorch fills in what has no gradient
                return ZEROS
            if self._roles[number] is SpanRole.ENGINE:
                return GRADIENTS if "AccumulateGrad" in span.name else EAGER_BACKWARD
        return EAGER

    def operator(self, at: int) -> str:
        """The outermost operator around a block; empty if there is none."""
        return next((span.name for _, span in self._outward(at) if span.name.startswith("aten::")), "")

    def user_frames(self, at: int) -> Path:
        """The calls around it that are not torch's, outermost first."""
        frames = [
            PathPart(f"{span.file.rpartition('/')[2]}:{span.line}", span.name, span.file, span.line)
            for number, span in self._outward(at)
            if self._roles[number] is SpanRole.FUNCTION and (is_user_file(span.file) or is_package_file(span.file))
        ]
        return tuple(reversed(frames))

    def where(self, at: int) -> str:
        """Where in the step a block is allocated."""
        if (call := self.call(at)) is not None:
            return f"{'backward' if call.is_backward else 'forward'} of {call.compile or 'a graph'}"
        name = next((span.name for _, span in self._outward(at) if span.name.startswith("Optimizer.step#")), "")
        return name.removeprefix("Optimizer.step#") or self.kind(at)


def _with_free(live: dict[int, _Held], segments: Sequence[tuple[int, int]]) -> dict[int, _Held]:
    """The blocks with what is free beside them in their segments, divided among the blocks of each."""
    starts = [address for address, _ in segments]
    inside = defaultdict[int, list[int]](list)
    for address in live:
        number = bisect_right(starts, address) - 1
        if number >= 0 and address < starts[number] + segments[number][1]:
            inside[number].append(address)
    for number, addresses in inside.items():
        free = max(0, segments[number][1] - sum(live[address].bytes for address in addresses))
        for at, address in enumerate(addresses):
            live[address] = live[address]._replace(free_beside=free * (at + 1) // len(addresses) - free * at // len(addresses))  # fmt: skip
    return live


def _largest(rows: Sequence[HeldBlock]) -> Iterator[HeldBlock]:
    """The largest rows, those that Python holds under one name as one; what is left of each kind as one."""
    merged: dict[tuple[Any, ...], HeldBlock] = {}
    for row in rows:
        key = (
            row.kind,
            row.name,
            row.module,
            row.file,
            row.line,
            row.stage,
            row.code_line,
            row.why,
            row.first,
            row.last,
        )
        known = merged.get(key)
        merged[key] = row if known is None else _together(known, row)
    largest = sorted(merged.values(), key=lambda row: -row.bytes)
    yield from largest[:_MOST_ROWS]
    rest: dict[str, HeldBlock] = {}
    for row in largest[_MOST_ROWS:]:
        known = rest.get(row.kind)
        nameless = HeldBlock(row.kind, "", row.bytes, count=row.count, first=row.first, last=row.last, free_beside=row.free_beside)  # fmt: skip
        rest[row.kind] = nameless if known is None else _together(known, nameless)
    yield from sorted(rest.values(), key=lambda row: -row.bytes)


def _together(one: HeldBlock, other: HeldBlock) -> HeldBlock:
    return replace(
        one, bytes=one.bytes + other.bytes, count=one.count + other.count, first=min(one.first, other.first),
        last=max(one.last, other.last), free_beside=one.free_beside + other.free_beside,
    )  # fmt: skip


def _tree(rows: Iterator[tuple[HeldBlock, Path]]) -> PathTree:
    values: dict[Path, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row, path in rows:
        inside: Path = (PathPart(row.kind), *path)
        value = values[inside]
        value[0] += row.bytes
        value[1] += row.count
    return tree_of("at the peak", MEASURES, values)
