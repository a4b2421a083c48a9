"""Joins a timeline to a run: calls of kernels to the calls in its output code, and these to the user's lines.

The kernels of one call of a graph are in the order of its output code.  So each is joined to the next call there that has
its name; a name alone would not do, because one kernel may be called for several lines.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from irscope.ir.roofline import Peaks, Work, call_costs
from irscope.measures.splitting import Part, parts_of
from irscope.pipelines.registry import role_of
from irscope.profiling.library_kernels import call_family, grouped
from irscope.profiling.span_roles import kernel_name
from irscope.profiling.timeline import Segment
from irscope.protocol import Compile, Origin, Report, StageRef
from irscope.provenance import Element, chain
from irscope.provenance.kernel_paths import KernelPaths
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

_OPERATOR = re.compile(r"\w+::\w+\Z")


@dataclass(frozen=True)
class Call:
    """A call in output code."""

    kernel: str
    stage: str
    short: str
    origins: tuple[Origin, ...]
    work: Work | None = None
    """What one call costs; None if that is not known, or is counted for another kernel of the same call."""
    parts: tuple[Part, ...] = ()

    @functools.cached_property
    def later(self) -> Call:
        """A further kernel of the same call: one call that launched several kernels has one bound."""
        return replace(self, work=None)

    @property
    def bound_seconds(self) -> float | None:
        """The least that a call can take."""
        return None if self.work is None else self.work.seconds


@dataclass
class _Code:
    """An output code with its calls in their order."""

    calls: list[Call] = field(default_factory=list)


class Joined:
    """The output codes of a run, for a timeline of it."""

    def __init__(self, store: Store, report: Report, peaks: Peaks | None) -> None:
        self._store, self._report = store, report
        self._paths, self._peaks = KernelPaths(store, report), peaks
        self._thread = self._paths.thread
        self.compiles: dict[str, Compile] = {one.id.partition("#")[0]: one for one in report.compiles}
        """By PyTorch's names, of which the last round counts: it is the one that is called."""
        self._codes: dict[tuple[str, bool], _Code] = {}
        for compile in self.compiles.values():
            for stage in compile.stages:
                if role_of(stage.name) is Role.CODE:
                    data = store.stage_data(report.run, stage.id)
                    calls = data.get("calls", ()) if isinstance(data, dict) else ()
                    name = compile.id.partition("#")[0]
                    self._codes[name, chain.is_backward(stage)] = self._code(compile, stage, calls)

    def _code(self, compile: Compile, ref: StageRef, rows: Sequence[dict[str, Any]]) -> _Code:
        stage = ref.id
        elements = {one.name: one for one in self._thread.elements(stage)}
        code, number = _Code(), Counter[str]()
        cost_of = call_costs(self._store, self._report, ref, compile.stages, self._peaks)
        loops: dict[tuple[str, object], list[dict[str, Any]]] = defaultdict(list)
        for place, row in enumerate(rows):  # the loops of one kernel are reported separately, with one handle
            loops[row["kernel"], -place - 1 if row["handle"] is None else row["handle"]].append(row)
        for (kernel, _), (row, *more) in loops.items():
            number[kernel] += 1
            element = elements.get(f"{kernel}:{number[kernel]}") or elements.get(kernel)
            lines = tuple(self._thread.origins(element)) if element is not None else ()
            # PyTorch's stacks name the innermost lines of all calls of a kernel, the links every line of this call.
            named = self._kernel_origins(stage, kernel)
            origins = tuple(line for line in lines if line in named) or lines or named
            names = [str(name) for loop in (row, *more) for name in loop.get("origins") or ()]
            parts = self._parts(compile, ref, names, element)
            code.calls.append(
                Call(kernel, stage, short_name(row.get("operator") or kernel), origins, cost_of(row), parts)
            )
        return code

    def _parts(
        self, compile: Compile, code: StageRef, names: Sequence[str], element: Element | None
    ) -> tuple[Part, ...]:
        """What a call computes, by line and module."""
        program, callers = compile.title, self._callers(compile, chain.is_backward(code))
        try:
            nodes = self._paths.nodes_of(compile, code, names, lambda: () if element is None else (element,))
            return parts_of(nodes, program, callers, self._peaks)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):  # data from elsewhere
            return parts_of((), program, callers, None)

    def _callers(self, compile: Compile, backward: bool) -> Sequence[Origin]:
        """The lines that call compiled code; what is compiled again while it is measured is called from no line by itself."""
        frame = [other for other in self._report.compiles if other.id.partition("/")[0] == compile.id.partition("/")[0]]
        callers = [other.backward_callers if backward else other.callers for other in (*frame, compile)]
        own = set(callers[-1])
        return next(lines for lines in callers if own <= set(lines))

    def _kernel_origins(self, stage: str, kernel: str) -> tuple[Origin, ...]:
        return next(
            (
                one.origins
                for one in self._report.kernels
                if one.name == kernel and (one.stage == stage or self._code_of(one.stage) == stage)
            ),
            (),
        )

    def _code_of(self, kernel_stage: str) -> str:
        code = self._thread.codes.get(chain.folder_of(kernel_stage))
        return "" if code is None else code.id

    def calls_of(self, segments: Sequence[Segment]) -> dict[int, Call]:
        """For segments of kernels, by their ``id()``: the call in output code; one that has none is not there."""
        by_graph: dict[tuple[str, bool, int], list[Segment]] = defaultdict(list)
        for segment in segments:
            around = segment.around
            by_graph[around.compile, around.backward, around.graph].append(segment)
        found: dict[int, Call] = {}
        for (compile, backward, _), mine in by_graph.items():
            code = self._codes.get((compile, backward))
            if code is not None:
                mine.sort(key=lambda segment: segment.start)
                _align(mine, code.calls, found)
        return found


