"""A trace as steps, in which every moment belongs to one thing.

PyTorch's own spans say what runs: the region of a compile, the look at its guards, the call of a compiled graph, and in
it kernels and library calls.  Spans of one thread are nested; what a span does not leave to spans inside it is its own.
"""

from __future__ import annotations

import bisect
import enum
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from irscope.ir.kineto import Event
from irscope.profiling.span_roles import Role, role_of_span

STEP = "irscope::step"
"""What a span of `irscope profile` around one call of a program is named, with the number of the program after it."""
_FOREIGN_STEP = "ProfilerStep#"
DEVICE = frozenset(["kernel", "gpu_memcpy", "gpu_memset"])
HOST = frozenset(["cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function"])
OVERHEAD = "overhead"
"""What the profiler does for itself."""
_RUNTIME = frozenset(["cuda_runtime", "cuda_driver"])


class Kind(str, enum.Enum):
    """The owner of the time."""

    KERNEL = "kernel"
    """A kernel or a library call of a compiled graph."""
    EAGER = "eager operator"
    """An operator outside of compiled graphs, as at a graph break."""
    GUARDS = "guards"
    """The search for compiled code whose guards hold."""
    WRAPPER = "generated wrapper"
    """The generated code around the kernels of a graph: it allocates, and calls them."""
    RUNTIME = "graph runtime"
    """PyTorch's code around a compiled graph: AOTAutograd's prologue, and what keeps values for the backward."""
    PYTHON = "python"
    """Python in a compiled function, between its graphs."""
    AUTOGRAD = "autograd"
    """The engine of the backward, and the accumulation of gradients."""
    OUTSIDE = "outside"
    """Around the compiled functions: the caller and ``torch.compile``'s own entry."""
    LAUNCH = "launch"
    """The host, while no kernel runs on the device."""
    WAITING = "waiting"
    """The host waits for the device."""
    COPY = "copy"
    """Copies between host and device."""
    PROFILER = "profiler"
    """The profiler itself, which asks for memory in the middle of a step."""


class Around(NamedTuple):
    """What is around a moment: the program of the step, the compile, and whether a backward."""

    step: int = 0
    program: int = 0
    compile: str = ""
    backward: bool = False
    graph: int = 0
    """Which call of a compiled graph it is in, counted over the trace; 0: in none."""
    autograd: bool = False
    place: str = ""
    """The Python function, where the trace has them."""


@dataclass(slots=True)
class Segment:
    """A piece of a step, in seconds of the trace's clock."""

    start: float
    end: float
    kind: Kind
    name: str
    around: Around
    device: float | None = None
    """Seconds on the device, for what was launched there."""
    device_start: float = 0.0
    """When it began there."""
    file: str = ""
    """The file of the kernel, where the trace has it."""
    spans: float = 0.0
    """How many spans the profiler wrote in it: what it does for one takes time in what is around."""

    @property
    def seconds(self) -> float:
        """What it took: on the device if it ran there."""
        return self.end - self.start if self.device is None else self.device


