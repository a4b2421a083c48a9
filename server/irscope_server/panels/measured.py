"""``irscope/measured``: measured time of a step by line, by kernel and by what is between kernels, and one step as a picture."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

from irscope.measures.tree import chained, folded
from irscope.profiling.changes import stored_profile
from irscope.profiling.compared_words import elsewhere_words, program_words, region_words
from irscope.profiling.profile import CudaGraphs, MeasuredKernel, MeasuredLine, MeasuredProgram, Profile, StepPiece
from irscope.protocol import Report
from irscope.store.store import Store

from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.panels.answers import answer, place_uri, profiled_run
from irscope_server.panels.trees import MeasureTree, tree_answer
from irscope_server.stages.tree import UriOf

_MOST_ROWS = 500
"""Lines, kernels and gaps in an answer, of each."""
_PLACE = re.compile(r"(?P<file>.+\.\w+(?:#cell-\d+)?):(?P<line>\d+)\Z")


@dataclass(frozen=True)
class MeasuredParams:
    """A run; the profile is its own, else the newest one of its script."""

    run: str


@dataclass(frozen=True)
class LineTime:
    """A line with the time of all kernels that came from it; `possible` is the least that they can take."""

    place: Place
    seconds: float
    shared: float
    """The part of the seconds in kernels that came from other lines, too."""
    possible: float | None
    refuted: bool
    """Whether they took less than the device needs by its peaks; `possible` is what they took then."""
    bound: str
    """What bounds most of it, `memory` or `compute`; empty if that is not known."""
    calls: float
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class KernelTime:
    """A kernel, or the calls of one library function in one graph."""

    name: str
    uri: str
    """The address of the output code that calls it; empty if it is not known."""
    seconds: float
    possible: float | None
    refuted: bool
    bound: str
    calls: float
    bytes: float | None
    flops: float | None
    places: tuple[Place, ...]


@dataclass(frozen=True)
class GapTime:
    """Time of a step in which no kernel of a compiled graph ran; its place has an empty URI if it is none of the user's."""

    kind: str
    seconds: float
    place: Place
    where: str
    """What is known in place of a place."""


@dataclass(frozen=True)
class ProgramTime:
    """A compiled program, or one of its graphs between breaks: how it compares to the same without compile."""

    function: str
    place: Place
    words: str
    elsewhere: tuple[str, ...] = ()
    """A sentence about a graph for each other pipeline through which it was timed."""


StepRow = tuple[int, float, float, int, int, int, int, int]


@dataclass(frozen=True)
class SkippedCudaGraph:
    """Why a compiled function runs without a CUDA graph."""

    why: str
    place: Place


@dataclass(frozen=True)
class CudaGraphAgain:
    """A CUDA graph that was recorded again, how often, and why."""

    compile: str
    why: str
    count: int


@dataclass(frozen=True)
class CudaGraphPool:
    """A memory pool of CUDA graphs: bytes that it holds, and of these those in use."""

    pool: str
    bytes: int
    used: int


@dataclass(frozen=True)
class CudaGraphTimes:
    """What a step did with CUDA graphs.  It is recorded in the steady state only if it is recorded again and again."""

    recorded: float
    replayed: float
    skipped: tuple[SkippedCudaGraph, ...]
    recordings: int
    """Before the steps were measured."""
    again: tuple[CudaGraphAgain, ...]
    pools: tuple[CudaGraphPool, ...]


@dataclass(frozen=True)
class StepCost:
    """What a graph break, or that a function was compiled several times, takes in a step."""

    what: str
    """`graph-break` or `recompilation`."""
    name: str
    """The name of the function; for a break its code."""
    words: str
    place: Place


@dataclass(frozen=True)
class LeftOut:
    """How many of each are not in the answer: those with least time."""

    lines: int
    kernels: int
    gaps: int