@functools.lru_cache(maxsize=1 << 14)  # names come again and again
def short_name(name: str) -> str:
    """What is common to a library call's names: ``addmm`` of ``extern_kernels.addmm`` and ``aten::addmm``."""
    for prefix in ("extern_kernels.", "torch.ops."):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
    if "::" in name:
        return name.rpartition("::")[2].partition(".")[0]
    parts = name.split(".")
    return parts[0] if len(parts) == 1 else parts[1]


def _align(segments: Sequence[Segment], calls: Sequence[Call], found: dict[int, Call]) -> None:
    """Joins by name, in order; what is between two that are joined by their places, if that leaves no choice."""
    at, between = 0, []
    for segment in segments:
        names, ahead = _names(segment.name), at
        while ahead < len(calls) and calls[ahead].kernel not in names and calls[ahead].short not in names:
            ahead += 1
        if ahead == len(calls):
            between.append(segment)
            continue
        _fill(between, calls[at:ahead], found)
        found[id(segment)] = calls[ahead]
        at, between = ahead + 1, []
    _fill(between, calls[at:], found)


@functools.lru_cache(maxsize=1 << 14)
def _names(name: str) -> tuple[str, str]:
    return kernel_name(name), short_name(name)


def _fill(segments: Sequence[Segment], calls: Sequence[Call], found: dict[int, Call]) -> None:
    """Kernels of a library, which have other names than the calls that launched them, as in a CUDA graph."""
    mine = [one for one in segments if one.device is not None and not _OPERATOR.match(one.name)]
    if len(calls) == 1:
        found.update((id(segment), calls[0].later if number else calls[0]) for number, segment in enumerate(mine))
    elif len(calls) == len(mine):
        found.update((id(segment), call) for segment, call in zip(mine, calls, strict=True))
    elif calls:
        families = [call_family(call.short) for call in calls]
        for group, call in zip(grouped([one.name for one in mine], families), calls, strict=False):
            found.update((id(mine[at]), call.later if number else call) for number, at in enumerate(group))
