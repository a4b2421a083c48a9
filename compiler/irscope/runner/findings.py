"""Turns records into findings, one per range and cause, however often it repeats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from irscope.capture.trace import Record
from irscope.findings import compile_error, graph_break, recompilation, recompile_limit
from irscope.findings.moment import Moment, look
from irscope.protocol import Compile, Finding, Related
from irscope.runner.compiles import CompileBook


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
        self._pending: tuple[str, list[str], Related | None] | None = None

    def note(self, record: Record) -> None:
        """Takes in a record, on the stack on which it was written; ``record.compile`` is unique in the run."""
        if record.event == recompilation.EVENT and record.compile is not None:
            self._pending = (record.compile, recompilation.reasons_in(record.payload), recompilation.call_site())
        elif record.event == "dynamo_start" and self._pending is not None and record.attempt == 0:
            self._recompiled(record)
        elif record.event == graph_break.EVENT:
            self._add(graph_break.detect(self._moment(record)))
        elif record.event == compile_error.EVENT:
            self._failed(record)

    def limit_reached(self, limit_name: str, limit: int, name: str, file: str, line: int) -> None:
        """Dynamo has warned that a function is not compiled any more."""
        call = self._pending[2] if self._pending else recompilation.call_site()
        self._pending = None
        mine = self._compiles.of_function(file, line)
        if mine:
            compiles = tuple(compile.id for compile in mine)
            self._add(recompile_limit.make(mine[0], limit_name, limit, compiles, call))

    def _recompiled(self, record: Record) -> None:
        assert self._pending is not None
        name, reasons, call = self._pending
        self._pending = None
        if name == record.compile:
            self._add(recompilation.make(self._moment(record), reasons, call))

    def _failed(self, record: Record) -> None:
        finding = compile_error.detect(self._moment(record))
        if finding is not None and finding.kind == compile_error.KIND and record.compile is not None:
            self._compiles.failed(record.compile)
        self._add(finding)

    def _moment(self, record: Record) -> Moment:
        return look(record, self._compiles.get(record.compile))

    def _add(self, finding: Finding | None) -> None:
        if finding is None:
            return
        before = self._findings.get(finding.cause)
        if before is not None:
            finding = dataclasses.replace(
                before,
                count=before.count + finding.count,
                compiles=tuple(dict.fromkeys((*before.compiles, *finding.compiles))),
                related=tuple(dict.fromkeys((*before.related, *finding.related)))[:20],
            )
        self._findings[finding.cause] = finding
        self._publish(finding)


def cost_of(finding: Finding, compiles: dict[str, Compile]) -> float:
    """Seconds of the compiles that a finding brought about."""
    return sum(compiles[name].seconds for name in finding.compiles if name in compiles)