@dataclass(frozen=True)
class MeasuredResult:
    """A profile; without one `reason` says what to do.  All times are seconds of one step."""

    run: str
    step: float
    device: float
    owned: float
    """The part of the step that has an owner in the user's code."""
    profiled: float
    """A step while the profiler ran."""
    idle: float | None
    """The part of that in which the device did nothing; null without a device."""
    steps: int
    bounds: str
    """What `possible` is, in words; empty if it is not known."""
    programs: tuple[ProgramTime, ...]
    regions: tuple[ProgramTime, ...]
    """Graphs between breaks, each called alone; empty if there are not several."""
    lines: tuple[LineTime, ...]
    """By measured time minus possible time."""
    no_lines: str
    """Why there is none; empty if there is one."""
    kernels: tuple[KernelTime, ...]
    gaps: tuple[GapTime, ...]
    modules: MeasureTree
    """Its layers that repeat are one; a kernel of several modules is divided among them by a model."""
    frames: MeasureTree
    """The same by call frame, from the line that calls compiled code."""
    graphs: CudaGraphTimes
    costs: tuple[StepCost, ...]
    left_out: LeftOut
    words: tuple[str, ...]
    places: tuple[Place, ...]
    pieces: tuple[StepRow, ...]
    """One step: ``[row (0 host, 1 device), start, seconds, kind, name, compile (indices of `words`), 1 in a backward,
    place (an index of `places`, -1: none)]``."""
    reason: str


_NONE = "No run of this script was measured yet. Measure it with IRScope: Profile This File or irscope profile."


async def measured(context: ReadContext, params: MeasuredParams) -> Encoded:
    """Raises LookupError for an unknown run."""
    report = await context.archive.report(params.run)
    profiled = await context.archive.ask(functools.partial(profiled_run, params.run, report.script))

    def read(store: Store, report: Report) -> MeasuredResult:
        found = stored_profile(store, profiled) if profiled is not None else None
        if profiled is None or found is None:
            return _result(
                params.run, Profile("", 0, 0.0, 0.0, 0.0, (), (), (), CudaGraphs(0.0, 0.0)), context.uri_of, _NONE
            )
        report = store.report(profiled) if profiled != report.run else report
        return _result(profiled, found, context.uri_of, "", report)

    return await answer(context, ("measured", params.run, profiled), params.run, read)


def _result(run: str, found: Profile, uri_of: UriOf, reason: str, report: Report | None = None) -> MeasuredResult:
    languages = {stage.id: stage.language for one in (report.compiles if report else ()) for stage in one.stages}
    pieces = _Pieces(uri_of)
    rows = tuple(pieces.row(one) for one in found.pieces)
    graphs = found.cuda_graphs
    return MeasuredResult(
        run=run,
        step=found.step_seconds,
        device=found.device_seconds,
        owned=found.owned_seconds,
        profiled=found.profiled_seconds,
        idle=found.idle_device_seconds,
        steps=found.steps,
        bounds=found.bound_words,
        programs=tuple(_program(one, uri_of) for one in found.programs),
        regions=_regions(found, uri_of),
        lines=tuple(_line(one, uri_of) for one in found.lines[:_MOST_ROWS]),
        no_lines=found.why_no_lines,
        kernels=tuple(_kernel(run, one, languages, uri_of) for one in found.kernels[:_MOST_ROWS]),
        gaps=tuple(
            GapTime(one.kind, one.seconds, _place(one.where, uri_of), one.where) for one in found.gaps[:_MOST_ROWS]
        ),
        modules=tree_answer(folded(found.by_module), uri_of),
        frames=tree_answer(chained(found.by_frame), uri_of),
        graphs=CudaGraphTimes(
            graphs.recorded,
            graphs.replayed,
            tuple(SkippedCudaGraph(one.why, _at(one.file, one.line, uri_of)) for one in graphs.skipped[:_MOST_ROWS]),
            graphs.recordings,
            tuple(CudaGraphAgain(one.compile, one.why, one.count) for one in graphs.again[:_MOST_ROWS]),
            tuple(CudaGraphPool(one.pool, one.bytes, one.used_bytes) for one in graphs.pools[:_MOST_ROWS]),
        ),
        costs=_costs(found, uri_of),
        left_out=LeftOut(
            *(max(0, len(rows) - _MOST_ROWS) for rows in (found.lines, found.kernels, found.gaps)),
        ),
        words=tuple(pieces.words),
        places=tuple(pieces.places),
        pieces=rows,
        reason=reason,
    )


