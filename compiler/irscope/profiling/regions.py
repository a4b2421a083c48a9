"""The regions of a script between graph breaks: each graph of Dynamo's, compiled and without compile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.profiling.noise import Spread, is_clear, spread_of
from irscope.protocol import Report
from irscope.vocabulary.visible import bounded


@dataclass(frozen=True)
class Elsewhere:
    """What a call of a region takes through another pipeline, forward alone.

    Args:
        pipeline: Its name.
        seconds: Over the rounds; None if nothing was measured.
        inductor: Seconds of the same region through Inductor, in the same rounds, in a separate process.
        is_clear: Whether the two differ by more than noise; None if there are too few repetitions.
        why_not: Why nothing was measured; empty if it was.
    """

    pipeline: str
    seconds: Spread | None = None
    inductor: Spread | None = None
    is_clear: bool | None = None
    why_not: str = ""


@dataclass(frozen=True)
class MeasuredRegion:
    """A graph of Dynamo's that a call of a program goes through, called alone with the inputs that it has there.

    Args:
        compile: As PyTorch names it.
        function, file, line: Function and place of that compile; a *resume function* goes on after a break.
        backward: Whether a call has a backward.
        compiled, eager: Seconds of single calls, by turns: as it was compiled, and its operators one after the other.
        is_clear: Whether the two differ by more than noise; None if there are too few repetitions.
        compile_seconds: Seconds of all compiles of that function.
        paid_back_calls: After how many calls compiling has saved what it took; None if it does not, or that is not
            known.
        why_not: Why it was not measured; empty if it was.
        elsewhere: Through other pipelines; empty without `--against`.
    """

    compile: str
    function: str
    file: str
    line: int
    backward: bool
    compiled: Spread | None
    eager: Spread | None
    is_clear: bool | None
    compile_seconds: float | None
    paid_back_calls: int | None
    why_not: str = ""
    elsewhere: tuple[Elsewhere, ...] = ()


def regions_of(facts: object, report: Report) -> tuple[MeasuredRegion, ...]:
    """What the run's process wrote of its regions, which is not trusted, in the order in which a call goes through them."""
    rows = facts if isinstance(facts, list) else []
    return tuple(_region(row, report) for row in rows if isinstance(row, dict))


def _region(row: dict[str, Any], report: Report) -> MeasuredRegion:
    compile = bounded(str(row.get("compile", "")), 100)
    mine = [one for one in report.compiles if one.id.partition("#")[0] == compile]
    same = [one.seconds for one in report.compiles if one.id.partition("/")[0] == compile.partition("/")[0]]
    compiled, eager = seconds_of(row.get("samples")), seconds_of(row.get("eager_samples"))
    return MeasuredRegion(
        compile,
        mine[-1].title if mine else "",
        mine[-1].file if mine else "",
        mine[-1].line if mine else 0,
        row.get("backward") is True,
        spread_of(compiled),
        spread_of(eager),
        is_clear(compiled, eager),
        sum(same) if same else None,
        paid_back(spread_of(compiled), spread_of(eager), is_clear(compiled, eager), sum(same) if same else None),
        bounded(str(row.get("why_not", ""))),
    )


def paid_back(
    compiled: Spread | None, eager: Spread | None, clear: bool | None, compile_seconds: float | None
) -> int | None:
    """After how many calls compiling has saved what it took; None if nothing is saved for sure."""
    if compiled is None or eager is None or compile_seconds is None or clear is not True:
        return None
    saved = eager.median - compiled.median
    return math.ceil(compile_seconds / saved) if saved > 0 else None


def seconds_of(value: object) -> tuple[float, ...]:
    """The numbers in a list that is not trusted."""
    rows: Sequence[object] = value if isinstance(value, list) else ()
    return tuple(float(one) for one in rows if isinstance(one, (int, float)) and math.isfinite(one) and one >= 0)
