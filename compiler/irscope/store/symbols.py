"""What the symbolic sizes stand for that findings name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from irscope.ir.symbols import symbols_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Finding, Report
from irscope.protocol.symbols import SymbolFacts, symbols_in
from irscope.vocabulary.stages import Role


def with_symbols(report: Report, data_of: Callable[[str], Any]) -> Report:
    """The report with the symbols that its findings name, as their compiles know them.

    Parameters
    ----------
    data_of
        Gives the data of a stage.
    """
    stages = {
        compile.id: stage.id
        for compile in report.compiles
        for stage in compile.stages
        if role_of(stage.name) is Role.SYMBOLS
    }
    read: dict[str, dict[str, SymbolFacts]] = {}

    def known(compile: str) -> dict[str, SymbolFacts]:
        if compile not in read:
            try:
                read[compile] = symbols_of(data_of(stages[compile]))
            except (LookupError, TypeError, ValueError):  # it has none, or data from elsewhere
                read[compile] = {}
        return read[compile]

    def named(finding: Finding) -> Iterator[SymbolFacts]:
        for name in symbols_in(finding.words):
            found = (facts for compile in finding.compiles or stages if (facts := known(compile).get(name)))
            yield from list(found)[-1:]

    found = tuple(dataclasses.replace(each, symbols=tuple(named(each))) for each in report.findings) if stages else ()
    return dataclasses.replace(report, findings=found) if found else report
