"""ONNX Runtime's sessions: the graph of each optimization level, and which node ran where for how long."""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from irscope.capture.operation_graphs import Tensor
from irscope.pipeline_captures.onnx.models import DTYPES
from irscope.vocabulary.records import dataclass

RUNS = 5
"""Runs whose times are kept, after one that is not."""
_FATAL = 4
_PROVIDERS = {"cuda": "CUDAExecutionProvider"}
_CPU = "CPUExecutionProvider"
_LARGE = 4096
"""A constant of at least so many bytes is written to a file beside the graph: no view shows its elements."""


@dataclass(frozen=True)
class NodeRun:
    """A node that ran.

    Args:
        microseconds: The median of the runs.
        value: Its first result.
    """

    name: str
    operator: str
    provider: str
    microseconds: float
    value: Tensor | None


@dataclass
class Sessions:
    """The sessions of one model: one for each of the runtime's optimization levels, whose graph alone is wanted, and the
    one with all optimizations, which runs.

    Args:
        model: The model, or the path of its file.
        folder: Where the runtime writes its graphs and its profile.
        devices: The types of devices of the program's tensors.
    """

    model: bytes | str
    folder: str
    devices: set[str]

    def graph_of(self, level: str) -> Any:
        """The graph of a level, an ``onnx_ir.Model``; raises what the runtime raises.

        Its session never runs, so it gets no threads, and no weights are laid out for kernels.
        """
        options = _options(importlib.import_module("onnxruntime"))
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.disable_prepacking", "1")
        return self._opened(level, options)[1]

    def to_run(self, level: str) -> tuple[Any, Any]:
        """A session that keeps times until `profile`, and its graph; raises what the runtime raises."""
        options = _options(importlib.import_module("onnxruntime"))
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(self.folder, "profile")
        return self._opened(level, options)

    def _opened(self, level: str, options: Any) -> tuple[Any, Any]:
        runtime, ir = importlib.import_module("onnxruntime"), importlib.import_module("onnx_ir")
        wanted = [_PROVIDERS[device] for device in sorted(self.devices) if device in _PROVIDERS]
        usable = [name for name in wanted if name in runtime.get_available_providers()]
        path = os.path.join(self.folder, f"{level}.onnx")
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = path
        for name, value in (("file_name", f"{level}.weights"), ("min_size_in_bytes", str(_LARGE))):
            options.add_session_config_entry(f"session.optimized_model_external_initializers_{name}", value)
        session = runtime.InferenceSession(self.model, options, providers=[*usable, _CPU])
        return session, ir.serde.from_proto(importlib.import_module("onnx").load(path, load_external_data=False))


def profile(session: Any, run: Callable[[], object]) -> list[NodeRun]:
    """Runs a session of `Sessions.to_run` a few times: its nodes in the order in which they ran.

    Afterwards it keeps no times any more, also where this raises.

    Args:
        run: Runs the session once.
    """
    try:
        for _ in range(RUNS + 1):
            run()
    finally:
        path = session.end_profiling()
    with open(path, encoding="utf-8") as file:
        return runs_in(json.load(file))


def runs_in(events: list[dict[str, Any]]) -> list[NodeRun]:
    """The nodes in a profile of the runtime, without the first time that each ran."""
    times: dict[str, list[float]] = defaultdict(list)
    facts: dict[str, dict[str, Any]] = {}
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") == "Node" and name.endswith(_END):
            times[name.removesuffix(_END)].append(float(event["dur"]))
            facts.setdefault(name.removesuffix(_END), event["args"])
    return [
        NodeRun(
            name, str(one.get("op_name", "")), str(one.get("provider", "")),
            statistics.median(times[name][1:] or times[name]), _value(one.get("output_type_shape")),
        )
        for name, one in facts.items()
    ]  # fmt: skip


_END = "_kernel_time"


def _options(runtime: Any) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = _FATAL  # the script's standard error is the user's
    return options


def _value(shapes: Any) -> Tensor | None:
    """The value of the first shape in ``[{"float": [2, 8]}]``."""
    for shape in shapes or ():
        for dtype, sizes in shape.items():
            return Tensor(DTYPES.get(dtype.upper(), dtype), tuple(sizes))
    return None


def devices_of(tensors: Any) -> set[str]:
    """The types of devices that tensors are on."""
    torch: Any = sys.modules["torch"]
    return {tensor.device.type for tensor in tensors if isinstance(tensor, torch.Tensor)}


def providers_text(runs: list[NodeRun], providers: list[str]) -> str:
    """Which node ran on which execution provider: neighbours on one provider are a partition."""
    rows = [f"Session: {', '.join(providers)}", ""]
    parts: list[list[NodeRun]] = []
    for one in runs:
        if not parts or parts[-1][0].provider != one.provider:
            parts.append([])
        parts[-1].append(one)
    for number, part in enumerate(parts, 1):
        rows.append(f"Partition {number}: {part[0].provider}, {len(part)} node{'s' if len(part) > 1 else ''}")
        rows += [f"  {one.operator}  {one.name}" for one in part]
    return "\n".join(rows) + "\n"


def times_text(runs: list[NodeRun]) -> str:
    """The nodes by their time, the longest first."""
    whole = sum(one.microseconds for one in runs) or 1.0
    rows = [f"Median of {RUNS} runs with the inputs of the first call", ""]
    for one in sorted(runs, key=lambda one: -one.microseconds):
        share = f"{100 * one.microseconds / whole:.0f} %"
        rows.append(f"{one.microseconds:10.0f} µs {share:>5}  {one.operator}  {one.name}")
    return "\n".join(rows) + "\n"
