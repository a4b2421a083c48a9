"""What a finding costs: the compile time and the extra graphs that it brought about."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.protocol import Compile, Cost, Finding
from irscope.vocabulary.function_names import plain_name
from irscope.vocabulary.units import count, duration


def with_costs(findings: Sequence[Finding], compiles: Sequence[Compile]) -> tuple[Finding, ...]:
    """The findings with their `Cost`, worked out from the compiles of the run."""
    by_id = {compile.id: compile for compile in compiles}
    return tuple(
        dataclasses.replace(
            f, cost=_cost(f, by_id), explanation=f.explanation + _of_how_many(f, by_id) + _how_long(f, by_id)
        )
        for f in findings
    )


_LEAST_SECONDS = 0.0005
"""Of compile time: less is what runs without times have."""


def cost_words(cost: Cost) -> list[str]:
    """``at least 60 µs of each step``, ``2 extra graphs``, ``324 ms of compile time``: in words, what is known about it."""
    return [
        *([f"at least {duration(cost.step_seconds)} of each step"] if cost.step_seconds > 0 else []),
        *([count(cost.graphs, "extra graph")] if cost.graphs else []),
        *([f"{duration(cost.seconds)} of compile time"] if cost.seconds >= _LEAST_SECONDS else []),
    ]


def with_measured(findings: Sequence[Finding], profile: Any) -> tuple[Finding, ...]:
    """The findings with what their breaks take in a step, from a profile of the run as plain JSON values."""
    breaks = profile.get("breaks") if isinstance(profile, dict) else None
    seconds: defaultdict[tuple[str, int, str], float] = defaultdict(float)
    for cost in breaks if isinstance(breaks, list) else ():
        match cost:  # a profile may be from elsewhere
            case {"file": str(file), "line": int(line), "code": str(code), "seconds": float(taken)} if (
                math.isfinite(taken) and taken > 0
            ):
                seconds[file, line, code] += taken
    return tuple(
        dataclasses.replace(finding, cost=dataclasses.replace(finding.cost, step_seconds=measured))
        if finding.kind == "graph-break"
        and (measured := seconds[finding.file, finding.range.start.line, finding.code]) > 0
        else finding
        for finding in findings
    )


def measured_step(profile: Any) -> float:
    """Seconds of a step, from a profile as plain JSON values; 0 if it has none."""
    match profile:
        case {"step_seconds": float(taken)} if math.isfinite(taken) and taken > 0:
            return taken
    return 0.0


def _of_how_many(finding: Finding, by_id: Mapping[str, Compile]) -> str:
    """For a recompilation: which of the function's recompilations it is."""
    frames = {_frame(name) for name in finding.compiles if name in by_id}
    if finding.kind != "recompilation" or not frames:
        return ""
    total = sum(_frame(name) in frames and _number(name) > 0 for name in by_id)
    if len(finding.compiles) == 1:
        return f"\nRecompilation {_number(finding.compiles[0])} of {total} of this function in this run."
    return f"\n{len(finding.compiles)} of {total} recompilations of this function in this run."


_SLOW_TO_COMPILE = ("unrolled-loop", "inlined-expression")
"""Codes of findings whose compile itself takes long."""


def _how_long(finding: Finding, by_id: Mapping[str, Compile]) -> str:
    """For what makes a compile long: its time, and that of all compiles of the run."""
    mine = sum(by_id[name].seconds for name in finding.compiles if name in by_id)
    if finding.code not in _SLOW_TO_COMPILE or not mine:
        return ""
    total = sum(compile.seconds for compile in by_id.values())
    return f"\nThis was compiled in {duration(mine)}, all of this run in {duration(total)}."


def _frame(compile: str) -> tuple[str, str]:
    """``0/2#2`` is of frame 0 in the second round."""
    name, _, round = compile.partition("#")
    return name.rpartition("/")[0], round


def _number(compile: str) -> int:
    last = compile.partition("#")[0].rpartition("/")[2]
    return int(last) if last.isdigit() else 0


def caused_by(finding: Finding, by_id: Mapping[str, Compile]) -> list[Compile]:
    """The compiles that would not be there without it, of those of the run by their ids."""
    if finding.kind == "recompilation":
        return [by_id[name] for name in finding.compiles if name in by_id]
    return _resumed(finding, by_id) if finding.kind == "graph-break" else []


def _cost(finding: Finding, by_id: Mapping[str, Compile]) -> Cost:
    caused = caused_by(finding, by_id)
    return Cost(round(sum(compile.seconds for compile in caused), 6), sum(compile.graph_ops > 0 for compile in caused))


def _resumed(finding: Finding, by_id: Mapping[str, Compile]) -> list[Compile]:
    """The compiles of the resume functions that go on after a break.

    Dynamo names them after the function that it was called for.  They go on after the line that it had reached there,
    which for a break in an inlined helper is the line of a caller, or with nested graph breaks after the break itself.
    """
    roots = {(by_id[name].file, plain_name(by_id[name].function)) for name in finding.compiles if name in by_id}
    callers = {(related.file, related.range.start.line) for related in finding.related}
    lines = range(finding.range.start.line, finding.range.end.line + 1)
    return [
        compile
        for compile in by_id.values()
        if (place := compile.after) is not None
        and (compile.file, plain_name(compile.function)) in roots
        and ((place.file == finding.file and place.line in lines) or (place.file, place.line) in callers)
    ]