@dataclass
class Timeline:
    """All steps of a trace."""

    steps: list[tuple[int, float]] = field(default_factory=list)
    """The number of its program, and the seconds, for each step."""
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When each step was."""
    segments: list[Segment] = field(default_factory=list)
    has_device: bool = False
    busy: list[tuple[float, float]] = field(default_factory=list)
    """When the device worked, without overlaps."""
    overhead: list[tuple[float, float]] = field(default_factory=list)
    """When the profiler did something for itself."""
    graphs_recorded: int = 0
    graphs_replayed: int = 0


@dataclass(slots=True)
class _Span:
    event: Event
    end: float
    inside: list[_Span] = field(default_factory=list)


def is_step(name: str) -> bool:
    """Whether a span of that name is a step."""
    return _program(name) is not None


def timeline(
    events: Iterable[Event],
    fastest: int | None = None,
    busy: list[tuple[float, float]] | None = None,
    begin: float | None = None,
    has_device: bool = False,
) -> Timeline:
    """The steps of a trace; a trace without steps is one step.

    Args:
        fastest: At most this many steps of a program are taken: what else the machine does makes the others slower.
            None: all.
        busy: When the device worked, if that is known better than from the events.
        begin: When a trace without steps begins, if not with its first event.
        has_device: Whether the trace has a device though these events have none of it.
    """
    threads: dict[tuple[str, str], list[Event]] = defaultdict(list)
    device: list[Event] = []
    overhead: list[Event] = []
    found = Timeline()
    recorded, replayed = list[float](), list[float]()
    for event in events:
        if event.category in DEVICE:
            device.append(event)
        elif event.category == OVERHEAD:
            overhead.append(event)
        elif event.category in HOST:
            threads[event.thread].append(event)
            if event.name.startswith("cudaStreamBeginCapture"):
                recorded.append(event.start)
            elif event.name.startswith("cudaGraphLaunch"):
                replayed.append(event.start)
    launched: dict[Any, list[Event]] = defaultdict(list)
    for event in device:
        launched[_id(event)].append(event)
    found.busy = merged(map(_span_of, device)) if busy is None else busy
    found.has_device, found.overhead = bool(device) or has_device, merged(map(_span_of, overhead))
    _Walk(found, launched, fastest, begin).over([_nested(each) for each in threads.values()])
    found.graphs_recorded, found.graphs_replayed = _inside(recorded, found.spans), _inside(replayed, found.spans)
    return found


def _inside(starts: list[float], spans: list[tuple[float, float]]) -> int:
    """How many are in one of the spans."""
    starts.sort()
    return sum(bisect.bisect_left(starts, end) - bisect.bisect_left(starts, start) for start, end in spans)


def _id(event: Event) -> Any:
    """What a kernel and its launch have in common; an operator has its launches inside."""
    get = event.args.get
    if isinstance(id := get("correlation"), (int, str)):
        return id
    return (id,) if isinstance(id := get("External id"), (int, str)) else None


def _span_of(event: Event) -> tuple[float, float]:
    return event.start, event.start + event.seconds


def _nested(events: list[Event]) -> list[_Span]:
    # If several begin at once, the longest is around the others.
    events.sort(key=operator.attrgetter("seconds"), reverse=True)
    events.sort(key=operator.attrgetter("start"))
    outer: list[_Span] = []
    open_: list[_Span] = []
    for event in events:
        while open_ and open_[-1].end <= event.start:
            open_.pop()
        end = event.start + event.seconds
        span = _Span(event, min(end, open_[-1].end) if open_ else end)
        (open_[-1].inside if open_ else outer).append(span)
        open_.append(span)
    return outer


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The intervals in which one of the spans goes on."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


class _Walk:
    """Down the spans of all threads."""

    def __init__(
        self, found: Timeline, launched: dict[Any, list[Event]], fastest: int | None, begin: float | None
    ) -> None:
        self._fastest, self._begin = fastest, begin
        self._found, self._launched = found, launched
        self._graphs = 0
        self._compile_of: dict[Any, str] = {}
        """The compile of a forward by the sequence number that autograd gives it and its backward."""

    def over(self, threads: list[list[_Span]]) -> None:
        steps = [span for spans in threads for span in spans if _program(span.event.name) is not None]
        if not steps:  # from elsewhere: each thread that calls operators
            steps = [_whole(spans, self._begin) for spans in threads if spans]
        else:
            _take_in(steps, [span for spans in threads for span in spans if _program(span.event.name) is None])
            steps = _fastest_of(steps, self._fastest)
        for number, step in enumerate(sorted(steps, key=lambda span: span.event.start)):
            program = _program(step.event.name) or 0
            self._found.steps.append((program, step.end - step.event.start))
            self._found.spans.append((step.event.start, step.end))
            self._down(step, Around(step=number, program=program))

    def _down(self, step: _Span, around: Around) -> None:
        segments = self._found.segments
        todo = [(step, around, Kind.OUTSIDE)]
        while todo:
            span, here, kind = todo.pop()
            if kind is Kind.KERNEL or kind is Kind.EAGER or kind is Kind.GUARDS or kind is Kind.COPY:
                self._whole(span, here, kind)
                continue
            start, name = span.event.start, span.event.name
            if not span.inside:
                if span.end > start:
                    segments.append(Segment(start, span.end, kind, name, here))
                continue
            segments += [Segment(start, end, kind, name, here, spans=spans) for start, end, spans in _own(span)]
            # The last one is taken first: a forward must be seen before its backward, and graphs in their order.
            todo += [self._inside(span, number, here, kind) for number in reversed(range(len(span.inside)))]

    def _whole(self, span: _Span, here: Around, kind: Kind) -> None:
        event = span.event
        if event.name.startswith("cudaGraphLaunch"):
            self._replay(span, here)
            return
        segment = Segment(event.start, span.end, kind, event.name, here, file=str(event.args.get("kernel_file", "")))
        spans = list(_all(span)) if span.inside else [span]
        segment.spans = len(spans) - 1
        if self._found.has_device and kind is not Kind.GUARDS:
            mine = [one for each in spans for one in self._launched.pop(_id(each.event), ())]
            if mine:
                segment.device = sum(one.seconds for one in mine)
                segment.device_start = min(one.start for one in mine)
                segment.name = mine[0].name if event.category != "cpu_op" else event.name
        self._found.segments.append(segment)

    def _replay(self, span: _Span, here: Around) -> None:
        """A CUDA graph that is replayed: all of its kernels have one launch."""
        start, event = span.event.start, span.event
        for one in sorted(self._launched.pop(_id(event), ()), key=lambda one: one.start):
            self._found.segments.append(Segment(start, span.end, Kind.KERNEL, one.name, here, one.seconds, one.start))
            start = span.end
        if start != span.end:
            self._found.segments.append(Segment(start, span.end, Kind.LAUNCH, event.name, here))

    def _inside(self, parent: _Span, number: int, here: Around, kind: Kind) -> tuple[_Span, Around, Kind]:
        """A span in another one, with what is around it, and whose time its own is."""
        span = parent.inside[number]
        event = span.event
        role, compile = role_of_span(event.name, event.category)
        if role is Role.REGION:
            return span, here._replace(compile=compile, graph=0), Kind.PYTHON
        if role is Role.LOOKUP:
            after = (role_of_span(each.event.name, each.event.category) for each in parent.inside[number + 1 :])
            compile = next((compile for role, compile in after if role is Role.REGION), here.compile)
            return span, here._replace(compile=compile), Kind.GUARDS
        if role is Role.FORWARD:
            self._compile_of[event.args.get("Sequence number")] = here.compile
            return span, here, Kind.RUNTIME
        if role is Role.BACKWARD:
            compile = self._compile_of.get(event.args.get("Sequence number"), "")
            return span, here._replace(compile=compile, backward=True, autograd=False), Kind.RUNTIME
        if role is Role.GRAPH:
            self._graphs += 1
            return span, here._replace(graph=self._graphs), Kind.WRAPPER
        if role is Role.WAITING:
            return span, here, Kind.WAITING
        if role is Role.FUNCTION:
            return span, here._replace(place=event.name), kind
        if role is Role.ENGINE and not here.graph:
            return span, here._replace(autograd=True), Kind.AUTOGRAD
        return span, here, self._kind_of(event, role, here, kind)

    def _kind_of(self, event: Event, role: Role, here: Around, kind: Kind) -> Kind:
        """The owner of the time of a span that does not change what is around the spans in it."""
        if here.graph and event.category in _RUNTIME and _id(event) not in self._launched:
            return Kind.LAUNCH
        if here.graph or role is Role.CPP_KERNEL:
            return Kind.KERNEL
        if role is Role.RUNTIME:
            return Kind.RUNTIME
        if event.category in _RUNTIME:
            return Kind.COPY if "emcpy" in event.name else Kind.LAUNCH
        if role is Role.MARK:
            return kind
        if here.autograd:
            return Kind.AUTOGRAD
        return Kind.RUNTIME if kind is Kind.RUNTIME else Kind.EAGER


def _take_in(steps: list[_Span], others: list[_Span]) -> None:
    """Puts what other threads did into the steps in which it was: a backward on a GPU runs in a separate thread, for which
    the step waits.  What goes on beside a step's own spans is left out, since a moment belongs to one thing."""
    steps.sort(key=lambda span: span.event.start)
    others.sort(key=lambda span: span.event.start)
    at = 0
    for step in steps:
        while at < len(others) and others[at].event.start < step.event.start:
            at += 1
        mine = step.inside
        while at < len(others) and others[at].event.start < step.end:
            mine.append(others[at])
            at += 1
        mine.sort(key=lambda span: span.event.start)
        kept: list[_Span] = []
        for span in mine:
            if (not kept or kept[-1].end <= span.event.start) and span.end <= step.end:
                kept.append(span)
        step.inside = kept