def _costs(found: Profile, uri_of: UriOf) -> tuple[StepCost, ...]:
    breaks = (StepCost("graph-break", one.code, one.words, _at(one.file, one.line, uri_of)) for one in found.breaks)
    compiled = (
        StepCost("recompilation", one.function, one.words, _at(one.file, one.line, uri_of)) for one in found.recompiled
    )
    return (*itertools.islice(breaks, _MOST_ROWS), *itertools.islice(compiled, _MOST_ROWS))


def _line(one: MeasuredLine, uri_of: UriOf) -> LineTime:
    place = _at(one.file, one.line, uri_of)
    return LineTime(
        place, one.seconds, one.shared_seconds, one.bound_seconds, one.is_bound_refuted, one.bound_by, one.calls, one.kernels
    )  # fmt: skip


def _kernel(run: str, one: MeasuredKernel, languages: dict[str, str], uri_of: UriOf) -> KernelTime:
    uri = uri_of_stage(run, one.stage, languages[one.stage]) if one.stage in languages else ""
    places = tuple(_at(origin.file, origin.line, uri_of) for origin in one.origins)
    return KernelTime(
        one.name, uri, one.seconds, one.bound_seconds, one.is_bound_refuted, one.bound_by, one.calls, one.moved_bytes,
        one.flops, places,
    )  # fmt: skip


def _program(one: MeasuredProgram, uri_of: UriOf) -> ProgramTime:
    return ProgramTime(one.function, _at(one.file, one.line, uri_of), program_words(one))


def _regions(found: Profile, uri_of: UriOf) -> tuple[ProgramTime, ...]:
    """Empty if there is only one: the program is compared already."""
    rows = found.regions[:_MOST_ROWS] if found.has_own_regions else ()
    return tuple(
        ProgramTime(
            one.function, _at(one.file, one.line, uri_of), region_words(one), tuple(map(elsewhere_words, one.elsewhere))
        )
        for one in rows
    )  # fmt: skip


def _at(file: str, line: int, uri_of: UriOf) -> Place:
    return Place(place_uri(uri_of, file), max(0, line - 1))


def _place(where: str, uri_of: UriOf) -> Place:
    match = _PLACE.match(where)
    return _at(match["file"], int(match["line"]), uri_of) if match else Place("", 0)


class _Pieces:
    """The pieces of a step as rows of numbers: words and places are told once."""

    def __init__(self, uri_of: UriOf) -> None:
        self._uri_of = uri_of
        self.words: dict[str, int] = {}
        self.places: dict[Place, int] = {}
        self._known: dict[str, int] = {}

    def row(self, one: StepPiece) -> StepRow:
        """The row that `MeasuredResult.pieces` describes."""
        kind, name, compile = (
            self.words.setdefault(each, len(self.words)) for each in (one.kind, one.name, one.compile)
        )
        return (
            int(one.row == "device"), round(one.start, 9), round(one.seconds, 9), kind, name, compile, int(one.backward),
            self._place(one.where),
        )  # fmt: skip

    def _place(self, where: str) -> int:
        if where not in self._known:
            place = _place(where, self._uri_of)
            self._known[where] = self.places.setdefault(place, len(self.places)) if place.uri else -1
        return self._known[where]


REQUEST = PanelRequest("irscope/measured", MeasuredParams, MeasuredResult, measured)
