"""``irscope/pipeline``: the stages of a compile in a row, with what is in them, their times and their passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.findings.kinds import compile_error
from irscope.ir import phases
from irscope.ir.graphs import Graph, parse_graph
from irscope.pipelines.registry import role_of, stage_kind, stage_kinds
from irscope.protocol import Compile, CompileOutcome, Report, StageRef
from irscope.provenance import chain
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.not_compiled import HEAD, why_not_compiled
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place, Symbol
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.base.symbols import symbols_of_compile, symbols_shown
from irscope_server.base.texts import split_lines
from irscope_server.panels.answers import CompileChoice, answer, compile_choices, compile_named, why_empty
from irscope_server.panels.passes import PassItem, QuietPass, passes_of
from irscope_server.stages.tree import UriOf

_MOST_OPS = 400


@dataclass(frozen=True)
class PipelineParams:
    """A run and one of its compiles; without it, the compile with the most operations."""

    run: str
    compile: str | None = None


@dataclass(frozen=True)
class OpCount:
    """How often an operator is in a stage."""

    name: str
    count: int
    line: int
    """The line of the first one, in the stage's document."""


@dataclass(frozen=True)
class StageEntry:
    """A document of a stage."""

    stage: str
    title: str
    language: str
    bytes: int
    uri: str


Track = Literal["shared", "forward", "backward"]


@dataclass(frozen=True)
class PipelineStage:
    """One stage; the kernels of a graph are one, with an entry for each."""

    stage: str
    name: str
    role: Role
    """What it is, whatever pipeline it belongs to."""
    title: str
    short: str
    """Without *forward* and *backward*, where the row says it."""
    track: Track
    """``shared`` above the partition, ``forward`` (of an inference graph, too) or ``backward``."""
    column: int
    """Stages of forward and backward that correspond have the same."""
    is_graph: bool
    bytes: int
    count: int | None
    unit: str
    """What is counted: ``nodes``, ``calls``, ``kernels``, ``instructions``."""
    seconds: float | None
    """What its making took; None if that was not measured."""
    entries: tuple[StageEntry, ...]
    beside: tuple[StageEntry, ...]
    ops: tuple[OpCount, ...]
    """Operations of a graph, the most frequent first."""
    symbols: tuple[Symbol, ...]
    """The symbolic sizes in the types of a graph's nodes, as far as the compile has them."""
    passes: tuple[PassItem, ...]
    quiet: tuple[QuietPass, ...]
    """Passes that changed nothing."""


@dataclass(frozen=True)
class KernelCount:
    """How many kernels of a language there are; of libraries' how many calls."""

    language: str
    count: int


@dataclass(frozen=True)
class PipelineEnd:
    """Why the stages of a compile end early."""

    text: str
    """``Runs as plain Python: break at line 75 in MoE.forward``."""
    place: Place | None
    """The graph break or the error that is the cause, as it ran."""


@dataclass(frozen=True)
class PipelineResult:
    """The stages of a compile in order; `reason` says in words why there are none."""

    run: str
    pipeline: str
    """The name of the pipeline that the run's programs went through."""
    compile: str | None
    compiles: tuple[CompileChoice, ...]
    stages: tuple[PipelineStage, ...]
    kernels: tuple[KernelCount, ...]
    reason: str
    end: PipelineEnd | None
    """What comes after the last stage of a compile that gave no code; None if it did."""
    rank: str
    """``rank 1 of 4``; empty for a run of one process."""


async def pipeline(context: ReadContext, params: PipelineParams) -> Encoded:
    """The pipeline of the compile that is named, else of the one with the most operations.  Raises LookupError for an
    unknown one."""

    def read(store: Store, report: Report) -> PipelineResult:
        compile = compile_named(report, params.compile)
        choices = compile_choices(report, context.uri_of)
        rank = _rank(store, report.run)
        if compile is None:
            return PipelineResult(
                report.run, report.pipeline, None, choices, (), (), why_empty(report, "stages"), None, rank
            )
        stages = tuple(_Strip(store, report, compile).stages())
        languages: Counter[str] = Counter()
        for kernel in report.kernels:
            if kernel.compile == compile.id:
                languages[kernel.language] += 1 if kernel.is_generated else kernel.calls
        kernels = tuple(KernelCount(language, count) for language, count in languages.most_common())
        reason = "" if stages else why_empty(report, "stages", compile)
        end = _end(store, report, compile, context.uri_of)
        return PipelineResult(report.run, report.pipeline, compile.id, choices, stages, kernels, reason, end, rank)

    return await answer(context, ("pipeline", params.run, params.compile), params.run, read)


