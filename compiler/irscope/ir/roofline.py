"""What kernels and nodes cost, and how fast a device could do them at best (the roofline model).

A kernel must move its bytes through memory and do its floating-point operations; a device does neither faster than its
peak numbers, so the larger of the two times is the least that it can take, and says what bounds it (S. Williams,
A. Waterman, D. Patterson: Roofline, CACM 52/4, 2009).  Caches, launches and instructions other than floating-point ones
are not in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from irscope.ir.nodes import NodeFacts, dtypes_of, facts_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Report, StageRef
from irscope.targets.catalogue import Target, catalogue
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role


@dataclass(frozen=True)
class Peaks:
    """What a device does at most, by its maker's data sheet: dense, without sparsity.

    Args:
        bandwidth: Bytes per second of its memory.
        flops: Operations per second by dtype; ``float32`` for any that is not there.
        reported: The names under which PyTorch reports the device.  Others of its family (PCIe, less memory) have other
            peaks.
    """

    name: str
    bandwidth: float
    flops: Mapping[str, float]
    reported: tuple[str, ...] = ()

    def least_seconds(self, moved: float | None, flops: float | None, dtype: str) -> tuple[float | None, float | None]:
        """By memory and by arithmetic; None if the number is not known."""
        rate = self.flops.get(dtype, self.flops["float32"])
        return (
            None if moved is None else moved / self.bandwidth,
            None if flops is None else flops / rate,
        )


def _peaks(target: Target) -> Peaks | None:
    """The peaks of a target of the catalogue; None if it lacks the figures, as a CPU does."""
    bandwidth = target.value("bandwidth")
    if bandwidth is None or not target.rates:
        return None
    return Peaks(target.title, bandwidth, {dtype: rate.value for dtype, rate in target.rates.items()}, target.reported)


# float32 is that of the ordinary units: PyTorch does not use TF32 unless it is told to.
TARGETS: Mapping[str, Peaks] = {
    name: peaks for name, target in catalogue().targets.items() if (peaks := _peaks(target)) is not None
}
"""The peaks of all targets that have them, by the names of the catalogue."""


THIS_CPU = "this CPU, measured"
"""What the CPU is called that a profile measured."""


def peaks_of(device: str) -> Peaks | None:
    """The peaks of a device by the name that PyTorch reports; None for one that is not in the table."""
    return next((peaks for peaks in TARGETS.values() if device in peaks.reported), None)


@dataclass(frozen=True)
class Work:
    """What a kernel or a node costs once.

    Args:
        stage: Id of the output code or the graph it is in.
        calls: How often the output code calls the kernel; the other numbers are of all calls together.
        read, written: Bytes; None if a size is not known.
        flops: By PyTorch's formulas; None if it has none for any operation in it.
        dtype: Dtype of most of what it writes.
        memory_seconds, compute_seconds: The least that the target takes for either; None without a target or a number.
    """

    name: str
    stage: str
    calls: int
    read: int | None
    written: int | None
    flops: int | None
    dtype: str
    memory_seconds: float | None = None
    compute_seconds: float | None = None

    @property
    def moved(self) -> int | None:
        """Bytes read and written; None if one of them is not known."""
        return None if self.read is None or self.written is None else self.read + self.written

    @property
    def intensity(self) -> float | None:
        """Operations per byte that goes through memory."""
        return None if self.flops is None or not self.moved else self.flops / self.moved

    @property
    def seconds(self) -> float | None:
        """The least that the target takes."""
        known = [value for value in (self.memory_seconds, self.compute_seconds) if value is not None]
        return max(known, default=None)

    @property
    def bound(self) -> str:
        """``memory`` or ``compute``: what takes longer; empty without a target."""
        if self.memory_seconds is None and self.compute_seconds is None:
            return ""
        return "compute" if (self.compute_seconds or 0.0) > (self.memory_seconds or 0.0) else "memory"


class StageData(Protocol):
    """Gives the data of stages; the run store does."""

    def stage_data(self, run: str, stage: str) -> Any:
        """What was kept of a stage besides its text, as JSON values; None if nothing was."""


def kernel_costs(store: StageData, report: Report, peaks: Peaks | None = None) -> list[Work]:
    """The costs of each kernel in output code that tells its calls, in the order of the code."""
    found: list[Work] = []
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is Role.CODE and (data := store.stage_data(report.run, stage.id)):
                found += _of_output_code(stage, data, _dtypes(store, report, stage, compile.stages), peaks)
    return found


def call_costs(
    store: StageData, report: Report, stage: StageRef, stages: Iterable[StageRef], peaks: Peaks | None = None
) -> Callable[[Any], Work]:
    """What gives the cost of one call, as the data of the output code ``stage`` has it; ``stages`` are those of its compile."""
    dtypes = _dtypes(store, report, stage, stages)
    return lambda call: _cost(stage, call["kernel"], [call], dtypes, peaks)


def _of_output_code(stage: StageRef, data: Any, dtypes: Mapping[str, str], peaks: Peaks | None) -> Iterable[Work]:
    calls: dict[str, dict[object, Any]] = {}
    for number, call in enumerate(data.get("calls", ())):
        # The loops of one kernel are reported separately, with one handle.
        calls.setdefault(call["kernel"], {}).setdefault(call["handle"] if call["handle"] is not None else -number, call)
    for kernel, rows in calls.items():
        yield _cost(stage, kernel, list(rows.values()), dtypes, peaks)


def _cost(stage: StageRef, kernel: str, rows: list[Any], dtypes: Mapping[str, str], peaks: Peaks | None) -> Work:
    """The cost of calls of one kernel together."""
    read = _sum(row["reads"] for row in rows)
    written = _sum(row["writes"] for row in rows)
    known = [row["flops"] for row in rows if row["flops"] is not None]
    kinds = Counter(dtypes[name] for row in rows for name in row["origins"] if dtypes.get(name))
    dtype = kinds.most_common(1)[0][0] if kinds else ""
    return _with_bounds(Work(kernel, stage.id, len(rows), read, written, sum(known) if known else None, dtype), peaks)


def _dtypes(store: StageData, report: Report, output_code: StageRef, stages: Iterable[StageRef]) -> dict[str, str]:
    """The dtypes of the nodes of the graph that was lowered to output code, by their names."""
    home, _, last = output_code.id.rpartition("/")
    suffix = last.removeprefix(output_code.name)
    for stage in stages:
        if stage_kind(stage.name).is_lowered and stage.id == f"{home}/{stage.name}{suffix}":
            return dtypes_of(store.stage_data(report.run, stage.id))
    return {}


def node_costs(store: StageData, report: Report, stage: StageRef, peaks: Peaks | None = None) -> list[Work]:
    """The costs of each node of a graph stage that does something.  Raises LookupError if the stage has no costs."""
    nodes = facts_of(store.stage_data(report.run, stage.id)) if stage_kind(stage.name).is_graph else ()
    if not nodes:
        raise LookupError(f"No node costs in {stage.id}: only graphs of the deep lane have them.")
    return [
        _with_bounds(Work(node.name, stage.id, 1, node.read, node.written, node.flops, dtype_of(node)), peaks)
        for node in nodes
        if node.op.startswith("call_") and (node.written or node.flops)
    ]


def dtype_of(node: NodeFacts) -> str:
    """The dtype of a node's first result."""
    value = node.value.parts[0] if node.value.parts else node.value
    return value.dtype.removeprefix("torch.")


def _with_bounds(cost: Work, peaks: Peaks | None) -> Work:
    if peaks is None:
        return cost
    memory, compute = peaks.least_seconds(cost.moved, cost.flops, cost.dtype)
    return Work(cost.name, cost.stage, cost.calls, cost.read, cost.written, cost.flops, cost.dtype, memory, compute)


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if any(value is None for value in known) else sum(value for value in known if value is not None)
