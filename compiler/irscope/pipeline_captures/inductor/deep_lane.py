"""What the deep lane keeps beside PyTorch's trace: facts of nodes, versions by pass, Inductor's IR, fusion and memory."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.capture.stages import clean
from irscope.events.trace import Record
from irscope.internals import loop_text as looptext
from irscope.internals import node_meta as nodemeta
from irscope.internals.graph_frames import graph_of
from irscope.internals.hooks import Hook
from irscope.internals.inductor_hooks import memory_plan_hook
from irscope.internals.scheduler_hooks import is_backward, scheduler_hooks
from irscope.internals.tuning_hooks import tuning_hooks
from irscope.ir.cpp_wrapper import calls_in
from irscope.pipeline_captures.inductor import fusion, memory, partition
from irscope.pipeline_captures.inductor import scheduler as inductor
from irscope.pipeline_captures.inductor.autotuning import Autotuning
from irscope.pipeline_captures.inductor.passes import PassRun, PassWatcher, Phase
from irscope.pipelines.inductor import stages
from irscope.pipelines.registry import position, stage_kind
from irscope.protocol import CaptureGap, StageRef
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role, StageKind

if TYPE_CHECKING:
    from irscope.pipeline_captures.inductor.value_run import ValueRun

_BEFORE = {
    "before_pre_grad_graph": stages.PRE_GRAD_GRAPH.name,
    "before_joint_graph": stages.JOINT_GRAPH.name,
    "before_post_grad_graph": stages.POST_GRAD_GRAPH.name,
}
_MAPPINGS = "inductor_provenance_tracking_node_mappings"
_NOT_IN_IDS = re.compile(r"[^\w.]+")
START = "start"
"""The name of the version before the first pass that changed something."""


@dataclass
class _Written:
    """A stage that is in the store, for what becomes known later."""

    id: str
    data: Any
    versions: int = 0
    """How many versions of it are in the store."""


@dataclass
class _Code:
    """One graph on its way through Inductor: a compile's forward, or its backward."""

    post_grad: Any = None
    schedules: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)  # stages after fusion, their nodes
    calls: list[inductor.KernelCall] = field(default_factory=list)
    externs: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    """Calls into libraries, by kernel and nodes: which of the calls each is."""