def _rank(store: Store, run: str) -> str:
    how, _ = store.how_run(run)
    world, rank = how.get("world"), how.get("rank")
    return f"rank {rank} of {world}" if isinstance(world, int) and isinstance(rank, int) and world else ""


def _end(store: Store, report: Report, compile: Compile, uri_of: UriOf) -> PipelineEnd | None:
    """Why a compile that was skipped or that failed has no code."""
    if compile.outcome is CompileOutcome.ERROR:
        mine = (f for f in report.findings if f.kind == compile_error.KIND.id and compile.id in f.compiles)
        error = next(mine, None)
        return None if error is None else PipelineEnd(error.message, _place(uri_of, error.file, error.range.start.line))

    def ran(file: str) -> Sequence[str]:
        return split_lines(store.sources(report.run, file.__eq__).get(file, ""))

    why = why_not_compiled(report, (compile,), ran)
    if why is None:
        return None
    text = f"{HEAD[0].upper()}{HEAD[1:]}: {why.words}"
    return PipelineEnd(text, _place(uri_of, why.file, why.line + 1) if why.file else None)


def _place(uri_of: UriOf, file: str, line: int) -> Place:
    return Place(uri_of(file), line - 1)


class _Strip:
    def __init__(self, store: Store, report: Report, compile: Compile) -> None:
        self._store, self._report, self._compile = store, report, compile
        self._times = StageTimes(store, report.run, compile)
        self._graphs: dict[str, Graph | None] = {}
        self._known = symbols_of_compile(store, report.run, compile)

    def stages(self) -> Iterable[PipelineStage]:
        cells: dict[tuple[Track, int], list[StageRef]] = {}
        for stage in chain.pipeline(self._compile):
            rank = chain.rank(stage)
            if rank is not None:
                cells.setdefault((self._track(stage), rank), []).append(stage)
        columns = {rank: column for column, rank in enumerate(sorted({rank for _, rank in cells}))}
        for (track, rank), stages in cells.items():
            for same in _by_name(stages):
                yield self._stage(same, track, columns[rank])

    @staticmethod
    def _track(stage: StageRef) -> Track:
        if chain.is_shared(stage):
            return "shared"
        return "backward" if chain.is_backward(stage) else "forward"

    def _stage(self, stages: Sequence[StageRef], track: Track, column: int) -> PipelineStage:
        """One of them, or all the kernels of a graph."""
        first = stages[0]
        title = words.stage_title(first) if len(stages) == 1 else words.stage_title_of_name(first.name)
        is_kernels = role_of(first.name) is Role.KERNEL
        count, unit = (len(stages), "kernels") if is_kernels or len(stages) > 1 else self._count(first)
        own, quiet = passes_of(self._store, self._report.run, self._compile, first)
        return PipelineStage(
            first.id,
            first.name,
            role_of(first.name),
            words.stage_title_of_name(first.name) + "s" if is_kernels else title,
            words.short_stage_title(first.name) + ("s" if is_kernels else ""),
            track,
            column,
            stage_kind(first.name).is_drawn,
            sum(stage.bytes for stage in stages),
            count,
            unit,
            self._times.of(first.name, track),
            tuple(self._entry(stage) for stage in stages),
            tuple(self._entry(stage) for stage in self._beside(first, track)),
            self._ops(first),
            self._symbols(first),
            own,
            quiet,
        )

    def _entry(self, stage: StageRef) -> StageEntry:
        uri = uri_of_stage(self._report.run, stage.id, stage.language)
        title = stage.id.rpartition("/")[2] if role_of(stage.name) is Role.KERNEL else words.stage_title(stage)
        return StageEntry(stage.id, title, stage.language, stage.bytes, uri)

    def _beside(self, stage: StageRef, track: str) -> list[StageRef]:
        return [
            one
            for one in self._compile.stages
            if stage_kind(one.name).aside == stage.name
            and (track == "shared" or chain.is_backward(one) == (track == "backward"))
        ]

    def _graph(self, stage: StageRef) -> Graph | None:
        if stage.id not in self._graphs:
            try:
                self._graphs[stage.id] = parse_graph(self._store.stage_text(self._report.run, stage.id))
            except ValueError:
                self._graphs[stage.id] = None
        return self._graphs[stage.id]

    def _count(self, stage: StageRef) -> tuple[int | None, str]:
        if stage_kind(stage.name).is_graph:
            graph = self._graph(stage)
            return (len(graph.nodes) if graph is not None else None), "nodes"
        if role_of(stage.name) is Role.SOURCE:
            text = self._store.stage_text(self._report.run, stage.id)
            return sum(bool(line.strip()) for line in text.split("\n")), "instructions"
        data = self._store.stage_data(self._report.run, stage.id)
        for key, unit in (("nodes", "nodes"), ("calls", "calls")):
            if isinstance(data, dict) and isinstance(data.get(key), list):
                return len(data[key]), unit
        return None, ""

    def _ops(self, stage: StageRef) -> tuple[OpCount, ...]:
        graph = self._graph(stage) if stage_kind(stage.name).is_graph else None
        if graph is None:
            return ()
        calls = [node for node in graph.nodes if node.op == "call"]
        first = {node.target: node.line for node in reversed(calls)}
        counts = Counter(node.target for node in calls).most_common(_MOST_OPS)
        return tuple(OpCount(name, count, max(0, first[name] - 1)) for name, count in counts)

    def _symbols(self, stage: StageRef) -> tuple[Symbol, ...]:
        graph = self._graph(stage) if self._known and stage_kind(stage.name).is_graph else None
        return symbols_shown(self._known, " ".join(node.detail for node in graph.nodes)) if graph is not None else ()


