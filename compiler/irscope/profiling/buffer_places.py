"""The buffers of a run's graphs, by the lines of output code that allocate them: what each is for, and who made it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from irscope.measures.memory import Buffer, Writer, buffers_of, writers_of
from irscope.measures.splitting import parts_of
from irscope.measures.tree import Path
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import chain
from irscope.provenance.kernel_paths import KernelPaths
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

SAVED, GRADIENTS, OUTPUTS, TEMPORARIES = (
    "saved for the backward",
    "gradients",
    "outputs of graphs",
    "temporaries of graphs",
)
_OF_PLAN = {"kept": SAVED, "temporary": TEMPORARIES, "borrowed": TEMPORARIES}
_ASSIGNED = re.compile(r"\s*(\w+) = ")
_PART = re.compile(r"\s*(\w+) = (\w+)(?:\[\d+\])?$")
"""An output of a library call: ``buf6 = buf5``, ``buf9 = buf8[0]``."""


class Call(NamedTuple):
    """A line of output code that is running."""

    compile: str
    is_backward: bool
    line: int


class BufferPlace(NamedTuple):
    """What a buffer is for, and the modules and call frames of what writes it."""

    kind: str
    buffer: str
    module: str
    stage: str
    modules: Path
    frames: Path


class _Plan(NamedTuple):
    """An output code with what is planned of its buffers."""

    compile: Compile
    code: StageRef
    lines: list[str]
    buffers: dict[str, Buffer]
    writers: Mapping[str, Writer]
    reused: dict[str, str]
    """The buffer that takes over the memory of another one."""


class BufferPlaces:
    """The buffers of a run, by the lines of output code that allocate them."""

    def __init__(self, store: Store, report: Report) -> None:
        self._store, self._report, self._paths = store, report, KernelPaths(store, report)
        self._plans: dict[tuple[str, bool], _Plan] = {}
        for compile in report.compiles:
            for code in compile.stages:
                if role_of(code.name) is Role.CODE and not code.target:
                    key = compile.id.partition("#")[0], chain.is_backward(code)
                    self._plans[key] = self._plan(compile, code)

    def _plan(self, compile: Compile, code: StageRef) -> _Plan:
        run = self._report.run
        lines = self._store.stage_text(run, code.id).split("\n")
        side = chain.is_backward(code)
        stages = [one for one in compile.stages if chain.is_backward(one) == side and not one.target]
        try:
            plan = next(one for one in stages if role_of(one.name) is Role.MEMORY)
            buffers = {one.name: one for one in buffers_of(self._store, run, compile, plan)}
            writers = writers_of(self._store, run, compile, plan)
        except (
            StopIteration,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ):  # a cache gave the code, or an older store
            buffers, writers = {}, {}
        reused = {one.of: one.name for one in buffers.values() if one.how == "reuse"}
        return _Plan(compile, code, lines, buffers, writers, reused)

    def named(self, stage: str, name: str) -> BufferPlace | None:
        """What a local variable of an output code holds, whose stage is given; None if no line there makes it."""
        found = ((key, plan) for key, plan in self._plans.items() if plan.code.id == stage)
        for (compile, is_backward), plan in found:
            lines = (number for number, line in enumerate(plan.lines, 1) if line.lstrip().startswith(f"{name} = "))
            return next((self.of(Call(compile, is_backward, line), None) for line in lines), None)
        return None

    def at(self, stage: str, line: int) -> BufferPlace | None:
        """What a line of an output code allocates; None if it allocates nothing."""
        found = ((key, plan) for key, plan in self._plans.items() if plan.code.id == stage)
        return next((self.of(Call(*key, line), None) for key, plan in found if _allocates(plan, line)), None)

    def of(self, call: Call, peak: Call | None) -> BufferPlace | None:
        """What a line of output code allocates; `peak` is the line that runs at the peak."""
        plan = self._plans.get((call.compile, call.is_backward))
        if plan is None or not 0 < call.line <= len(plan.lines):
            return None
        match = _ASSIGNED.match(plan.lines[call.line - 1])
        name = match[1] if match else ""
        if peak is None or peak[:2] != call[:2]:
            until: float = math.inf
        else:
            until = _step_of(plan, peak.line)
        seen = {name}
        while (after := plan.reused.get(name, "")) and after not in seen and plan.buffers[after].first <= until:
            name = after
            seen.add(name)
        buffer, writer = plan.buffers.get(name), _writer(plan, name)
        kind = TEMPORARIES
        if buffer is not None:
            kind = _OF_PLAN.get(buffer.category) or (GRADIENTS if call.is_backward else OUTPUTS)
        modules, frames = self._path(plan, writer)
        return BufferPlace(kind, name, buffer.module if buffer else "", plan.code.id, modules, frames)

    def _path(self, plan: _Plan, writer: Writer | None) -> tuple[Path, Path]:
        callers = plan.compile.backward_callers if chain.is_backward(plan.code) else plan.compile.callers
        program = plan.compile.title
        try:
            nodes = self._paths.nodes_of(plan.compile, plan.code, writer.origins if writer else (), tuple)
            part = max(parts_of(nodes, program, callers, None), key=lambda one: (one.is_main, one.seconds))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):  # data from elsewhere
            part = parts_of((), program, callers, None)[0]
        return part.modules, part.frames


def _writer(plan: _Plan, name: str) -> Writer | None:
    """What writes a buffer; of an output of a library call, that call."""
    writer, seen = plan.writers.get(name), {name}
    while writer is None or not writer.origins:
        part = next((match for line in plan.lines if (match := _PART.match(line)) and match[1] == name), None)
        if part is None or part[2] in seen:
            return writer
        name = part[2]
        seen.add(name)
        writer = plan.writers.get(name) or writer
    return writer


def _allocates(plan: _Plan, line: int) -> bool:
    return 0 < line <= len(plan.lines) and "= empty_strided" in plan.lines[line - 1]


def _step_of(plan: _Plan, line: int) -> float:
    """The step of a plan in which a line of output code allocates."""
    match = _ASSIGNED.match(plan.lines[line - 1]) if 0 < line <= len(plan.lines) else None
    buffer = plan.buffers.get(match[1]) if match else None
    return buffer.first if buffer else math.inf