class DeepLane:
    """Keeps book of the graphs of a run on their way down.

    Args:
        values: What looks at numbers, in a value run: it gets each graph module while it is alive.
        refused: Gets the log of each fusion.
    """

    def __init__(self, book: RunBook, values: ValueRun | None, refused: Callable[[fusion.FusionLog], None]) -> None:
        self._book, self._values, self._refused, self.nodes = book, values, refused, NodeWriter()
        self._watcher = PassWatcher(
            self._phase_ended,
            self.nodes.describe,
            lambda receive: self._noted("which pass changed a graph", receive),
            values.version if values is not None else None,
        )
        self._starts: dict[tuple[str, str], str] = {}  # (compile, stage) → the graph before its passes
        self._phases: dict[tuple[str, str], Phase] = {}  # passes whose stage has not come yet
        self._written: dict[tuple[str, str], _Written] = {}  # (compile, stage) → the newest
        self._newest_code: dict[str, _Written] = {}  # compile → its newest output code
        self._codes: dict[tuple[str, bool], _Code] = {}
        self._autotuning = Autotuning(book)

    def hooks(self) -> list[Hook]:
        """What is patched in Inductor: passes, the scheduler, fusion, the memory plan, and the printing of loops."""
        return [
            *self._watcher.hooks(),
            *scheduler_hooks(
                self._noted("Inductor's IR before fusion", self._before_fusion),
                self._noted("Inductor's IR after fusion", self._after_fusion),
                self._noted("the nodes of a kernel", self._called),
            ),
            *fusion.hooks(self._noted("what was fused and why not", self._fused)),
            memory_plan_hook(self._noted("the memory plan", self._planned)),
            *tuning_hooks(
                self._noted("what autotuning tried", self._autotuning.tuned),
                self._noted("whether matrices are padded", self._autotuning.padded),
            ),
            looptext.hook(),
            nodemeta.hook(),
        ]

    def _noted(self, what: str, receive: Callable[..., None]) -> Callable[..., None]:
        """A receiver for Inductor's hooks; if it fails the gap says what is missing."""

        def noted(*args: Any) -> None:
            try:
                receive(*args)
            except Exception as error:  # noqa: BLE001
                self._book.gap(CaptureGap(what, f"{type(error).__name__}: {error}"))

        return self._book.guarded(noted)

    # --- the trace ----------------------------------------------------------------------------------------------------

    def note(self, record: Record, compile: str) -> bool:
        """Takes in a record that is not a stage; returns whether it was one of those that are for this room alone."""
        if record.event in _BEFORE:
            self._starts[compile, _BEFORE[record.event]] = clean(record)
        elif record.event == _MAPPINGS:
            self._map(compile, record.payload)
        return record.event in _BEFORE or record.event == _MAPPINGS

    def data_of(self, record: Record, compile: str, kind: StageKind, backward: bool) -> Any:
        """What is to be kept beside the text of a stage; called on the stack of its record."""
        if kind.role is Role.CODE:
            code = self._codes.get((compile, backward))
            if code is not None and kind.language == "cpp":
                _name_as_in(record.payload, code.calls)
            return self._code_data(code, record)
        if not kind.is_graph:
            return None
        try:
            module = graph_of(record.event)
            if module is None:
                return None
            if self._values is not None:
                self._values.graph(compile, kind.name, backward, module)
            data = self.nodes.describe(module)
        except Exception as error:  # noqa: BLE001  the text is kept in any case
            self._book.gap(CaptureGap(f"facts about the nodes of a {kind.name}", f"{type(error).__name__}: {error}"))
            return None
        if (phase := self._phases.get((compile, kind.name))) is not None:
            data["passes"] = [run.facts() for run in phase.runs]
        return data

    def stage_written(self, compile: str, kind: StageKind, id: str, backward: bool, attempt: int, data: Any) -> None:
        """A stage of the trace is in the store: what depends on it follows."""
        name = kind.name
        self._written[compile, name] = _Written(id, data)
        if (phase := self._phases.pop((compile, name), None)) is not None:
            self._write_versions(compile, phase, id, position(name, backward) - 0.5)
        if kind is stages.POST_GRAD_GRAPH:
            self._codes[compile, backward] = _Code(post_grad=data)
        elif kind is stages.BACKWARD_GRAPH and data is not None:
            forward = self._written.get((compile, stages.FORWARD_GRAPH.name))
            if forward is not None and forward.data is not None:
                facts = partition.partition_of(forward.data, data)
                self._book.put_stage(compile, stages.PARTITION.name, partition.stage_text(facts), attempt, facts, False)
        elif kind.role is Role.CODE:
            self._newest_code[compile] = self._written[compile, name]
            self._codes.pop((compile, backward), None)
            self._autotuning.code_written(compile, attempt, backward)

    def _map(self, compile: str, payload: str) -> None:
        """PyTorch's own links between pre-grad nodes, post-grad nodes and kernels come last, for the newest code."""
        if not payload:  # the FX graph cache answered with a graph that was compiled without provenance
            return
        code, mappings = self._newest_code.get(compile), json.loads(payload)
        if code is not None and code.data is not None and len(mappings) > 1:
            code.data["mappings"] = mappings
            self._book.put_data(code.id, code.data)

    # --- passes -------------------------------------------------------------------------------------------------------

    def _phase_ended(self, phase: Phase) -> None:
        current = self._book.current()
        if current is None or not phase.runs:
            return
        compile = current[0]
        failed = sys.exc_info()[0] is not None  # then the stage of these passes never comes
        if phase.stage != "joint-graph" and not failed:
            self._phases[compile, phase.stage] = phase
            return
        # The passes of a joint graph run after its stage; those of an inference graph, which has no joint one, after it.
        before = self._written.get((compile, phase.stage)) or self._written.get((compile, "inference-graph"))
        if phase.stage == "joint-graph" and before is not None:
            if before.data is not None:
                before.data.setdefault("passes", []).extend(run.facts() for run in phase.runs)
                self._book.put_data(before.id, before.data)
            joint = before.id.replace("inference-graph", "joint-graph")
            after = "joint-graph" if "joint-graph" in before.id else "inference-graph"
            order = position(after, False) + 0.25
            before.versions = self._write_versions(compile, phase, joint, order, before.versions)
        else:
            self._write_versions(compile, phase, f"{compile}/{phase.stage}", position(phase.stage, False) - 0.5)

    def _write_versions(self, compile: str, phase: Phase, id: str, order: float, written: int = 0) -> int:
        """Writes what each pass made; ``written``: how many there are already, of AOTAutograd's own pass.

        Returns how many there are then.
        """
        versions = [run for run in phase.runs if run.text is not None]
        start = self._starts.pop((compile, phase.stage), None)
        first = written + 1
        if versions and start is not None and not written:
            versions.insert(0, PassRun(START, 0.0, text=start))
            first = 0
        for number, run in enumerate(versions, first):
            assert run.text is not None
            name = _NOT_IN_IDS.sub("-", run.name).strip("-")
            stage = StageRef(
                f"{id}/{number:02}-{name}",
                phase.stage,
                stage_kind(phase.stage).language,
                len(run.text),
                run.name,
                round(run.seconds, 6),
                run.nodes,
            )
            data = None if run.name == START else {**run.facts(), "new": run.data}
            self._book.write_version(compile, stage, run.text, order + number / 10_000, data)
        return written + len(versions)

    # --- Inductor -----------------------------------------------------------------------------------------------------

    def _code(self) -> tuple[str, int, bool, _Code] | None:
        """The graph that is being lowered in this thread."""
        current = self._book.current()
        if current is None:
            return None
        backward = is_backward()
        return (*current, backward, self._codes.setdefault((current[0], backward), _Code()))

    def _before_fusion(self, nodes: Any) -> None:
        if (at := self._code()) is not None:
            schedule = inductor.schedule_of(nodes)
            self._book.put_stage(
                at[0], stages.IR_PRE_FUSION.name, schedule.text, at[1], {"nodes": schedule.nodes}, at[2]
            )

    def _fused(self, log: fusion.FusionLog) -> None:
        self._refused(log)
        if (at := self._code()) is not None:
            data = fusion.stage_data(log)
            self._book.put_stage(at[0], stages.FUSION.name, fusion.stage_text(data), at[1], data, at[2])

    def _after_fusion(self, nodes: Any) -> None:
        if (at := self._code()) is not None:
            schedule = inductor.schedule_of(nodes)
            # Its data follows with the output code, which says what each node became.
            id = self._book.put_stage(at[0], stages.IR_POST_FUSION.name, schedule.text, at[1], None, at[2])
            at[3].schedules.append((id, schedule.nodes))

    def _called(self, schedule: Any, kernel: str, is_extern: bool, handle: int | None) -> None:
        if (at := self._code()) is not None and kernel:
            code, call = at[3], inductor.call_of(schedule, kernel, is_extern, handle)
            if is_extern:
                # torch 2.9 gives a library call its handle only when the code is written.
                number = code.externs.setdefault((kernel, call.nodes), len(code.calls))
                if number < len(code.calls) and handle is not None:
                    code.calls[number] = call
                    return
            code.calls.append(call)

    def _planned(self, wrapper: Any) -> None:
        if (at := self._code()) is not None:
            plan = memory.plan_of(wrapper)
            self._book.put_stage(at[0], stages.MEMORY_PLAN.name, memory.stage_text(plan), at[1], plan, at[2])

    def _code_data(self, code: _Code | None, record: Record) -> Any:
        """The data of output code, with the file that is executed; that of its schedules is written on the way."""
        if code is None:
            return None
        ends = {part: _title(call) for call in code.calls for part in call.nodes}
        for id, nodes in code.schedules:
            for node in nodes:
                node["kernel"] = next((ends[part] for part in node["parts"] if part in ends), "")
            self._book.put_data(id, {"nodes": nodes})
        home = {part: node for _, schedule in code.schedules for node in schedule for part in node["parts"]}
        flops = _flops_by_call(code)
        return {
            "file": record.facts.get("filename"),
            "calls": [
                {
                    "kernel": call.kernel,
                    "handle": call.handle,
                    "nodes": list(call.nodes),
                    "origins": list(call.origins),
                    **_traffic(call, home),
                    "flops": flops[number],
                    **({"operator": call.operator} if call.operator not in ("", call.kernel) else {}),
                }
                for number, call in enumerate(code.calls)
            ],
        }


