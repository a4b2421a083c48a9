"""``irscope/pipeline``: the stages of a compile in a row, with what is in them, their times and their passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.graphs import GRAPH_STAGES, Graph, parse_graph
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import chain
from irscope.store import Store

from irscope_server import words
from irscope_server.documents import uri_of_stage
from irscope_server.graph_schedule import DRAWN_STAGES
from irscope_server.messages import Encoded
from irscope_server.panels.answers import CompileChoice, Reader, answer, compile_choices, compile_named, why_empty
from irscope_server.panels.passes import PassItem, QuietPass, passes_of
from irscope_server.panels.phase_times import StageTimes
from irscope_server.wire import PipelineParams

_MOST_OPS = 400

_BESIDE = {
    "symbolic-trace": "dynamo-graph",
    "guards": "dynamo-graph",
    "symbols": "dynamo-graph",
    "modified-bytecode": "dynamo-graph",
    "partition": "joint-graph",
    "cache-key": "post-grad-graph",
    "fusion": "ir-post-fusion",
    "memory-plan": "output-code",
    "phases": "bytecode",
}
"""Stages that are no part of the way, and the one that they tell about."""


@dataclass(frozen=True)
class OpCount:
    name: str
    count: int
    line: int
    """Of the first one, in the stage's document."""


@dataclass(frozen=True)
class Entry:
    """A document of a stage."""

    stage: str
    title: str
    language: str
    bytes: int
    uri: str


@dataclass(frozen=True)
class PipelineStage:
    """One stage; the kernels of a graph are one, with an entry for each."""

    stage: str
    name: str
    title: str
    short: str
    """Without *forward* and *backward*, where the row says it."""
    track: str
    """``shared`` above the partition, ``forward`` (of an inference graph, too) or ``backward``."""
    column: int
    """Stages of forward and backward that correspond have the same."""
    is_graph: bool
    bytes: int
    count: int | None
    unit: str
    """What is counted: ``nodes``, ``calls``, ``kernels``, ``instructions``."""
    seconds: float | None
    """What its making took; nothing where that was not measured."""
    entries: tuple[Entry, ...]
    beside: tuple[Entry, ...]
    ops: tuple[OpCount, ...]
    """Operations of a graph, the most frequent first."""
    passes: tuple[PassItem, ...]
    quiet: tuple[QuietPass, ...]
    """Passes that changed nothing."""


@dataclass(frozen=True)
class KernelCount:
    language: str
    count: int


@dataclass(frozen=True)
class PipelineResult:
    run: str
    compile: str | None
    compiles: tuple[CompileChoice, ...]
    stages: tuple[PipelineStage, ...]
    kernels: tuple[KernelCount, ...]
    reason: str


async def pipeline(server: Reader, params: PipelineParams) -> Encoded:
    """Of the compile that is named, else of the one with the most operations.  Raises LookupError for an unknown one."""

    def read(store: Store, report: Report) -> PipelineResult:
        compile = compile_named(report, params.compile)
        choices = compile_choices(report, server.uri_of)
        if compile is None:
            return PipelineResult(report.run, None, choices, (), (), why_empty(report, "stages"))
        stages = tuple(_Strip(store, report, compile).stages())
        languages = Counter(kernel.language for kernel in report.kernels if kernel.compile == compile.id)
        kernels = tuple(KernelCount(language, count) for language, count in languages.most_common())
        reason = "" if stages else why_empty(report, "stages of this compile")
        return PipelineResult(report.run, compile.id, choices, stages, kernels, reason)

    return await answer(server, ("pipeline", params.run, params.compile), params.run, read)


class _Strip:
    def __init__(self, store: Store, report: Report, compile: Compile) -> None:
        self._store, self._report, self._compile = store, report, compile
        self._times = StageTimes(store, report.run, compile)
        self._graphs: dict[str, Graph | None] = {}

    def stages(self) -> Iterable[PipelineStage]:
        cells: dict[tuple[str, int], list[StageRef]] = {}
        for stage in chain.pipeline(self._compile):
            rank = chain.rank(stage)
            if rank is not None:
                cells.setdefault((self._track(stage), rank), []).append(stage)
        columns = {rank: column for column, rank in enumerate(sorted({rank for _, rank in cells}))}
        for (track, rank), stages in cells.items():
            for same in _by_name(stages):
                yield self._stage(same, track, columns[rank])

    @staticmethod
    def _track(stage: StageRef) -> str:
        if chain.is_shared(stage):
            return "shared"
        return "backward" if chain.is_backward(stage) else "forward"

    def _stage(self, stages: Sequence[StageRef], track: str, column: int) -> PipelineStage:
        """One of them, or all the kernels of a graph."""
        first = stages[0]
        title = words.stage_title(first) if len(stages) == 1 else words.stage_title_of_name(first.name)
        is_kernels = first.name == "kernel"
        count, unit = (len(stages), "kernels") if is_kernels or len(stages) > 1 else self._count(first)
        own, quiet = passes_of(self._store, self._report.run, self._compile, first)
        return PipelineStage(
            first.id,
            first.name,
            words.stage_title_of_name("kernel") + "s" if is_kernels else title,
            words.short_stage_title("kernels" if is_kernels else first.name),
            track,
            column,
            first.name in DRAWN_STAGES,
            sum(stage.bytes for stage in stages),
            count,
            unit,
            self._times.of(first.name, track),
            tuple(self._entry(stage) for stage in stages),
            tuple(self._entry(stage) for stage in self._beside(first, track)),
            self._ops(first),
            own,
            quiet,
        )

    def _entry(self, stage: StageRef) -> Entry:
        uri = uri_of_stage(self._report.run, stage.id, stage.language)
        title = stage.id.rpartition("/")[2] if stage.name == "kernel" else words.stage_title(stage)
        return Entry(stage.id, title, stage.language, stage.bytes, uri)

    def _beside(self, stage: StageRef, track: str) -> list[StageRef]:
        return [
            one
            for one in self._compile.stages
            if _BESIDE.get(one.name) == stage.name
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
        if stage.name in GRAPH_STAGES:
            graph = self._graph(stage)
            return (len(graph.nodes) if graph is not None else None), "nodes"
        if stage.name == "bytecode":
            text = self._store.stage_text(self._report.run, stage.id)
            return sum(bool(line.strip()) for line in text.split("\n")), "instructions"
        data = self._store.stage_data(self._report.run, stage.id)
        for key, unit in (("nodes", "nodes"), ("calls", "calls")):
            if isinstance(data, dict) and isinstance(data.get(key), list):
                return len(data[key]), unit
        return None, ""

    def _ops(self, stage: StageRef) -> tuple[OpCount, ...]:
        graph = self._graph(stage) if stage.name in GRAPH_STAGES else None
        if graph is None:
            return ()
        calls = [node for node in graph.nodes if node.op == "call"]
        first = {node.target: node.line for node in reversed(calls)}
        counts = Counter(node.target for node in calls).most_common(_MOST_OPS)
        return tuple(OpCount(name, count, max(0, first[name] - 1)) for name, count in counts)


def _by_name(stages: Sequence[StageRef]) -> list[list[StageRef]]:
    """Kernels and what is below them side by side in one; anything else by itself."""
    groups: dict[str, list[StageRef]] = {}
    for stage in stages:
        together = stage.name == "kernel" or chain.is_below_kernel(stage)
        groups.setdefault(stage.name if together else stage.id, []).append(stage)
    return list(groups.values())