def _by_name(stages: Sequence[StageRef]) -> list[list[StageRef]]:
    """Kernels and what is below them side by side in one; anything else by itself."""
    groups: dict[str, list[StageRef]] = {}
    for stage in stages:
        together = role_of(stage.name) is Role.KERNEL or chain.is_below_kernel(stage)
        groups.setdefault(stage.name if together else stage.id, []).append(stage)
    return list(groups.values())


REQUEST = PanelRequest("irscope/pipeline", PipelineParams, PipelineResult, pipeline)


_BACKWARD = ("entire_backward_compile", "bw_compiler")


class StageTimes:
    """Seconds by stage; none are known if the compile has no phases."""

    def __init__(self, store: Store, run: str, compile: Compile) -> None:
        self._seconds: dict[tuple[str, bool], float] = {}
        stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.PHASES), None)
        if stage is None:
            return
        try:
            found = phases.from_data(store.stage_data(run, stage.id))
        except ValueError:
            return
        backward: list[bool] = []
        inside: list[set[str]] = []
        """The stages that each phase helped to make."""
        for phase in found:
            known = 0 <= phase.parent < len(backward)
            is_backward = (known and backward[phase.parent]) or any(name in phase.name for name in _BACKWARD)
            around = inside[phase.parent] if known else set()
            made = {name for name, kind in stage_kinds().items() if phase.name in kind.phases}
            for name in made - around:
                key = (name, is_backward)
                self._seconds[key] = self._seconds.get(key, 0.0) + phase.seconds
            backward.append(is_backward)
            inside.append(around | made)

    def of(self, name: str, track: str) -> float | None:
        """Seconds that the making of a stage took; None if they are not known."""
        seconds = self._seconds.get((name, track == "backward"))
        return None if seconds is None else round(seconds, 6)