def _name_as_in(wrapper: str, calls: list[inductor.KernelCall]) -> None:
    """Gives calls without a handle their names in C++; both are in the order of the code."""
    names = [call.name for call in calls_in(wrapper) if call.handle is None]
    mine = [call for call in calls if call.handle is None]
    if len(names) == len(mine):
        for call, name in zip(mine, names, strict=True):
            call.kernel = name


def _title(call: inductor.KernelCall) -> str:
    return call.kernel if call.handle is None else f"{call.kernel}:{call.handle}"


def _traffic(call: inductor.KernelCall, home: dict[str, dict[str, Any]]) -> dict[str, int | None]:
    """Bytes that a call reads and writes, each buffer once; what it writes it does not read from memory.

    ``home``: the node of the final schedule that contains each node before fusion.
    """
    mine = {id(home[name]): home[name] for name in call.nodes if name in home}.values()
    if not mine:
        return {"reads": None, "writes": None}
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    for node in mine:
        for accesses, found in ((node["reads"], reads), (node["writes"], writes)):
            for name, size in accesses:
                found[name] = max(size, found.get(name, 0))
    return {
        "reads": sum(size for name, size in reads.items() if name not in writes),
        "writes": sum(writes.values()),
    }


def _flops_by_call(code: _Code) -> list[int | None]:
    """FLOPs of the nodes of each call.  A node that several calls name counts in the library's, else in the first."""
    columns = (code.post_grad or {}).get("nodes", {"name": [], "flops": []})
    flops = {name: count for name, count in zip(columns["name"], columns["flops"], strict=True) if count is not None}
    externs = set(code.externs.values())
    order = sorted(range(len(code.calls)), key=lambda number: number not in externs)
    found: list[int | None] = [None] * len(code.calls)
    for number in order:
        mine = [flops.pop(name) for name in code.calls[number].origins if name in flops]
        found[number] = sum(mine) if mine else None
    return found
