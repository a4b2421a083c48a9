"""Turns records into findings, one per range and cause, however often it repeats."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence

from irscope.capture.hooks import Hook
from irscope.capture.stack import CAUSE_IN_LIBRARY
from irscope.capture.trace import Record
from irscope.findings import (
    cache_bypass,
    cache_miss,
    compile_error,
    compiled_generator,
    cudagraph_skip,
    fallback,
    graph_break,
    guard_failure,
    host_sync,
    missed_fusion,
    performance_hint,
    recompilation,
    recompile_limit,
    repeats,
    skipped_frame,
    slow_guards,
    specialization,
    unknown_backend,
)
from irscope.findings.moment import Moment, look
from irscope.protocol import CompileOutcome, Finding, Kernel
from irscope.runner.compiles import CompileBook
from irscope.source import line_text

_RELATED_KEPT = 20
# Kinds that need nothing but the record at hand and where it happened.
_DETECTORS: dict[str, list[Callable[[Moment], Iterable[Finding]]]] = {}
for _kind in (specialization, host_sync, slow_guards, cache_bypass, cudagraph_skip):
    for _event in _kind.EVENTS:
        _DETECTORS.setdefault(_event, []).append(_kind.detect)


class FindingBook:
    """All findings of a run so far.

    Parameters
    ----------
    compiles
        What is known of the compiles.
    publish
        Called with each finding that is new or whose count grew.
    """

    def __init__(self, compiles: CompileBook, publish: Callable[[Finding], None]) -> None:
        self._compiles = compiles
        self._publish = publish
        self._findings: dict[tuple[object, ...], Finding] = {}
        # A recompilation is known by its reasons before it begins, and may yet not begin (the recompile limit).
        self._pending: tuple[str, recompilation.Trigger] | None = None

    def hooks(self, guarded: Callable[[Callable[..., None]], Callable[..., None]]) -> list[Hook]:
        """What sees the findings of which PyTorch leaves no record; ``guarded`` wraps whatever is called from there."""
        return [
            guard_failure.hook(guarded(lambda error: self._add(guard_failure.make(error)))),
            compiled_generator.hook(guarded(lambda *found: self._add(compiled_generator.make(*found)))),
            unknown_backend.hook(guarded(lambda name: self._add(unknown_backend.make(name)))),
        ]

    def note(self, record: Record) -> None:
        """Takes in a record, on the stack on which it was written; ``record.compile`` is unique in the run."""
        for detect in _DETECTORS.get(record.event, ()):
            self._add_all(detect(self._moment(record)))
        if record.event == recompilation.EVENT and record.compile is not None:
            self._pending = (record.compile, recompilation.trigger(record.payload))
        elif record.event == "dynamo_start" and self._pending is not None and record.attempt == 0:
            self._recompiled(record)
        elif record.event == graph_break.EVENT:
            self._add(graph_break.detect(self._moment(record)))
        elif record.event == compile_error.EVENT:
            self._failed(record)
        elif record.event == "compilation_metrics":
            self._ended(record)

    def limit_reached(self, limit_name: str, limit: int, _name: str, file: str, line: int) -> None:
        """Dynamo has warned that a function is not compiled any more."""
        call = self._pending[1].call if self._pending else recompilation.call_site()
        self._pending = None
        if mine := self._compiles.of_function(file, line):
            compiles = tuple(compile.id for compile in mine)
            fullgraph = look(Record("limit", {}, None, 0, ""), None).fullgraph
            self._add(recompile_limit.make(mine[0], limit_name, limit, compiles, call, fullgraph))

    def kernels_linked(self, compile: str, kernels: Sequence[Kernel]) -> None:
        """The kernels of a compile are known, with their origins."""
        self._add_all(fallback.detect(self._moment(Record("kernels", {}, compile, 0, "")), kernels))

    def fusion_refused(self, compile: str | None, refusals: list[missed_fusion.Refusal]) -> None:
        """Inductor has scheduled a graph and left these pairs of kernels apart."""
        self._add_all(missed_fusion.detect(self._moment(Record("fusion", {}, compile, 0, "")), refusals))

    def cache_missed(
        self, record: Record, key: cache_miss.CacheKey, earlier: cache_miss.CacheKey | None, arguments: tuple[str, ...]
    ) -> None:
        """A graph is not in the FX graph cache; ``earlier`` is what it was known by in an earlier run."""
        self._add_all(cache_miss.detect(self._moment(record), key, earlier, arguments))

    def cudagraph_skipped(self, compile: str | None, reason: str) -> None:
        """PyTorch has warned that something runs without CUDA graphs."""
        self._add_all(cudagraph_skip.from_reason(self._moment(Record("cudagraph_skip", {}, compile, 0, "")), reason))

    def hinted(self, compile: str | None, text: str) -> None:
        """Inductor has written a performance hint."""
        self._add_all(performance_hint.detect(self._moment(Record("perf_hint", {}, compile, 0, "")), text))

    def _recompiled(self, record: Record) -> None:
        assert self._pending is not None
        name, trigger = self._pending
        self._pending = None
        if name == record.compile:
            self._add(recompilation.make(self._moment(record), trigger, self._findings.values()))

    def _failed(self, record: Record) -> None:
        finding = compile_error.detect(self._moment(record))
        if finding is not None and finding.kind == compile_error.KIND and record.compile is not None:
            self._compiles.failed(record.compile)
            if (fixed := repeats.fixed_at(finding, self._findings.values())) is not None:
                finding = dataclasses.replace(finding, range=fixed.range)
        self._add(finding)

    def _ended(self, record: Record) -> None:
        moment = self._moment(record)
        if moment.compile is None:
            # An error that comes before anything is traced leaves no other record: `error_on_recompile`.
            if moment.error is not None and record.facts.get("fail_type") == "RecompileError":
                self._pending = None
                self._add(guard_failure.as_compile_error(moment, moment.error))
        elif moment.compile.outcome is CompileOutcome.SKIPPED:
            known = any(moment.compile.id in finding.compiles for finding in self._findings.values())
            self._add_all(skipped_frame.detect(moment, known))

    def _moment(self, record: Record) -> Moment:
        return look(record, self._compiles.get(record.compile))

    def _add_all(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self._add(finding)

    def _add(self, finding: Finding | None) -> None:
        if finding is None:
            return
        before = self._findings.get(finding.cause)
        if before is not None:
            finding = dataclasses.replace(
                before,
                explanation=_with_another(before, finding),
                count=before.count + finding.count,
                compiles=tuple(dict.fromkeys((*before.compiles, *finding.compiles))),
                related=tuple(dict.fromkeys((*before.related, *finding.related)))[:_RELATED_KEPT],
            )
        self._findings[finding.cause] = finding
        self._publish(finding)


def _with_another(before: Finding, again: Finding) -> str:
    """The explanation, with where in a library the cause lies when it is another one below the same call."""
    told = before.explanation
    known = {place for place in before.related if place.message.startswith(CAUSE_IN_LIBRARY)}
    for place in again.related:
        if place.message.startswith(CAUSE_IN_LIBRARY) and known and place not in known:
            line = place.range.start.line
            where = f"{os.path.basename(place.file)}:{line}"
            told += f"\nAnother cause below the same call: `{line_text(place.file, line).strip()}` ({where})."
    return told
