"""What is captured of Inductor: all that Dynamo shows, and everything from its graph down to the kernels."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from irscope.capture.dynamo import DynamoCapture
from irscope.capture.lanes import hooks_for
from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.findings import signals
from irscope.findings.kinds import cache_miss
from irscope.findings.kinds.cache_miss import CacheKey
from irscope.internals import kernel_progress
from irscope.internals.graph_calls import GraphCalls, Lines
from irscope.internals.graph_frames import graph_of
from irscope.internals.hooks import Hook
from irscope.pipeline_captures.inductor import fusion, trace
from irscope.pipeline_captures.inductor.cache_keys import EarlierKeys, data_of, key_of, text_of
from irscope.pipeline_captures.inductor.deep_lane import DeepLane
from irscope.pipeline_captures.inductor.kernels import Kernels
from irscope.pipeline_captures.inductor.triton_stages import TritonStages
from irscope.pipelines.dynamo_stages import DYNAMO_GRAPH
from irscope.pipelines.inductor.stages import AOT_CACHE_KEY, CACHE_KEY, OUTPUT_CODE
from irscope.protocol import CaptureGap
from irscope.vocabulary.stages import StageKind

if TYPE_CHECKING:
    from irscope.pipeline_captures.inductor.targets import Targets
    from irscope.pipeline_captures.inductor.value_run import ValueRun


class InductorCapture(DynamoCapture):
    """In the fast lane only what Dynamo shows: its graphs go to the eager backend."""

    EVENTS = trace.EVENTS
    PHASES = trace.PHASES

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._kernels = Kernels(book)
        self._triton = TritonStages(book, self._kernels)
        self._targets = _targets(book, self._kernels) if book.is_deep and book.request.targets else None
        self._values = _value_run(book, self._targets) if book.is_deep and book.request.values is not None else None
        self._deep_lane = DeepLane(book, self._values, self._fused) if book.is_deep else None
        self._earlier_keys = EarlierKeys(book.request.earlier)

    def hooks(self) -> list[Hook]:
        """What is patched in PyTorch: in the fast lane only the eager backend, Dynamo and fusion."""
        guarded = self.book.guarded
        hooks = [*hooks_for(self.book.request), *super().hooks()]
        if self._deep_lane is None:
            return [*hooks, *fusion.hooks(guarded(self._fused))]
        hooks += [
            kernel_progress.hook(guarded(self._kernels_compiled)),
            *GraphCalls(lambda: self.book.current_compile("call"), guarded(self._graph_called)).hooks(),
            *self._deep_lane.hooks(),
            *self._triton.hooks(),
        ]
        if self._targets is not None:
            hooks += self._targets.hooks()
        return [*hooks, *(self._values.hooks() if self._values is not None else ())]

    def _graph_called(self, compile: str, backward: bool, lines: Lines) -> None:
        if (changed := self.book.compiles.called(compile, backward, lines)) is not None:
            self.book.put_compile(changed)

    def finish(self) -> None:
        """Writes what is still to be written of Triton kernels, and waits for the compiles for targets."""
        self._triton.finish()
        if self._values is not None:
            self._values.finish()
        if self._targets is not None:
            self._targets.finish()

    # --- the trace ----------------------------------------------------------------------------------------------------

    def is_backward(self, kind: StageKind, text: str) -> bool:
        """Whether a stage belongs to the backward, from its kind and text."""
        return trace.is_backward(kind, text)

    def data_of(self, record: Record, compile: str, kind: StageKind, backward: bool) -> object:
        """What is known about a stage besides its text; None if nothing is."""
        data = super().data_of(record, compile, kind, backward)
        if data is None and self._deep_lane is not None:
            data = self._deep_lane.data_of(record, compile, kind, backward)
        elif data is None and kind is DYNAMO_GRAPH and self.book.request.world:
            # Ranks are compared: the stacks of nodes lead from what a library sends to the user's line.
            module = graph_of(record.event)
            data = None if module is None else NodeWriter().describe(module)
        return data

    def stage_written(self, record: Record, kind: StageKind, id: str, text: str, backward: bool, data: object) -> None:
        """A stage is in the store: look for kernels in it, and link it to the others."""
        compile = record.compile or ""
        if kind is DYNAMO_GRAPH:
            self._kernels.graph_written(compile, text)
        elif kind is OUTPUT_CODE:
            self.progress.begin_kernels(compile)
            self._triton.written(self._kernels.written(compile, id, text, backward), text)
        if self._deep_lane is not None:
            self._deep_lane.stage_written(compile, kind, id, backward, record.attempt, data)

    def note(self, record: Record, compile: str) -> None:
        """Take in a record that is not a stage, such as kernel stacks and cache events."""
        if self._deep_lane is not None and self._deep_lane.note(record, compile):
            return
        if record.event == trace.KERNEL_STACKS:
            linked = self._kernels.link(compile, record.payload)
            self.book.findings.signal(signals.KERNELS_LINKED, compile, linked)
        elif record.event == cache_miss.EVENT:
            self._cache_missed(compile, record)
        elif record.event in trace.AOT_CACHE_EVENTS:
            self._put_key(compile, record, AOT_CACHE_KEY)
        elif record.event == trace.CACHE_HIT:
            self._put_key(compile, record, CACHE_KEY)
            what = f"the stages of {compile} after the post-grad graph"
            self.book.gap(CaptureGap(what, "the FX graph cache answered, as the script's settings allow"))

    def _cache_missed(self, name: str, record: Record) -> None:
        """Keeps the key of a graph in the FX graph cache; what made it another one is a finding."""
        book = self.book
        compile, put = book.compiles.get(name), self._put_key(name, record, CACHE_KEY)
        if compile is None or put is None:
            return
        key, id = put
        arguments = cache_miss.arguments_of(self._kernels.dynamo_graph(name), key)
        earlier = self._earlier_keys.of(key, compile, book.compiles.number_of(compile), id.rpartition("/")[2])
        book.findings.signal(signals.CACHE_MISSED, name, key, earlier, arguments, payload=record.payload)

    def _put_key(self, name: str, record: Record, kind: StageKind) -> tuple[CacheKey, str] | None:
        """Keeps a key as a stage, and returns it with the stage's ID; None if the event does not tell its parts."""
        book = self.book
        compile, facts = book.compiles.get(name), json.loads(record.payload)
        components = facts.get("components") if isinstance(facts, dict) else None
        if compile is None or not isinstance(components, list) or not components:
            return None
        key = key_of(compile, cache_miss.parts_of([line for line in components if isinstance(line, str)]))
        text = text_of(key)
        backward = self.is_backward(kind, text)
        return key, book.put_stage(name, kind.name, text, record.attempt, data_of(key, _found(record, facts)), backward)

    # --- hooks --------------------------------------------------------------------------------------------------------

    def _kernels_compiled(self, done: int, total: int) -> None:
        if (compile := self.book.compiles.get(self.book.current_compile("progress"))) is not None:
            self.progress.kernels(compile, done, total or self._kernels.count(compile.id))

    def _fused(self, log: fusion.FusionLog) -> None:
        self.book.findings.signal(signals.FUSED, self.book.current_compile("fusion"), log)


def _found(record: Record, facts: dict[str, Any]) -> str:
    """What the user's own run finds in the cache; empty if it is not known."""
    told = facts.get("cache_status_detailed")
    if not isinstance(told, str):
        return "hit" if record.event == trace.CACHE_HIT else ""
    return "hit" if told == "hit" else "miss"


def _value_run(book: RunBook, targets: Targets | None) -> ValueRun:
    # Here: few runs need them, and they are a tenth of the modules.
    if book.request.values is not None and book.request.values.watch:
        from irscope.pipeline_captures.inductor.watch_run import WatchRun

        return WatchRun(book)
    from irscope.pipeline_captures.inductor.value_run import ValueRun

    return ValueRun(book, targets)


def _targets(book: RunBook, kernels: Kernels) -> Targets:
    from irscope.pipeline_captures.inductor.targets import Targets  # here: as above

    return Targets(book, kernels)