def _fastest_of(steps: list[_Span], most: int | None) -> list[_Span]:
    """This many steps of each program."""
    if most is None:
        return steps
    by_program: dict[int | None, list[_Span]] = defaultdict(list)
    for step in steps:
        by_program[_program(step.event.name)].append(step)
    return [
        step
        for each in by_program.values()
        for step in sorted(each, key=lambda span: span.end - span.event.start)[:most]
    ]


def _program(name: str) -> int | None:
    if name.startswith(_FOREIGN_STEP):
        return 0
    number = name.removeprefix(STEP + ":")
    return int(number) if number != name and number.isdecimal() and len(number) < 9 else None


def _whole(spans: list[_Span], begin: float | None) -> _Span:
    start, end = spans[0].event.start if begin is None else begin, max(span.end for span in spans)
    return _Span(Event("trace", "user_annotation", start, end - start, spans[0].event.thread, {}), end, spans)


def _own(span: _Span) -> Iterator[tuple[float, float, float]]:
    """The pieces of a span that are in no span inside it, and how many spans begin or end at them, each of these a half."""
    at, ends = span.event.start, 0.0
    for each in span.inside:
        if each.event.start > at:
            yield at, each.event.start, ends + 0.5
            ends = 0.0
        at, ends = max(at, each.end), ends + 0.5
    if span.end > at:
        yield at, span.end, ends


def _all(span: _Span) -> Iterator[_Span]:
    todo = [span]
    while todo:
        one = todo.pop()
        yield one
        todo += one.inside
